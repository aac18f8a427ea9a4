/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pool.h
 * @brief The ledger: which requests are booked on which rank. Selects and books in one step.
 *
 * A pool keeps D and N of every rank while requests come and go. Two requests that arrive together never see the same
 * free room, because kvca_pool_place() selects a rank and books the request on it before the next one is looked at:
 *
 *     kvca_params params = KVCA_PARAMS_DEFAULT;
 *     kvca_pool *pool;
 *     kvca_owner owner;
 *     kvca_pool_new(64, 1, &params, &pool);
 *     kvca_pool_owner_claim(pool, 0, &owner);
 *     kvca_rank rank = {.size = sizeof rank, .worker_id = 7, .dp_rank = 0, .total_kv_blocks = 60000};
 *     kvca_pool_put(pool, &rank, NULL);
 *
 *     kvca_request request = {.size = sizeof request, .blocks = kvca_blocks_for_tokens(prompt_tokens, 16)};
 *     kvca_booking booking;
 *     kvca_selection selection = {.size = sizeof selection};
 *     if (kvca_pool_place(pool, owner, &request, &booking, &selection) == KVCA_OK)
 *         send_to(selection.row);
 *     ...
 *     kvca_pool_release(pool, &booking);
 *
 * Memory. A pool is one block without pointers: it may lie in memory that several processes map at different
 * addresses. `kvca_pool *` is the address of that block in this process.
 *
 * Lock. The host holds a lock of its own around every call that takes a kvca_pool *, but for those that say
 * otherwise: a mutex between threads, a process-shared robust mutex between processes (docs/examples shows both). A
 * pool itself allocates nothing, takes no lock, reads no clock and has no state outside its block (but that
 * kvca_pool_init() and kvca_pool_new() look for a seed).
 *
 * Death. A process may be killed in the middle of any call. The next call finds the update half done and either
 * completes it or finds that it had not begun; kvca_pool_repair() does that alone, for hosts that learn of the death
 * (EOWNERDEAD). What the dead process had booked is given back by kvca_pool_owner_void(). Counters may miss what the
 * interrupted call would have counted.
 *
 * Slots. A rank has a slot from the kvca_pool_put() that adds it until it is dropped or has drained: a number below
 * max_ranks, by which eligibility and multipliers are given and selections are told. Slots are reused; a generation
 * in each booking tells.
 *
 * Errors. Functions return a kvca_status; what they would have written, and the ranks and bookings of the pool, are
 * untouched unless they return KVCA_OK or say otherwise.
 */
#ifndef KVCA_POOL_H
#define KVCA_POOL_H

#include <kvca/kvca.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The ledger. Opaque. */
typedef struct kvca_pool kvca_pool;

/** How a pool's block must be aligned, in bytes. Mapped memory is. */
#define KVCA_POOL_ALIGNMENT 64

/** The most ranks that a pool can be made for. */
#define KVCA_POOL_MAX_RANKS 1048576
/** The most owners that a pool can be made for. */
#define KVCA_POOL_MAX_OWNERS 65536

/**
 * How many bytes a pool takes: about 76 for each rank and 16 for each owner and each pair of an owner and a rank.
 * @return a multiple of KVCA_POOL_ALIGNMENT; 0 when a number is past the most that a pool can be made for, or the
 *         block past what this machine can address. Needs no lock.
 */
KVCA_API size_t kvca_pool_bytes(uint32_t max_ranks, uint32_t max_owners);

/**
 * Makes an empty pool in the caller's memory, which it does not own.
 * @param memory  at least `bytes` bytes, aligned to KVCA_POOL_ALIGNMENT; whatever it held is overwritten
 * @param params  copied
 * @param[out] pool  the block, as a pool
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_POOL_SIZE (0 from kvca_pool_bytes()), KVCA_ERR_POOL_MEMORY (too small or not
 *         aligned), or what kvca_params_validate() says. Needs no lock as long as nobody else knows the block.
 */
KVCA_API kvca_status kvca_pool_init(void *memory, size_t bytes, uint32_t max_ranks, uint32_t max_owners,
                                    const kvca_params *params, kvca_pool **pool);

/**
 * Finds the pool that kvca_pool_init() made in this memory, perhaps by another process or an earlier version.
 * What says where things lie in the block is checked; what is in the ledger is not: share a block with processes that
 * may be trusted.
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_POOL_MEMORY (not aligned, or smaller than the pool in it) or
 *         KVCA_ERR_POOL_LAYOUT (no pool, one of another layout, or one that leads outside its block). Needs no lock.
 */
KVCA_API kvca_status kvca_pool_attach(void *memory, size_t bytes, kvca_pool **pool);

/** kvca_pool_init() in allocated memory; free it with kvca_pool_free(). Also returns KVCA_ERR_NO_MEMORY. */
KVCA_API kvca_status kvca_pool_new(uint32_t max_ranks, uint32_t max_owners, const kvca_params *params,
                                   kvca_pool **pool);

/** Frees a pool that kvca_pool_new() made, which no thread may be using. NULL is allowed. */
KVCA_API void kvca_pool_free(kvca_pool *pool);

/** The number of slots that the pool was made for; 0 for NULL. Never changes, and needs no lock. */
KVCA_API uint32_t kvca_pool_max_ranks(const kvca_pool *pool);

/** The number of owners that the pool was made for; 0 for NULL. Never changes, and needs no lock. */
KVCA_API uint32_t kvca_pool_max_owners(const kvca_pool *pool);

/**
 * Changes the parameters. Bookings stay; the limits of all ranks are worked out anew.
 * @return KVCA_OK, KVCA_ERR_NULL, or what kvca_params_validate() says
 */
KVCA_API kvca_status kvca_pool_set_params(kvca_pool *pool, const kvca_params *params);

/**
 * Restarts the tie-break generator, which all processes share, from `seed`. A new pool has an unpredictable one.
 * @return KVCA_OK or KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_pool_set_seed(kvca_pool *pool, uint64_t seed);

/** A rank, as its worker describes it. */
typedef struct kvca_rank {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The worker that serves the rank. */
    uint64_t worker_id;
    /** The rank's number in its worker. */
    uint32_t dp_rank;
    /** The capacity in KV blocks that the rank reports, 0 for none. */
    uint64_t total_kv_blocks;
} kvca_rank;

/** What became of a put. */
typedef struct kvca_put {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The rank's slot. */
    uint32_t slot;
    /**
     * The slot's generation: that of the bookings on this rank (kvca_booking.generation). A host that keeps slots tells
     * by it whether the slot it was given is still this rank's.
     */
    uint32_t generation;
    /** Whether the rank was not there before. */
    bool added;
    /**
     * Whether the rank has no known capacity (and the filter is on), so that it always fits. This is the only
     * warning that a pool gives of it: kvca_pool_place() gives none.
     */
    bool unknown_capacity;
} kvca_put;

/**
 * Adds a rank, or updates the capacity of the one known by the same (worker_id, dp_rank), also with requests in flight.
 * A draining rank takes requests again, in its old slot.
 * @param[out] put  may be NULL
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE or KVCA_ERR_POOL_FULL
 */
KVCA_API kvca_status kvca_pool_put(kvca_pool *pool, const kvca_rank *rank, kvca_put *put);

/**
 * Lets a rank finish: it takes no new requests, and its slot frees itself when the last one ends (at once when there is
 * none).
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_NO_SUCH_RANK
 */
KVCA_API kvca_status kvca_pool_drain(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank);

/**
 * Forgets a rank that is gone, with all that was booked on it. Bookings on it become stale.
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_NO_SUCH_RANK
 */
KVCA_API kvca_status kvca_pool_drop(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank);

/**
 * Finds a rank's slot without looking at every rank.
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_NO_SUCH_RANK
 */
KVCA_API kvca_status kvca_pool_find(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank, uint32_t *slot);

/**
 * Whose bookings they are: a process, say. A value to copy; never 0, and never the same for two claims (an entry that was
 * claimed 2^32 times is retired).
 */
typedef uint64_t kvca_owner;

/**
 * Registers an owner.
 * @param id  the host's name for it, such as a process number; the pool only keeps it
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_OWNERS_FULL
 */
KVCA_API kvca_status kvca_pool_owner_claim(kvca_pool *pool, uint64_t id, kvca_owner *owner);

/**
 * Ends an owner and gives back all that it had booked. Its bookings become stale. When the caller dies in the middle,
 * the rest is given back by the next call, and nobody is told how much.
 * @param[out] blocks    how many KV blocks that was, at most UINT64_MAX; may be NULL
 * @param[out] requests  how many requests; may be NULL
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_OWNER
 */
KVCA_API kvca_status kvca_pool_owner_void(kvca_pool *pool, kvca_owner owner, uint64_t *blocks, uint64_t *requests);

/** An owner as kvca_pool_owner_at() tells it. */
typedef struct kvca_owner_info {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** For kvca_pool_owner_void(). */
    kvca_owner owner;
    /** As given to kvca_pool_owner_claim(). */
    uint64_t id;
} kvca_owner_info;

/**
 * Lists owners, for a host that looks for dead ones: the one at `index`, from 0 below max_owners, if there is one.
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, or KVCA_ERR_OWNER where there is none
 */
KVCA_API kvca_status kvca_pool_owner_at(kvca_pool *pool, uint32_t index, kvca_owner_info *info);

/** What a request asks for. Pointers are borrowed for the call. */
typedef struct kvca_request {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The KV blocks to book. */
    uint64_t blocks;
    /** Which slots may be picked: bit s % 64 of word s / 64, for all max_ranks slots. NULL: all. */
    const uint64_t *eligible;
    /**
     * By slot, for all max_ranks of them; finite and > 0 for those that may be picked. NULL: 1 everywhere. A slot that
     * this request would raise past UINT64_MAX may not be picked.
     */
    const double *preferred_taint_multiplier;
    /** Book nothing when no rank fits, where the fallback would be picked otherwise. */
    bool only_if_fits;
} kvca_request;

/**
 * One request on one rank. A small value that the host keeps, in one place, and hands back to grow or release it. All
 * zero is no booking. The ledger keeps sums, not bookings: the release of a copy whose original was released already is
 * told where it can be, and otherwise takes the place of another booking's. Its layout is final, since hosts store it by
 * value: what a later version must add to it, it adds elsewhere.
 */
typedef struct kvca_booking {
    /** Where the request is. */
    uint32_t slot;
    /** Tells the slot's rank from one that has the slot later. */
    uint32_t generation;
    /** Whose booking it is. */
    kvca_owner owner;
    /** The KV blocks booked. */
    uint64_t blocks;
} kvca_booking;

/**
 * Picks a rank by the rule of kvca_select() and books the request on it.
 * @param[out] booking    written for KVCA_OK alone
 * @param[out] selection  its `row` is the slot; the counts are over the slots that may be picked; may be NULL. Written
 *                        for KVCA_OK, and for KVCA_NONE_FITS and KVCA_NEVER_FITS: then it is the fallback that was not
 *                        taken, `row` being its first tied slot
 * @return KVCA_OK: booked, and selection->outcome tells whether it fits;
 *         KVCA_NONE_ELIGIBLE: no rank may be picked;
 *         KVCA_NONE_FITS: with only_if_fits, no rank has room now. It may later: a host that can wait waits;
 *         KVCA_NEVER_FITS: with only_if_fits, the request is larger than the limit of every rank that may be picked, even
 *         of an empty one. Waiting does not help, unless ranks or parameters change;
 *         KVCA_ERR_NULL, KVCA_ERR_SIZE, KVCA_ERR_OWNER, KVCA_ERR_PREFERRED_TAINT_MULTIPLIER (of a slot that may be
 *         picked), or KVCA_ERR_OVERFLOW: D would pass UINT64_MAX on every rank that could be picked otherwise
 */
KVCA_API kvca_status kvca_pool_place(kvca_pool *pool, kvca_owner owner, const kvca_request *request,
                                     kvca_booking *booking, kvca_selection *selection);

/**
 * Explains how a slot compares with the one that kvca_pool_place() picked, for logs and for people. Call it before the
 * pool changes: under the same hold of the host's lock as the place. Takes the same time whatever the number of slots.
 * @param request    the request as it was placed
 * @param booking    what the place booked, which is left out of D and N, so that they are what the place saw. NULL when it
 *                   booked nothing
 * @param selection  what the place gave, for KVCA_OK, KVCA_NONE_FITS or KVCA_NEVER_FITS
 * @param slot       the slot to explain
 * @param[out] explanation  its reason is KVCA_REASON_NOT_ELIGIBLE where the slot may not be picked; written for KVCA_OK
 *                          alone
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, KVCA_ERR_NO_SUCH_RANK (`slot` has no rank), KVCA_ERR_ROW
 *         (selection->row has none), KVCA_ERR_PREFERRED_TAINT_MULTIPLIER (of either slot), or what kvca_pool_release()
 *         says of the booking: KVCA_ERR_NO_BOOKING, KVCA_ERR_FOREIGN_BOOKING or KVCA_STALE. Nothing changes.
 */
KVCA_API kvca_status kvca_pool_explain(kvca_pool *pool, const kvca_request *request, const kvca_booking *booking,
                                       const kvca_selection *selection, uint32_t slot, kvca_explanation *explanation);

/**
 * Books `blocks` more for a request that is placed, whether they fit or not: the engine will take them anyway.
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_OVERFLOW, or KVCA_STALE, KVCA_ERR_NO_BOOKING, KVCA_ERR_FOREIGN_BOOKING as
 *         kvca_pool_release(); the booking is only changed by KVCA_OK
 */
KVCA_API kvca_status kvca_pool_grow(kvca_pool *pool, kvca_booking *booking, uint64_t blocks);

/**
 * Ends a booking and clears it.
 * @return KVCA_OK;
 *         KVCA_STALE: its rank is gone or its owner was voided, and so is the booking; it is cleared and nothing else
 *         changes;
 *         KVCA_ERR_NO_BOOKING: it is all zero, as after a release;
 *         KVCA_ERR_FOREIGN_BOOKING: this pool did not make it, or it was changed; it stays as it is;
 *         KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_pool_release(kvca_pool *pool, kvca_booking *booking);

/**
 * Puts right what a process that died in the middle of a call left behind. Every call that looks at ranks or bookings does
 * so first; this one is for hosts that want it done, or to know.
 * @param[out] repaired  whether there was something to put right; may be NULL
 * @return KVCA_OK or KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_pool_repair(kvca_pool *pool, bool *repaired);

/** What happened in a pool since it was made. */
typedef struct kvca_counters {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** Requests booked, those of `fallbacks` among them. */
    uint64_t placed;
    /** Requests booked on a rank that they did not fit. */
    uint64_t fallbacks;
    /** Requests not booked: none eligible, none fits, or never fits. */
    uint64_t none;
    /** Releases and growths of stale bookings. */
    uint64_t stale;
    /** Requests given back by kvca_pool_owner_void(). */
    uint64_t voided;
} kvca_counters;

/**
 * A pool's ranks, copied. Rows that requests may be placed on come first, in the order of their slots, then those that
 * drain: so `ranks`, whose count is the number of the first kind, is what kvca_pool_place() chooses from, and
 * kvca_tie_set() and kvca_explain() tell the same of it (but that a place passes over a rank whose D would pass
 * UINT64_MAX). What the pointers lead to lies in the caller's buffer, and has the library's size.
 */
typedef struct kvca_snapshot {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** How many rows there are in all. */
    size_t count;
    /** The rows that take requests; the columns go on, up to `count`, with those that drain. */
    const kvca_ranks *ranks;
    /** The slot of each row. */
    const uint32_t *slot;
    /** What has happened in the pool so far. */
    const kvca_counters *counters;
    /** The parameters that requests are placed by. */
    const kvca_params *params;
} kvca_snapshot;

/** How many bytes kvca_pool_snapshot() needs; 0 for NULL. Never changes, and needs no lock. */
KVCA_API size_t kvca_pool_snapshot_bytes(const kvca_pool *pool);

/**
 * Copies the ranks into the caller's buffer, so that they can be formatted outside the lock.
 * @param buffer         aligned to 8 bytes; all that the snapshot leads to lies in it
 * @param bytes          at least kvca_pool_snapshot_bytes()
 * @param[out] snapshot  lives as long as the buffer
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE or KVCA_ERR_POOL_MEMORY
 */
KVCA_API kvca_status kvca_pool_snapshot(kvca_pool *pool, void *buffer, size_t bytes, kvca_snapshot *snapshot);

/**
 * The KV blocks that hold `tokens` tokens: tokens / block_size, rounded up.
 * @param block_size  tokens in a block, at least 1; 0 gives UINT64_MAX, more than a rank holds. Needs no lock.
 */
KVCA_API uint64_t kvca_blocks_for_tokens(uint64_t tokens, uint64_t block_size);

#ifdef __cplusplus
}
#endif

#endif
