/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a pool's ranks, which can be read without the lock. */
#include "pool/ledger.h"
#include "pool/repair.h"
#include "size.h"

/* The first part of the caller's buffer. */
struct head {
    kvca_ranks ranks;
    kvca_counters counters;
    kvca_params params;
};

/* Rounded up, because some 32-bit machines align the structures only to 4 bytes. */
#define HEAD_BYTES ((sizeof(struct head) + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t))

/* The columns of a snapshot. They follow the head, the wide ones first. */
struct columns {
    uint64_t *worker_id;
    uint64_t *decode_cost_blocks;
    uint64_t *active_requests;
    uint64_t *total_kv_blocks;
    uint32_t *dp_rank;
    uint32_t *slot;
};

#define ROW_BYTES (4 * sizeof(uint64_t) + 2 * sizeof(uint32_t))

size_t kvca_pool_snapshot_bytes(const kvca_pool *pool)
{
    return pool ? HEAD_BYTES + (size_t)pool->max_ranks * ROW_BYTES : 0;
}

static struct columns lay_columns(void *memory, size_t rows)
{
    uint64_t *wide = memory;
    uint32_t *narrow = (uint32_t *)(wide + 4 * rows);
    return (struct columns){
        .worker_id = wide,
        .decode_cost_blocks = wide + rows,
        .active_requests = wide + 2 * rows,
        .total_kv_blocks = wide + 3 * rows,
        .dp_rank = narrow,
        .slot = narrow + rows,
    };
}

/* Copies the slots that are in this state to the rows from `row` on. Returns the number of rows after that. */
static size_t copy_slots(kvca_pool *pool, enum kvca_slot_state state, const struct columns *columns, size_t row)
{
    for (uint32_t slot = 0; slot < pool->slots; slot++) {
        if (kvca_slot_state(pool, slot) != state) {
            continue;
        }
        columns->worker_id[row] = kvca_words(pool, KVCA_PART_WORKERS)[slot];
        columns->decode_cost_blocks[row] = kvca_words(pool, KVCA_PART_BLOCKS)[slot];
        columns->active_requests[row] = kvca_words(pool, KVCA_PART_REQUESTS)[slot];
        columns->total_kv_blocks[row] = kvca_words(pool, KVCA_PART_CAPACITIES)[slot];
        columns->dp_rank[row] = kvca_half_words(pool, KVCA_PART_DP_RANKS)[slot];
        columns->slot[row] = slot;
        row++;
    }
    return row;
}

kvca_status kvca_pool_snapshot(kvca_pool *pool, void *buffer, size_t bytes, kvca_snapshot *snapshot)
{
    if (!pool || !buffer || !snapshot) {
        return KVCA_ERR_NULL;
    }
    if (kvca_check_snapshot(snapshot) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    if (bytes < kvca_pool_snapshot_bytes(pool) || (uintptr_t)buffer % sizeof(uint64_t) != 0) {
        return KVCA_ERR_POOL_MEMORY;
    }
    kvca_pool_heal(pool);
    struct head *head = buffer;
    struct columns columns = lay_columns((char *)buffer + HEAD_BYTES, pool->max_ranks);
    size_t placeable = copy_slots(pool, KVCA_SLOT_ACTIVE, &columns, 0);
    size_t all = copy_slots(pool, KVCA_SLOT_DRAINING, &columns, placeable);
    *head = (struct head){
        .ranks = {.size = sizeof head->ranks,
                  .count = placeable,
                  .worker_id = columns.worker_id,
                  .dp_rank = columns.dp_rank,
                  .decode_cost_blocks = columns.decode_cost_blocks,
                  .active_requests = columns.active_requests,
                  .total_kv_blocks = columns.total_kv_blocks},
        .counters = {.size = sizeof head->counters,
                     .placed = pool->counters.placed,
                     .fallbacks = pool->counters.fallbacks,
                     .none = pool->counters.none,
                     .stale = pool->counters.stale,
                     .voided = pool->counters.voided},
        .params = kvca_pool_params(pool),
    };
    const kvca_snapshot taken = {.count = all,
                                 .ranks = &head->ranks,
                                 .slot = columns.slot,
                                 .counters = &head->counters,
                                 .params = &head->params};
    kvca_write_snapshot(snapshot, &taken);
    return KVCA_OK;
}
