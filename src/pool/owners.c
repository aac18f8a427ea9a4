/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of a pool. An owner's handle holds its generation and its index + 1. The state of its entry holds the
 * generation and whether it is claimed. The generation starts at first_claim and rises with every claim.
 */
#include "pool/ledger.h"
#include "pool/repair.h"
#include "pool/slots.h"
#include "size.h"

static uint32_t generation_of(kvca_pool *pool, uint64_t index)
{
    return (uint32_t)(kvca_owner_entry(pool, index)->state >> 32);
}

static kvca_owner handle(uint32_t generation, uint64_t index)
{
    return (uint64_t)generation << 32 | (index + 1);
}

bool kvca_pool_knew_owner(kvca_pool *pool, kvca_owner owner)
{
    uint64_t index;
    if (!kvca_owner_index(pool, owner, &index)) {
        return false;
    }
    uint32_t claims = generation_of(pool, index) - (uint32_t)pool->first_claim;
    uint32_t claim = (uint32_t)(owner >> 32) - (uint32_t)pool->first_claim;
    return claim != 0 && claim <= claims;
}

/* An entry that has used all its generations is not claimed again. So no handle is given out twice. */
static bool may_be_claimed(kvca_pool *pool, uint64_t index)
{
    return !kvca_owner_is_claimed(pool, index) && generation_of(pool, index) + 1 != (uint32_t)pool->first_claim;
}

kvca_status kvca_pool_owner_claim(kvca_pool *pool, uint64_t id, kvca_owner *owner)
{
    if (!pool || !owner) {
        return KVCA_ERR_NULL;
    }
    kvca_pool_heal(pool);
    uint64_t index = 0;
    while (index < pool->max_owners && !may_be_claimed(pool, index)) {
        index++;
    }
    if (index == pool->max_owners) {
        return KVCA_ERR_OWNERS_FULL;
    }
    uint32_t generation = generation_of(pool, index) + 1;
    kvca_store(&kvca_owner_entry(pool, index)->id, id);
    kvca_store(&kvca_owner_entry(pool, index)->state, (uint64_t)generation << 32 | KVCA_OWNER_CLAIMED);
    *owner = handle(generation, index);
    return KVCA_OK;
}

/* Subtracts what an owner had booked on a slot from the totals of the slot. */
static void give_back(kvca_pool *pool, uint64_t owner, uint32_t slot)
{
    uint64_t *blocks = &kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, owner)[slot];
    uint64_t *requests = &kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, owner)[slot];
    kvca_pool_set_totals(pool, slot, kvca_words(pool, KVCA_PART_BLOCKS)[slot] - *blocks,
                         kvca_words(pool, KVCA_PART_REQUESTS)[slot] - *requests);
    kvca_store(blocks, 0);
    kvca_store(requests, 0);
    kvca_pool_free_if_drained(pool, slot);
}

kvca_status kvca_pool_owner_void(kvca_pool *pool, kvca_owner owner, uint64_t *blocks, uint64_t *requests)
{
    if (!pool) {
        return KVCA_ERR_NULL;
    }
    kvca_pool_heal(pool);
    uint64_t index;
    if (!kvca_pool_find_owner(pool, owner, &index)) {
        return KVCA_ERR_OWNER;
    }
    uint64_t given_blocks = 0;
    uint64_t given_requests = 0;
    kvca_store(&pool->dirty, KVCA_DIRTY);
    kvca_store(&kvca_owner_entry(pool, index)->state, (uint64_t)generation_of(pool, index) << 32);
    for (uint32_t slot = 0; slot < pool->slots; slot++) {
        uint64_t booked = kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, index)[slot];
        given_blocks = booked > UINT64_MAX - given_blocks ? UINT64_MAX : given_blocks + booked;
        given_requests += kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, index)[slot];
        give_back(pool, index, slot);
    }
    kvca_store(&pool->counters.voided, pool->counters.voided + given_requests);
    kvca_store(&pool->dirty, KVCA_CLEAN);
    if (blocks) {
        *blocks = given_blocks;
    }
    if (requests) {
        *requests = given_requests;
    }
    return KVCA_OK;
}

kvca_status kvca_pool_owner_at(kvca_pool *pool, uint32_t index, kvca_owner_info *info)
{
    if (!pool || !info) {
        return KVCA_ERR_NULL;
    }
    if (kvca_check_owner_info(info) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    kvca_pool_heal(pool);
    if (index >= pool->max_owners || !kvca_owner_is_claimed(pool, index)) {
        return KVCA_ERR_OWNER;
    }
    const kvca_owner_info found = {.owner = handle(generation_of(pool, index), index),
                                   .id = kvca_owner_entry(pool, index)->id};
    kvca_write_owner_info(info, &found);
    return KVCA_OK;
}
