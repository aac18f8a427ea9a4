/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/index.h"

#include "rule/random.h"

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

uint32_t kvca_pool_find_bucket(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank)
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
    return KVCA_NO_BUCKET;
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

void kvca_pool_index_remove(kvca_pool *pool, uint32_t bucket)
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
