/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pool.h
 * @brief The ledger: which requests are booked on which rank. It selects and books in one step.
 *
 * A pool keeps D and N of every rank while requests come and go. kvca_pool_place() selects a rank and books the
 * request on it in one call. So two requests that arrive together never get the same free room:
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
 *     kvca_booking booking = {0};
 *     kvca_selection selection = {.size = sizeof selection};
 *     if (kvca_pool_place(pool, owner, &request, &booking, &selection) == KVCA_OK) {
 *         send_to(selection.row);
 *         ...
 *         kvca_pool_release(pool, &booking);
 *     }
 *
 * Memory. A pool is one block without pointers. Several processes may map it at different addresses. `kvca_pool *` is
 * the address of the block in this process.
 *
 * Lock. The host holds a lock of its own around every call that takes a kvca_pool *, except where a function says
 * that it needs no lock. Between threads the lock is a mutex; between processes it is a process-shared robust mutex.
 * docs/examples shows both. A pool itself allocates nothing, takes no lock, reads no clock and has no state outside
 * its block. Only kvca_pool_init() and kvca_pool_new() obtain a seed from the system.
 *
 * Death. A process may be killed in the middle of any call. The next call completes the interrupted update, or finds
 * that it had not begun. kvca_pool_repair() does only this, for hosts that learn of the death (EOWNERDEAD).
 * kvca_pool_owner_void() gives back what the dead process had booked. The counters may miss what the interrupted call
 * would have counted.
 *
 * Slots. A rank has a slot, which is a number below max_ranks. It gets the slot from the kvca_pool_put() that adds
 * it, and keeps it until it is dropped or has drained. Eligibility and multipliers are given by slot, and selections
 * name a slot. Slots are reused. The generation in each booking distinguishes the ranks that had the same slot.
 *
 * Errors. Functions return a kvca_status. Unless it is KVCA_OK, or a function says otherwise, the out-parameters and
 * the ranks and bookings of the pool are unchanged.
 */
#ifndef KVCA_POOL_H
#define KVCA_POOL_H

#include <kvca/kvca.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The ledger. Opaque. */
typedef struct kvca_pool kvca_pool;

/** The alignment that a pool's block needs, in bytes. Mapped memory has it. */
#define KVCA_POOL_ALIGNMENT 64

/** The most ranks that a pool can be made for. */
#define KVCA_POOL_MAX_RANKS 1048576
/** The most owners that a pool can be made for. */
#define KVCA_POOL_MAX_OWNERS 65536

/**
 * How many bytes a pool takes: about 76 for each rank, 16 for each owner, and 16 for each pair of an owner and a
 * rank. Needs no lock.
 * @return a multiple of KVCA_POOL_ALIGNMENT; 0 if a number exceeds the most that a pool can be made for, or if the
 *         block exceeds what this machine can address
 */
KVCA_API size_t kvca_pool_bytes(uint32_t max_ranks, uint32_t max_owners);

/**
 * Makes an empty pool in memory that the caller owns. Needs no lock as long as nobody else knows the block.
 * @param memory  at least `bytes` bytes, aligned to KVCA_POOL_ALIGNMENT; its contents are overwritten
 * @param params  copied
 * @param[out] pool  the block, as a pool
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_POOL_SIZE (kvca_pool_bytes() returns 0), KVCA_ERR_POOL_MEMORY (`bytes` is
 *         too small, or `memory` is not aligned), or what kvca_params_validate() returns
 */
KVCA_API kvca_status kvca_pool_init(void *memory, size_t bytes, uint32_t max_ranks, uint32_t max_owners,
                                    const kvca_params *params, kvca_pool **pool);

/**
 * Finds the pool that kvca_pool_init() made in this memory. Another process or an earlier version may have made it.
 * The head, which says where things are in the block, is checked. The contents of the ledger are not: share a block
 * only with processes that you trust. Needs no lock.
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_POOL_MEMORY (`memory` is not aligned, or is smaller than the pool in it)
 *         or KVCA_ERR_POOL_LAYOUT (no pool, a pool of another layout, or a pool that leads outside its block)
 */
KVCA_API kvca_status kvca_pool_attach(void *memory, size_t bytes, kvca_pool **pool);

/** Like kvca_pool_init(), in allocated memory. Free it with kvca_pool_free(). May also return KVCA_ERR_NO_MEMORY. */
KVCA_API kvca_status kvca_pool_new(uint32_t max_ranks, uint32_t max_owners, const kvca_params *params,
                                   kvca_pool **pool);

/** Frees a pool that kvca_pool_new() made. NULL is allowed. No thread may be using the pool. */
KVCA_API void kvca_pool_free(kvca_pool *pool);

/** The number of slots that the pool was made for; 0 for NULL. Never changes, and needs no lock. */
KVCA_API uint32_t kvca_pool_max_ranks(const kvca_pool *pool);

/** The number of owners that the pool was made for; 0 for NULL. Never changes, and needs no lock. */
KVCA_API uint32_t kvca_pool_max_owners(const kvca_pool *pool);

/**
 * Changes the parameters. Bookings stay, and the limits of all ranks are computed again.
 * @return KVCA_OK, KVCA_ERR_NULL, or what kvca_params_validate() returns
 */
KVCA_API kvca_status kvca_pool_set_params(kvca_pool *pool, const kvca_params *params);

/**
 * Restarts the tie-break generator from `seed`. All processes share it. A new pool starts from an unpredictable seed.
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

/** The result of kvca_pool_put(). */
typedef struct kvca_put {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The rank's slot. */
    uint32_t slot;
    /**
     * The slot's generation. Bookings on this rank have the same one (kvca_booking.generation). A host that keeps
     * slots can compare generations to check that the slot still belongs to this rank.
     */
    uint32_t generation;
    /** Whether the rank is new to the pool. */
    bool added;
    /**
     * Whether the filter is on and the rank has no known capacity, so that it always fits. The pool gives no other
     * warning of this: kvca_pool_place() gives none.
     */
    bool unknown_capacity;
} kvca_put;

/**
 * Adds a rank. If the pool has a rank with the same (worker_id, dp_rank), its capacity is updated, also while it has
 * requests. A rank that was draining takes requests again, in its old slot.
 * @param[out] put  may be NULL
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE or KVCA_ERR_POOL_FULL
 */
KVCA_API kvca_status kvca_pool_put(kvca_pool *pool, const kvca_rank *rank, kvca_put *put);

/**
 * Lets a rank finish. It takes no new requests. Its slot becomes free when its last request ends, or at once if it
 * has none.
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_NO_SUCH_RANK
 */
KVCA_API kvca_status kvca_pool_drain(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank);

/**
 * Removes a rank that is gone, with all that was booked on it. Bookings on it become stale.
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_NO_SUCH_RANK
 */
KVCA_API kvca_status kvca_pool_drop(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank);

/**
 * Finds the slot of a rank. It does not look at every rank.
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_NO_SUCH_RANK
 */
KVCA_API kvca_status kvca_pool_find(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank, uint32_t *slot);

/**
 * Identifies the owner of bookings, for example a process. It is a value to copy. It is never 0, and two claims never
 * give the same value. (An entry that was claimed 2^32 times is not used again.)
 */
typedef uint64_t kvca_owner;

/**
 * Registers an owner.
 * @param id  the host's name for the owner, such as a process number; the pool only stores it
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_OWNERS_FULL
 */
KVCA_API kvca_status kvca_pool_owner_claim(kvca_pool *pool, uint64_t id, kvca_owner *owner);

/**
 * Ends an owner and gives back all that it had booked. Its bookings become stale. If the caller dies during this
 * call, the next call gives back the rest, and the amount is not reported.
 * @param[out] blocks    how many KV blocks were given back, at most UINT64_MAX; may be NULL
 * @param[out] requests  how many requests were given back; may be NULL
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_OWNER
 */
KVCA_API kvca_status kvca_pool_owner_void(kvca_pool *pool, kvca_owner owner, uint64_t *blocks, uint64_t *requests);

/** An owner, as kvca_pool_owner_at() returns it. */
typedef struct kvca_owner_info {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The owner, to pass to kvca_pool_owner_void(). */
    kvca_owner owner;
    /** The `id` that was passed to kvca_pool_owner_claim(). */
    uint64_t id;
} kvca_owner_info;

/**
 * Returns the owner at `index`, which counts from 0 to max_owners - 1. A host can list all owners to find dead ones.
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, or KVCA_ERR_OWNER if no owner is claimed at `index`
 */
KVCA_API kvca_status kvca_pool_owner_at(kvca_pool *pool, uint32_t index, kvca_owner_info *info);

/** What a request asks for. The library reads what the pointers lead to only during the call. */
typedef struct kvca_request {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The KV blocks to book. A slot whose D they would raise above UINT64_MAX may not be picked. */
    uint64_t blocks;
    /** The slots that may be picked: bit s % 64 of word s / 64, for all max_ranks slots. NULL: all slots. */
    const uint64_t *eligible;
    /**
     * Multipliers by slot, for all max_ranks slots. They must be finite and > 0 for slots that may be picked. NULL: 1
     * everywhere.
     */
    const double *preferred_taint_multiplier;
    /** If true and no rank fits, nothing is booked. If false, the fallback is booked then. */
    bool only_if_fits;
} kvca_request;

/**
 * One request on one rank. The host keeps this small value in one place, and passes it back to grow or release the
 * request. If all fields are zero, it is no booking.
 *
 * Never release a copy after its original. The ledger keeps sums, not single bookings: the pool cannot always tell,
 * and may then subtract another request's booking.
 *
 * The layout is final, because hosts store bookings by value. A later version puts what it must add elsewhere.
 */
typedef struct kvca_booking {
    /** The slot of the request's rank. */
    uint32_t slot;
    /** Distinguishes this rank from ranks that have the slot later. */
    uint32_t generation;
    /** The owner of the booking. */
    kvca_owner owner;
    /** The KV blocks booked. */
    uint64_t blocks;
} kvca_booking;

/**
 * Picks a rank by the rule of kvca_select(), and books the request on it.
 * @param[out] booking    written only for KVCA_OK
 * @param[out] selection  its `row` is the slot, and its counts cover the slots that may be picked; may be NULL.
 *                        Written for KVCA_OK, KVCA_NONE_FITS and KVCA_NEVER_FITS. For the last two it is the fallback
 *                        that was not taken, and `row` is the first tied slot
 * @return KVCA_OK: the request is booked, and selection->outcome says whether it fits;
 *         KVCA_NONE_ELIGIBLE: no rank may be picked;
 *         KVCA_NONE_FITS: only_if_fits is set, and no rank has room now. A host that can wait should wait;
 *         KVCA_NEVER_FITS: only_if_fits is set, and the request is larger than the limit of every rank that may be
 *         picked, even of an empty one. Waiting does not help, unless ranks or parameters change;
 *         KVCA_ERR_OVERFLOW: D would exceed UINT64_MAX on every rank that could otherwise be picked;
 *         KVCA_ERR_PREFERRED_TAINT_MULTIPLIER: the multiplier of a slot that may be picked is out of range;
 *         KVCA_ERR_NULL, KVCA_ERR_SIZE or KVCA_ERR_OWNER
 */
KVCA_API kvca_status kvca_pool_place(kvca_pool *pool, kvca_owner owner, const kvca_request *request,
                                     kvca_booking *booking, kvca_selection *selection);

/**
 * Explains how a slot compares with the one that kvca_pool_place() picked, for logs and for people. Call it before
 * the pool changes, while you still hold the lock that you held for kvca_pool_place(). It changes nothing. Its time
 * does not depend on the number of slots.
 * @param request    the request that was placed
 * @param booking    the booking that was made. It is left out of D and N, so that they are what kvca_pool_place()
 *                   saw. NULL if nothing was booked
 * @param selection  what kvca_pool_place() wrote for KVCA_OK, KVCA_NONE_FITS or KVCA_NEVER_FITS
 * @param slot       the slot to explain
 * @param[out] explanation  written only for KVCA_OK; its reason is KVCA_REASON_NOT_ELIGIBLE if the slot may not be
 *                          picked
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, KVCA_ERR_NO_SUCH_RANK (`slot` has no rank), KVCA_ERR_ROW
 *         (selection->row has no rank), KVCA_ERR_PREFERRED_TAINT_MULTIPLIER (of either slot), or what
 *         kvca_pool_release() returns for such a booking: KVCA_ERR_NO_BOOKING, KVCA_ERR_FOREIGN_BOOKING or KVCA_STALE
 */
KVCA_API kvca_status kvca_pool_explain(kvca_pool *pool, const kvca_request *request, const kvca_booking *booking,
                                       const kvca_selection *selection, uint32_t slot, kvca_explanation *explanation);

/**
 * Books `blocks` more for a placed request, whether they fit or not, because the engine takes them in any case.
 * @param[in,out] booking  changed only by KVCA_OK
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_OVERFLOW, or as for kvca_pool_release() KVCA_STALE, KVCA_ERR_NO_BOOKING or
 *         KVCA_ERR_FOREIGN_BOOKING
 */
KVCA_API kvca_status kvca_pool_grow(kvca_pool *pool, kvca_booking *booking, uint64_t blocks);

/**
 * Ends a booking and sets it to zero.
 * @return KVCA_OK;
 *         KVCA_STALE: its rank is gone or its owner was voided, so the booking no longer exists. It is set to zero,
 *         and the ranks do not change;
 *         KVCA_ERR_NO_BOOKING: it is all zero, as after a release;
 *         KVCA_ERR_FOREIGN_BOOKING: this pool did not make it, or it was changed. It stays as it is;
 *         KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_pool_release(kvca_pool *pool, kvca_booking *booking);

/**
 * Repairs what is left when a process dies in the middle of a call. Every call that looks at ranks or bookings
 * does this first. This function is for hosts that want only the repair, or want to know whether there was one.
 * @param[out] repaired  whether there was something to repair; may be NULL
 * @return KVCA_OK or KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_pool_repair(kvca_pool *pool, bool *repaired);

/** What happened in a pool since it was made. */
typedef struct kvca_counters {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** Requests booked, including `fallbacks`. */
    uint64_t placed;
    /** Requests booked on a rank where they did not fit. */
    uint64_t fallbacks;
    /** Requests not booked, because of KVCA_NONE_ELIGIBLE, KVCA_NONE_FITS or KVCA_NEVER_FITS. */
    uint64_t none;
    /** Calls to release or grow a stale booking. */
    uint64_t stale;
    /** Requests given back by kvca_pool_owner_void(). */
    uint64_t voided;
} kvca_counters;

/**
 * A copy of a pool's ranks. The rows that take requests come first, in the order of their slots. The rows that drain
 * follow. `ranks` has the count of the first kind only, so it is what kvca_pool_place() chooses from. For a request
 * without `eligible`, copy its columns into a kvca_ranks of your own, and set request_blocks and, by row, the
 * multipliers: kvca_tie_set() then lists what kvca_pool_place() draws from, except that the pool skips a rank whose
 * D would exceed UINT64_MAX. What the pointers lead to is in the caller's buffer. The structures there have the
 * library's size.
 */
typedef struct kvca_snapshot {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The number of all rows. */
    size_t count;
    /** The rows that take requests. Behind them, up to `count`, the columns continue with the rows that drain. */
    const kvca_ranks *ranks;
    /** The slot of each row. */
    const uint32_t *slot;
    /** The counters of the pool. */
    const kvca_counters *counters;
    /** The parameters of the pool. */
    const kvca_params *params;
} kvca_snapshot;

/** How many bytes kvca_pool_snapshot() needs; 0 for NULL. Never changes, and needs no lock. */
KVCA_API size_t kvca_pool_snapshot_bytes(const kvca_pool *pool);

/**
 * Copies the ranks into the caller's buffer, so that they can be formatted without the lock.
 * @param buffer         aligned to 8 bytes; everything that the snapshot leads to is in it
 * @param bytes          at least kvca_pool_snapshot_bytes()
 * @param[out] snapshot  valid as long as the buffer
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, or KVCA_ERR_POOL_MEMORY (`buffer` is too small or not aligned)
 */
KVCA_API kvca_status kvca_pool_snapshot(kvca_pool *pool, void *buffer, size_t bytes, kvca_snapshot *snapshot);

/**
 * The number of KV blocks that hold `tokens` tokens: tokens / block_size, rounded up. Needs no lock.
 * @param block_size  the tokens in a block, at least 1; 0 gives UINT64_MAX, which is more than any rank holds
 */
KVCA_API uint64_t kvca_blocks_for_tokens(uint64_t tokens, uint64_t block_size);

#ifdef __cplusplus
}
#endif

#endif
