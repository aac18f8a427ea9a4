/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repair of a pool: it redoes the journal, and rebuilds the derived data from the primary data. A death in the
 * middle of this leaves the pool dirty still, and the next repair begins anew.
 */
#include "pool/index.h"
#include "pool/ledger.h"
#include "pool/repair.h"
#include "pool/slots.h"

static void redo_booking(kvca_pool *pool)
{
    const struct kvca_journal *journal = &pool->journal;
    kvca_store(&kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, journal->owner)[journal->slot], journal->blocks);
    kvca_store(&kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, journal->owner)[journal->slot], journal->requests);
}

static void redo_put(kvca_pool *pool)
{
    uint64_t slot = pool->journal.slot;
    kvca_store(&kvca_words(pool, KVCA_PART_CAPACITIES)[slot], pool->journal.blocks);
    kvca_store(&kvca_words(pool, KVCA_PART_STATES)[slot],
               kvca_slot_word(kvca_slot_generation(pool, slot), KVCA_SLOT_ACTIVE));
}

static void empty_index(kvca_pool *pool)
{
    for (uint32_t bucket = 0; bucket < pool->buckets; bucket++) {
        kvca_store_half(&kvca_half_words(pool, KVCA_PART_INDEX)[bucket], 0);
    }
}

/* All that follows of a slot. Its totals are 0 until rebuild_totals() has added them up. */
static void rebuild_slot(kvca_pool *pool, uint32_t slot)
{
    if (kvca_slot_state(pool, slot) != KVCA_SLOT_FREE) {
        kvca_pool_index_add(pool, slot);
        kvca_store(&pool->slots, slot + UINT64_C(1));
    }
    kvca_store(&kvca_words(pool, KVCA_PART_BLOCKS)[slot], 0);
    kvca_store(&kvca_words(pool, KVCA_PART_REQUESTS)[slot], 0);
    kvca_pool_update_slot(pool, slot);
}

/* Adds up what an owner has booked. An owner that is not claimed has nothing, and on a free slot nobody has. */
static void rebuild_totals(kvca_pool *pool, uint64_t owner)
{
    uint64_t *blocks = kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, owner);
    uint64_t *requests = kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, owner);
    const uint64_t *all_blocks = kvca_words(pool, KVCA_PART_BLOCKS);
    const uint64_t *all_requests = kvca_words(pool, KVCA_PART_REQUESTS);
    bool claimed = kvca_owner_is_claimed(pool, owner);
    for (uint32_t slot = 0; slot < pool->max_ranks; slot++) {
        if (!claimed || kvca_slot_state(pool, slot) == KVCA_SLOT_FREE) {
            kvca_store(&blocks[slot], 0);
            kvca_store(&requests[slot], 0);
        }
        kvca_pool_set_totals(pool, slot, all_blocks[slot] + blocks[slot], all_requests[slot] + requests[slot]);
    }
}

void kvca_pool_rebuild(kvca_pool *pool)
{
    if (pool->dirty == KVCA_DIRTY_BOOKING) {
        redo_booking(pool);
    } else if (pool->dirty == KVCA_DIRTY_PUT) {
        redo_put(pool);
    }
    empty_index(pool);
    kvca_store(&pool->slots, 0);
    kvca_store(&pool->free_hint, 0);
    kvca_store(&pool->large, 0);
    for (uint32_t slot = 0; slot < pool->max_ranks; slot++) {
        rebuild_slot(pool, slot);
    }
    for (uint64_t owner = 0; owner < pool->max_owners; owner++) {
        rebuild_totals(pool, owner);
    }
    for (uint32_t slot = 0; slot < pool->slots; slot++) {
        kvca_pool_free_if_drained(pool, slot); /* its last request ended, and the slot was not freed any more */
    }
    kvca_store(&pool->dirty, KVCA_CLEAN);
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
