/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a pool: put, find, drain, drop. */
#include "pool/index.h"
#include "pool/ledger.h"
#include "pool/repair.h"
#include "pool/slots.h"
#include "size.h"

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
    kvca_pool_set_state(pool, *slot, kvca_slot_generation(pool, *slot), KVCA_SLOT_ACTIVE);
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
    kvca_pool_set_state(pool, slot, kvca_slot_generation(pool, slot), KVCA_SLOT_ACTIVE);
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
    uint32_t bucket = kvca_pool_find_bucket(pool, worker_id, dp_rank);
    if (bucket == KVCA_NO_BUCKET) {
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
    kvca_pool_set_state(pool, slot, kvca_slot_generation(pool, slot), KVCA_SLOT_DRAINING);
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
    kvca_pool_free_slot(pool, slot);
    kvca_store(&pool->dirty, KVCA_CLEAN);
    return KVCA_OK;
}
