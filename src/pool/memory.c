/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's block: how large it is, how it is made, and how it is recognised. */
#include <stdlib.h>
#include <string.h>

#include "pool/ledger.h"
#include "pool/repair.h"
#include "pool/slots.h"
#include "rule/params.h"
#include "rule/random.h"

static uint64_t align(uint64_t bytes)
{
    return (bytes + KVCA_POOL_ALIGNMENT - 1) / KVCA_POOL_ALIGNMENT * KVCA_POOL_ALIGNMENT;
}

/* The index is at most half full, so that a search soon reaches an empty bucket. */
static uint32_t bucket_count(uint32_t max_ranks)
{
    uint32_t buckets = 2;
    while (buckets < 2 * max_ranks) {
        buckets *= 2;
    }
    return buckets;
}

/* The limits on ranks and owners keep all sums and products here far below 2^64. */
static uint64_t part_bytes(enum kvca_part part, uint64_t max_ranks, uint64_t max_owners, uint64_t buckets)
{
    switch (part) {
    case KVCA_PART_READY:
        return (max_ranks + KVCA_GROUP - 1) / KVCA_GROUP * sizeof(struct kvca_ready);
    case KVCA_PART_DP_RANKS:
        return max_ranks * sizeof(uint32_t);
    case KVCA_PART_PLACEABLE:
    case KVCA_PART_SCRATCH:
        return (max_ranks + 63) / 64 * sizeof(uint64_t);
    case KVCA_PART_INDEX:
        return buckets * sizeof(uint32_t);
    case KVCA_PART_OWNERS:
        return max_owners * sizeof(struct kvca_owner_entry);
    case KVCA_PART_OWNER_BLOCKS:
    case KVCA_PART_OWNER_REQUESTS:
        return max_owners * max_ranks * sizeof(uint64_t);
    default:
        return max_ranks * sizeof(uint64_t);
    }
}

/*
 * Writes the head of a pool of this size. Only the fields that identify the pool are set, and the rest is zero.
 * Returns false if there can be no such pool.
 */
static bool lay_out(uint32_t max_ranks, uint32_t max_owners, struct kvca_pool *head)
{
    if (max_ranks > KVCA_POOL_MAX_RANKS || max_owners > KVCA_POOL_MAX_OWNERS) {
        return false;
    }
    memset(head, 0, sizeof *head);
    head->magic = KVCA_POOL_MAGIC;
    head->layout = KVCA_POOL_LAYOUT;
    head->max_ranks = max_ranks;
    head->max_owners = max_owners;
    head->buckets = bucket_count(max_ranks);
    uint64_t offset = KVCA_POOL_READY_OFFSET;
    for (int part = 0; part < KVCA_PARTS; part++) {
        head->offsets[part] = offset;
        offset += align(part_bytes((enum kvca_part)part, max_ranks, max_owners, head->buckets));
    }
    head->bytes = offset;
    return offset <= SIZE_MAX / 2;
}

size_t kvca_pool_bytes(uint32_t max_ranks, uint32_t max_owners)
{
    struct kvca_pool head;
    return lay_out(max_ranks, max_owners, &head) ? (size_t)head.bytes : 0;
}

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % KVCA_POOL_ALIGNMENT == 0;
}

static void store_params(kvca_pool *pool, uint64_t bank, const kvca_params *params)
{
    pool->params[bank] = (struct kvca_stored_params){
        .capacity_fraction = params->capacity_fraction,
        .decode_active_request_weight = params->decode_active_request_weight,
        .capacity_blocks = params->capacity_blocks,
        .count_priority = params->count_priority,
    };
    pool->terms[bank] = kvca_terms_of(params);
}

/* Checks the arguments for a new pool, copies the parameters, and writes the head. */
static kvca_status prepare(uint32_t max_ranks, uint32_t max_owners, const kvca_params *params, kvca_params *own,
                           struct kvca_pool *head)
{
    kvca_status status = kvca_params_take(own, params);
    if (status != KVCA_OK) {
        return status;
    }
    return lay_out(max_ranks, max_owners, head) ? KVCA_OK : KVCA_ERR_POOL_SIZE;
}

/*
 * Makes an empty pool in memory that is large enough and aligned. The magic number is cleared first and set last, so
 * that a process that dies in between leaves no pool.
 */
static kvca_pool *make(void *memory, const struct kvca_pool *head, const kvca_params *params)
{
    kvca_pool *pool = memory;
    uint64_t seed = kvca_unpredictable_seed(memory);
    kvca_store(&pool->magic, 0);
    memset((char *)memory + sizeof pool->magic, 0, (size_t)head->bytes - sizeof pool->magic);
    memcpy((char *)memory + sizeof pool->magic, (const char *)head + sizeof head->magic,
           sizeof *head - sizeof head->magic);
    store_params(pool, 0, params);
    pool->first_claim = (uint32_t)kvca_mix(seed); /* so that bookings of another pool are recognised */
    atomic_init(&pool->generator, seed);
    for (uint64_t owner = 0; owner < pool->max_owners; owner++) {
        kvca_owner_entry(pool, owner)->state = pool->first_claim << 32;
    }
    kvca_store(&pool->magic, head->magic);
    return pool;
}

kvca_status kvca_pool_init(void *memory, size_t bytes, uint32_t max_ranks, uint32_t max_owners,
                           const kvca_params *params, kvca_pool **pool)
{
    struct kvca_pool head;
    kvca_params own;
    if (!memory || !pool) {
        return KVCA_ERR_NULL;
    }
    kvca_status status = prepare(max_ranks, max_owners, params, &own, &head);
    if (status != KVCA_OK) {
        return status;
    }
    if (bytes < head.bytes || !is_aligned(memory)) {
        return KVCA_ERR_POOL_MEMORY;
    }
    *pool = make(memory, &head, &own);
    return KVCA_OK;
}

/*
 * Whether everything that the head leads to is inside the block. `layout` is the head of a pool of the same size.
 * This holds at every moment of every call, so another process may be in a call now.
 */
static bool leads_inside(const kvca_pool *pool, const struct kvca_pool *layout)
{
    bool redoes_booking = pool->dirty == KVCA_DIRTY_BOOKING;
    bool redoes = redoes_booking || pool->dirty == KVCA_DIRTY_PUT;
    return pool->slots <= layout->max_ranks && pool->free_hint <= layout->max_ranks &&
           (!redoes || pool->journal.slot < layout->max_ranks) &&
           (!redoes_booking || pool->journal.owner < layout->max_owners);
}

kvca_status kvca_pool_attach(void *memory, size_t bytes, kvca_pool **pool)
{
    struct kvca_pool head;
    if (!memory || !pool) {
        return KVCA_ERR_NULL;
    }
    if (!is_aligned(memory) || bytes < sizeof head) {
        return KVCA_ERR_POOL_MEMORY;
    }
    kvca_pool *found = memory;
    bool same = found->magic == KVCA_POOL_MAGIC && found->layout == KVCA_POOL_LAYOUT &&
                lay_out(found->max_ranks, found->max_owners, &head) && found->buckets == head.buckets &&
                found->bytes == head.bytes && memcmp(found->offsets, head.offsets, sizeof head.offsets) == 0 &&
                leads_inside(found, &head);
    if (!same) {
        return KVCA_ERR_POOL_LAYOUT;
    }
    if (bytes < head.bytes) {
        return KVCA_ERR_POOL_MEMORY;
    }
    *pool = found;
    return KVCA_OK;
}

kvca_status kvca_pool_new(uint32_t max_ranks, uint32_t max_owners, const kvca_params *params, kvca_pool **pool)
{
    struct kvca_pool head;
    kvca_params own;
    if (!pool) {
        return KVCA_ERR_NULL;
    }
    kvca_status status = prepare(max_ranks, max_owners, params, &own, &head);
    if (status != KVCA_OK) {
        return status;
    }
    void *memory = aligned_alloc(KVCA_POOL_ALIGNMENT, (size_t)head.bytes);
    if (!memory) {
        return KVCA_ERR_NO_MEMORY;
    }
    *pool = make(memory, &head, &own);
    return KVCA_OK;
}

void kvca_pool_free(kvca_pool *pool)
{
    free(pool);
}

uint32_t kvca_pool_max_ranks(const kvca_pool *pool)
{
    return pool ? pool->max_ranks : 0;
}

uint32_t kvca_pool_max_owners(const kvca_pool *pool)
{
    return pool ? pool->max_owners : 0;
}

kvca_status kvca_pool_set_params(kvca_pool *pool, const kvca_params *params)
{
    if (!pool) {
        return KVCA_ERR_NULL;
    }
    kvca_params own;
    kvca_status status = kvca_params_take(&own, params);
    if (status != KVCA_OK) {
        return status;
    }
    kvca_pool_heal(pool);
    uint64_t other = (pool->bank & 1) ^ 1;
    store_params(pool, other, &own);
    kvca_store(&pool->dirty, KVCA_DIRTY);
    kvca_store(&pool->bank, other);
    for (uint32_t slot = 0; slot < pool->slots; slot++) {
        kvca_pool_update_slot(pool, slot);
    }
    kvca_store(&pool->dirty, KVCA_CLEAN);
    return KVCA_OK;
}

kvca_status kvca_pool_set_seed(kvca_pool *pool, uint64_t seed)
{
    if (!pool) {
        return KVCA_ERR_NULL;
    }
    atomic_store_explicit(&pool->generator, seed, memory_order_relaxed);
    return KVCA_OK;
}
