/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool after a death: the journal is redone, and what follows from the truth is rebuilt from it. A death in the
 * middle of this leaves the pool dirty still, and the next repair begins anew.
 */
#include "ledger.h"
#include "select.h"

static void redo_journal(kvca_pool *pool)
{
    const struct kvca_journal *journal = &pool->journal;
    kvca_store(&kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, journal->owner)[journal->slot], journal->blocks);
    kvca_store(&kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, journal->owner)[journal->slot], journal->requests);
}

/* Nothing is booked by an owner that is not claimed, nor on a slot that is free: sums up the rest. */
static void rebuild_totals(kvca_pool *pool, uint32_t slot)
{
    uint64_t blocks = 0;
    uint64_t requests = 0;
    for (uint64_t owner = 0; owner < pool->max_owners; owner++) {
        uint64_t *owner_blocks = &kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, owner)[slot];
        uint64_t *owner_requests = &kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, owner)[slot];
        if (!kvca_owner_is_claimed(pool, owner) || kvca_slot_state(pool, slot) == KVCA_SLOT_FREE) {
            kvca_store(owner_blocks, 0);
            kvca_store(owner_requests, 0);
        }
        blocks += *owner_blocks;
        requests += *owner_requests;
    }
    kvca_store(&kvca_words(pool, KVCA_PART_BLOCKS)[slot], blocks);
    kvca_store(&kvca_words(pool, KVCA_PART_REQUESTS)[slot], requests);
}

static void empty_index(kvca_pool *pool)
{
    for (uint32_t bucket = 0; bucket < pool->buckets; bucket++) {
        kvca_store_half(&kvca_half_words(pool, KVCA_PART_INDEX)[bucket], 0);
    }
}

static void rebuild_slot(kvca_pool *pool, uint32_t slot)
{
    kvca_params params = kvca_pool_params(pool);
    enum kvca_slot_state state = kvca_slot_state(pool, slot);
    kvca_store(&kvca_words(pool, KVCA_PART_LIMITS)[slot],
               kvca_limit(&params, kvca_words(pool, KVCA_PART_CAPACITIES)[slot]));
    kvca_pool_set_placeable(pool, slot, state == KVCA_SLOT_ACTIVE);
    if (state != KVCA_SLOT_FREE) {
        kvca_pool_index_add(pool, slot);
        kvca_store(&pool->slots, slot + UINT64_C(1));
    }
    rebuild_totals(pool, slot);
}

/* A rank that drained while its slot could not be freed. */
static void free_drained(kvca_pool *pool)
{
    for (uint32_t slot = 0; slot < pool->slots; slot++) {
        kvca_pool_free_if_drained(pool, slot);
    }
}

static void rebuild(kvca_pool *pool)
{
    if (pool->dirty == KVCA_DIRTY_JOURNAL) {
        redo_journal(pool);
    }
    empty_index(pool);
    kvca_store(&pool->slots, 0);
    for (uint32_t slot = 0; slot < pool->max_ranks; slot++) {
        rebuild_slot(pool, slot);
    }
    free_drained(pool);
    kvca_store(&pool->dirty, KVCA_CLEAN);
}

void kvca_pool_heal(kvca_pool *pool)
{
    if (pool->dirty != KVCA_CLEAN) {
        rebuild(pool);
    }
}

kvca_status kvca_pool_repair(kvca_pool *pool, bool *repaired)
{
    if (!pool) {
        return KVCA_ERR_NULL;
    }
    if (repaired) {
        *repaired = pool->dirty != KVCA_CLEAN;
    }
    kvca_pool_heal(pool);
    return KVCA_OK;
}
