/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a pool: put, drain, drop, and the index that finds them by identity. */
#include "pool/ledger.h"
#include "rule/random.h"
#include "size.h"

#define NO_BUCKET UINT32_MAX

/* Where the search for a rank begins. */
static uint32_t home(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank)
{
    return (uint32_t)kvca_hash_rank(worker_id, dp_rank) & (pool->buckets - 1);
}

static uint32_t following(kvca_pool *pool, uint32_t bucket)
{
    return (bucket + 1) & (pool->buckets - 1);
}

static uint32_t home_of_slot(kvca_pool *pool, uint32_t slot)
{
    return home(pool, kvca_words(pool, KVCA_PART_WORKERS)[slot], kvca_half_words(pool, KVCA_PART_DP_RANKS)[slot]);
}

/* The bucket that holds a rank; NO_BUCKET when the pool has no such rank. */
static uint32_t find_bucket(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank)
{
    const uint32_t *index = kvca_half_words(pool, KVCA_PART_INDEX);
    uint32_t bucket = home(pool, worker_id, dp_rank);
    for (; index[bucket] != 0; bucket = following(pool, bucket)) {
        uint32_t slot = index[bucket] - 1;
        if (kvca_words(pool, KVCA_PART_WORKERS)[slot] == worker_id &&
            kvca_half_words(pool, KVCA_PART_DP_RANKS)[slot] == dp_rank) {
            return bucket;
        }
    }
    return NO_BUCKET;
}

void kvca_pool_index_add(kvca_pool *pool, uint32_t slot)
{
    uint32_t *index = kvca_half_words(pool, KVCA_PART_INDEX);
    uint32_t bucket = home_of_slot(pool, slot);
    while (index[bucket] != 0) {
        bucket = following(pool, bucket);
    }
    kvca_store_half(&index[bucket], slot + 1);
}

/* Whether an entry that belongs at `home` may move from `from` back to `to`: searches for it pass `to` first. */
static bool may_move(kvca_pool *pool, uint32_t home_bucket, uint32_t from, uint32_t to)
{
    uint32_t mask = pool->buckets - 1;
    return ((from - home_bucket) & mask) >= ((from - to) & mask);
}

/* Empties a bucket and moves later entries up, so that no search ends too early. */
static void index_remove(kvca_pool *pool, uint32_t bucket)
{
    uint32_t *index = kvca_half_words(pool, KVCA_PART_INDEX);
    uint32_t gap = bucket;
    for (uint32_t next = following(pool, gap); index[next] != 0; next = following(pool, next)) {
        if (may_move(pool, home_of_slot(pool, index[next] - 1), next, gap)) {
            kvca_store_half(&index[gap], index[next]);
            gap = next;
        }
    }
    kvca_store_half(&index[gap], 0);
}

static void set_state(kvca_pool *pool, uint32_t slot, uint32_t generation, enum kvca_slot_state state)
{
    kvca_store(&kvca_words(pool, KVCA_PART_STATES)[slot], kvca_slot_word(generation, state));
}

static void clear_bookings(kvca_pool *pool, uint32_t slot)
{
    if (kvca_words(pool, KVCA_PART_REQUESTS)[slot] == 0) {
        return; /* then no owner has anything here */
    }
    for (uint64_t owner = 0; owner < pool->max_owners; owner++) {
        kvca_store(&kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, owner)[slot], 0);
        kvca_store(&kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, owner)[slot], 0);
    }
    kvca_pool_set_totals(pool, slot, 0, 0);
}

/* Keeps `slots` and `free_hint` near to what they bound. */
static void note_free(kvca_pool *pool, uint32_t slot)
{
    if (slot < pool->free_hint) {
        kvca_store(&pool->free_hint, slot);
    }
    while (pool->slots > 0 && kvca_slot_state(pool, pool->slots - 1) == KVCA_SLOT_FREE) {
        kvca_store(&pool->slots, pool->slots - 1);
    }
}

/* Marks a slot as free and clears what belongs to it. The pool is dirty before and after. */
static void free_slot(kvca_pool *pool, uint32_t slot)
{
    uint32_t bucket =
        find_bucket(pool, kvca_words(pool, KVCA_PART_WORKERS)[slot], kvca_half_words(pool, KVCA_PART_DP_RANKS)[slot]);
    set_state(pool, slot, kvca_slot_generation(pool, slot) + 1, KVCA_SLOT_FREE);
    index_remove(pool, bucket);
    kvca_pool_update_slot(pool, slot);
    clear_bookings(pool, slot);
    note_free(pool, slot);
}

void kvca_pool_free_if_drained(kvca_pool *pool, uint32_t slot)
{
    if (kvca_slot_state(pool, slot) == KVCA_SLOT_DRAINING && kvca_words(pool, KVCA_PART_REQUESTS)[slot] == 0) {
        free_slot(pool, slot);
    }
}

/* A slot whose generations are used up is not taken again, so that an old booking never matches a new rank. */
static bool may_be_taken(kvca_pool *pool, uint32_t slot)
{
    return kvca_slot_state(pool, slot) == KVCA_SLOT_FREE && kvca_slot_generation(pool, slot) < UINT32_MAX;
}

/* The first slot that may be taken; max_ranks when there is none. */
static uint32_t first_free(kvca_pool *pool)
{
    uint32_t slot = (uint32_t)pool->free_hint;
    while (slot < pool->max_ranks && !may_be_taken(pool, slot)) {
        slot++;
    }
    return slot;
}

static kvca_status add_rank(kvca_pool *pool, const kvca_rank *rank, uint32_t *slot)
{
    *slot = first_free(pool);
    if (*slot == pool->max_ranks) {
        return KVCA_ERR_POOL_FULL;
    }
    kvca_store(&pool->dirty, KVCA_DIRTY);
    kvca_store(&kvca_words(pool, KVCA_PART_WORKERS)[*slot], rank->worker_id);
    kvca_store_half(&kvca_half_words(pool, KVCA_PART_DP_RANKS)[*slot], rank->dp_rank);
    kvca_store(&kvca_words(pool, KVCA_PART_CAPACITIES)[*slot], rank->total_kv_blocks);
    set_state(pool, *slot, kvca_slot_generation(pool, *slot), KVCA_SLOT_ACTIVE);
    kvca_pool_update_slot(pool, *slot);
    kvca_store(&pool->free_hint, *slot + UINT64_C(1));
    if (*slot >= pool->slots) {
        kvca_store(&pool->slots, *slot + UINT64_C(1));
    }
    kvca_pool_index_add(pool, *slot);
    kvca_store(&pool->dirty, KVCA_CLEAN);
    return KVCA_OK;
}

static void update_rank(kvca_pool *pool, uint32_t slot, const kvca_rank *rank)
{
    kvca_store(&pool->journal.slot, slot);
    kvca_store(&pool->journal.blocks, rank->total_kv_blocks);
    kvca_store(&pool->dirty, KVCA_DIRTY_PUT);
    kvca_store(&kvca_words(pool, KVCA_PART_CAPACITIES)[slot], rank->total_kv_blocks);
    set_state(pool, slot, kvca_slot_generation(pool, slot), KVCA_SLOT_ACTIVE);
    kvca_pool_update_slot(pool, slot);
    kvca_store(&pool->dirty, KVCA_CLEAN);
}

kvca_status kvca_pool_put(kvca_pool *pool, const kvca_rank *rank, kvca_put *put)
{
    if (!pool || !rank) {
        return KVCA_ERR_NULL;
    }
    kvca_rank own;
    if (kvca_read_rank(&own, rank) != KVCA_OK || (put && kvca_check_put(put) != KVCA_OK)) {
        return KVCA_ERR_SIZE;
    }
    uint32_t slot;
    bool known = kvca_pool_find(pool, own.worker_id, own.dp_rank, &slot) == KVCA_OK;
    if (known) {
        update_rank(pool, slot, &own);
    } else {
        kvca_status status = add_rank(pool, &own, &slot);
        if (status != KVCA_OK) {
            return status;
        }
    }
    if (put) {
        const kvca_put done = {
            .slot = slot,
            .generation = kvca_slot_generation(pool, slot),
            .added = !known,
            .unknown_capacity = kvca_capacity_is_unknown(kvca_pool_terms(pool), own.total_kv_blocks),
        };
        kvca_write_put(put, &done);
    }
    return KVCA_OK;
}

kvca_status kvca_pool_find(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank, uint32_t *slot)
{
    if (!pool || !slot) {
        return KVCA_ERR_NULL;
    }
    kvca_pool_heal(pool);
    uint32_t bucket = find_bucket(pool, worker_id, dp_rank);
    if (bucket == NO_BUCKET) {
        return KVCA_ERR_NO_SUCH_RANK;
    }
    *slot = kvca_half_words(pool, KVCA_PART_INDEX)[bucket] - 1;
    return KVCA_OK;
}

kvca_status kvca_pool_drain(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank)
{
    uint32_t slot;
    kvca_status status = kvca_pool_find(pool, worker_id, dp_rank, &slot);
    if (status != KVCA_OK) {
        return status;
    }
    kvca_store(&pool->dirty, KVCA_DIRTY);
    set_state(pool, slot, kvca_slot_generation(pool, slot), KVCA_SLOT_DRAINING);
    kvca_pool_update_slot(pool, slot);
    kvca_pool_free_if_drained(pool, slot);
    kvca_store(&pool->dirty, KVCA_CLEAN);
    return KVCA_OK;
}

kvca_status kvca_pool_drop(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank)
{
    uint32_t slot;
    kvca_status status = kvca_pool_find(pool, worker_id, dp_rank, &slot);
    if (status != KVCA_OK) {
        return status;
    }
    kvca_store(&pool->dirty, KVCA_DIRTY);
    free_slot(pool, slot);
    kvca_store(&pool->dirty, KVCA_CLEAN);
    return KVCA_OK;
}
