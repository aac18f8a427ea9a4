/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a pool in its block, and how the block is written.
 *
 * Some of the data is primary. The rest is derived: it can be computed from the primary data again, which
 * kvca_pool_rebuild() does.
 *
 *     primary  the parameters; the state of each slot, and its rank unless it is free; the state of each owner; what
 *              each claimed owner has booked on each slot that has a rank
 *     derived  for each slot: the totals, the limit, the key, the room, whether it takes requests, and whether its
 *              capacity is unknown; the index of identities
 *
 * A change of the primary data is one store of one word. So a process that is killed before or after it leaves the
 * old data or the new data. When two words must change together, such as D and N of a booking, their new values are
 * first written to the journal. Then the store that marks the pool as dirty makes the change final. A process that
 * finds the pool dirty does again what the journal says, and computes the derived data again.
 */
#ifndef KVCA_LEDGER_H
#define KVCA_LEDGER_H

#include <stdatomic.h>

#include <kvca/pool.h>

#include "vector/vector.h"

/* "kvcapool" in ASCII, and a number that rises when the layout of the block changes. */
#define KVCA_POOL_MAGIC UINT64_C(0x6c6f6f706163766b)
#define KVCA_POOL_LAYOUT 5

/* The parts of the block, in this order. They follow its head. */
enum kvca_part {
    KVCA_PART_READY,          /* struct kvca_ready for each group of slots */
    KVCA_PART_BLOCKS,         /* uint64_t for each slot: D, the sum over owners */
    KVCA_PART_REQUESTS,       /* uint64_t for each slot: N, the sum over owners */
    KVCA_PART_LIMITS,         /* uint64_t for each slot: kvca_limit() */
    KVCA_PART_CAPACITIES,     /* uint64_t for each slot: total_kv_blocks as reported */
    KVCA_PART_WORKERS,        /* uint64_t for each slot: worker_id */
    KVCA_PART_STATES,         /* uint64_t for each slot: generation and enum kvca_slot_state */
    KVCA_PART_DP_RANKS,       /* uint32_t for each slot */
    KVCA_PART_PLACEABLE,      /* a bit for each slot: whether it takes requests */
    KVCA_PART_SCRATCH,        /* a bit for each slot, used within one call */
    KVCA_PART_INDEX,          /* uint32_t for each bucket: the slot + 1 of a rank, placed by its hash; 0 for none */
    KVCA_PART_OWNERS,         /* struct kvca_owner_entry for each owner */
    KVCA_PART_OWNER_BLOCKS,   /* uint64_t for each owner and slot */
    KVCA_PART_OWNER_REQUESTS, /* uint64_t for each owner and slot */
    KVCA_PARTS
};

enum kvca_slot_state { KVCA_SLOT_FREE, KVCA_SLOT_ACTIVE, KVCA_SLOT_DRAINING };

enum kvca_dirt {
    KVCA_CLEAN,
    KVCA_DIRTY,         /* the derived data may be out of date */
    KVCA_DIRTY_BOOKING, /* in addition, the journal has a booking that may not be done yet */
    KVCA_DIRTY_PUT,     /* in addition, the journal has the update of a rank that may not be done yet */
};

/* kvca_params in a fixed layout. */
struct kvca_stored_params {
    double capacity_fraction;
    double decode_active_request_weight;
    uint64_t capacity_blocks;
    uint64_t count_priority;
};

/* kvca_counters in a fixed layout. */
struct kvca_stored_counters {
    uint64_t placed;
    uint64_t fallbacks;
    uint64_t none;
    uint64_t stale;
    uint64_t voided;
};

#define KVCA_OWNER_CLAIMED 1

struct kvca_owner_entry {
    uint64_t state; /* generation in the upper half, and KVCA_OWNER_CLAIMED */
    uint64_t id;
};

/*
 * For KVCA_DIRTY_BOOKING: what an owner, given by its index, will have booked on a slot. For KVCA_DIRTY_PUT: `blocks`
 * is the capacity that the rank of the slot will have, and the rank will take requests.
 */
struct kvca_journal {
    uint64_t owner;
    uint64_t slot;
    uint64_t blocks;
    uint64_t requests;
};

/*
 * The head of the block. Its members have fixed widths, so that programs of any word size lay it out in the same way.
 */
struct kvca_pool {
    uint64_t magic;
    uint32_t layout;
    uint32_t max_ranks;
    uint32_t max_owners;
    uint32_t buckets; /* of the index; a power of two */
    uint64_t bytes;
    uint64_t offsets[KVCA_PARTS];
    uint64_t dirty; /* enum kvca_dirt */
    struct kvca_journal journal;
    uint64_t bank; /* which of the two parameter sets is in force */
    struct kvca_stored_params params[2];
    struct kvca_terms terms[2]; /* kvca_terms_of() each set */
    _Atomic uint64_t generator;
    uint64_t slots;       /* this slot and those after it have no rank */
    uint64_t free_hint;   /* no slot before this one is free */
    uint64_t first_claim; /* the first generation of all owners */
    uint64_t large;       /* how many slots have totals that are too large for a key */
    struct kvca_stored_counters counters;
};

_Static_assert(sizeof(struct kvca_pool) == 400, "the head is laid out alike everywhere; else raise KVCA_POOL_LAYOUT");

/* The first part begins at the same place in every pool, so that kvca_pool_place() need not read its offset. */
#define KVCA_POOL_READY_OFFSET 448

_Static_assert(KVCA_POOL_READY_OFFSET >= sizeof(struct kvca_pool) &&
                   KVCA_POOL_READY_OFFSET % KVCA_POOL_ALIGNMENT == 0,
               "it lies behind the head, aligned");

static inline struct kvca_ready *kvca_pool_ready(kvca_pool *pool)
{
    return (struct kvca_ready *)(void *)((char *)pool + KVCA_POOL_READY_OFFSET);
}

static inline void *kvca_part(kvca_pool *pool, enum kvca_part part)
{
    return (char *)pool + pool->offsets[part];
}

static inline uint64_t *kvca_words(kvca_pool *pool, enum kvca_part part)
{
    return kvca_part(pool, part);
}

static inline uint32_t *kvca_half_words(kvca_pool *pool, enum kvca_part part)
{
    return kvca_part(pool, part);
}

/* What one owner has booked on all slots: KVCA_PART_OWNER_BLOCKS or KVCA_PART_OWNER_REQUESTS. */
static inline uint64_t *kvca_owner_row(kvca_pool *pool, enum kvca_part part, uint64_t owner)
{
    return kvca_words(pool, part) + owner * pool->max_ranks;
}

static inline struct kvca_owner_entry *kvca_owner_entry(kvca_pool *pool, uint64_t owner)
{
    return (struct kvca_owner_entry *)kvca_part(pool, KVCA_PART_OWNERS) + owner;
}

static inline bool kvca_owner_is_claimed(kvca_pool *pool, uint64_t owner)
{
    return (kvca_owner_entry(pool, owner)->state & KVCA_OWNER_CLAIMED) != 0;
}

/* The tests kill the process at each of these points in turn. */
#ifdef KVCA_FAULT_POINTS
void kvca_fault_point(void);
#else
#define kvca_fault_point() ((void)0)
#endif

/*
 * Stores that are atomic and happen in the order of the program. So if a process dies, it has done the stores up to
 * some point and none after it. Release order keeps the compiler from changing the order, even in a single process.
 */
static inline void kvca_store(uint64_t *word, uint64_t value)
{
    kvca_fault_point();
    atomic_store_explicit((volatile _Atomic uint64_t *)word, value, memory_order_release);
}

static inline void kvca_store_half(uint32_t *word, uint32_t value)
{
    kvca_fault_point();
    atomic_store_explicit((volatile _Atomic uint32_t *)word, value, memory_order_release);
}

/* The word of a slot's state. The generation of a slot rises whenever the slot becomes free. */
static inline uint64_t kvca_slot_word(uint32_t generation, enum kvca_slot_state state)
{
    return (uint64_t)generation << 32 | (uint64_t)state;
}

static inline enum kvca_slot_state kvca_slot_state(kvca_pool *pool, uint64_t slot)
{
    return (enum kvca_slot_state)(uint32_t)kvca_words(pool, KVCA_PART_STATES)[slot];
}

static inline uint32_t kvca_slot_generation(kvca_pool *pool, uint64_t slot)
{
    return (uint32_t)(kvca_words(pool, KVCA_PART_STATES)[slot] >> 32);
}

/* The parameters in force. */
static inline kvca_params kvca_pool_params(kvca_pool *pool)
{
    const struct kvca_stored_params *params = &pool->params[pool->bank & 1];
    return (kvca_params){
        .size = sizeof(kvca_params),
        .capacity_fraction = params->capacity_fraction,
        .count_priority = params->count_priority != 0,
        .decode_active_request_weight = params->decode_active_request_weight,
        .capacity_blocks = params->capacity_blocks,
    };
}

/* The terms of the rule for these parameters. */
static inline const struct kvca_terms *kvca_pool_terms(kvca_pool *pool)
{
    return &pool->terms[pool->bank & 1];
}

/* The smallest number of blocks that does not fit, at most UINT32_MAX. 0 if the slot takes no requests. */
static inline uint32_t kvca_pool_room(kvca_pool *pool, uint64_t slot, uint64_t blocks)
{
    uint64_t limit = kvca_words(pool, KVCA_PART_LIMITS)[slot];
    if (kvca_slot_state(pool, slot) != KVCA_SLOT_ACTIVE || blocks > limit) {
        return 0;
    }
    return limit - blocks < UINT32_MAX ? (uint32_t)(limit - blocks) + 1 : UINT32_MAX;
}

/* Sets the totals of a slot, and its key and room. The pool is dirty before and after. */
static inline void kvca_pool_set_totals(kvca_pool *pool, uint64_t slot, uint64_t blocks, uint64_t requests)
{
    uint64_t *all_blocks = &kvca_words(pool, KVCA_PART_BLOCKS)[slot];
    uint64_t *all_requests = &kvca_words(pool, KVCA_PART_REQUESTS)[slot];
    bool was_large = kvca_is_large(*all_blocks, *all_requests);
    bool is_large = kvca_is_large(blocks, requests);
    kvca_store(all_blocks, blocks);
    kvca_store(all_requests, requests);
    if (was_large != is_large) {
        kvca_store(&pool->large, is_large ? pool->large + 1 : pool->large - 1);
    }
    struct kvca_ready *ready = &kvca_pool_ready(pool)[slot / KVCA_GROUP];
    kvca_store(&ready->keys[slot % KVCA_GROUP],
               kvca_packed_key(kvca_pool_terms(pool)->count_priority, blocks, requests));
    kvca_store_half(&ready->room[slot % KVCA_GROUP], kvca_pool_room(pool, slot, blocks));
}

/* Writes the index in an owner's handle to `*index`. Returns false if this pool has no such index. */
static inline bool kvca_owner_index(kvca_pool *pool, kvca_owner owner, uint64_t *index)
{
    *index = (uint64_t)(uint32_t)owner - 1;
    return (uint32_t)owner != 0 && *index < pool->max_owners;
}

/* Writes the index of a claimed owner to `*index`. Returns false if the owner is not claimed. */
static inline bool kvca_pool_find_owner(kvca_pool *pool, kvca_owner owner, uint64_t *index)
{
    return kvca_owner_index(pool, owner, index) &&
           kvca_owner_entry(pool, *index)->state == ((owner & ~(uint64_t)UINT32_MAX) | KVCA_OWNER_CLAIMED);
}

/* Whether this pool ever gave out `owner`. */
bool kvca_pool_knew_owner(kvca_pool *pool, kvca_owner owner);

#endif
