/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/slots.h"

#include "pool/index.h"

static void set_bit(uint64_t *word, uint64_t slot, bool set)
{
    uint64_t bit = UINT64_C(1) << (slot % 64);
    kvca_store(word, set ? *word | bit : *word & ~bit);
}

void kvca_pool_update_slot(kvca_pool *pool, uint64_t slot)
{
    const struct kvca_terms *terms = kvca_pool_terms(pool);
    const kvca_params params = kvca_pool_params(pool);
    uint64_t capacity = kvca_words(pool, KVCA_PART_CAPACITIES)[slot];
    bool active = kvca_slot_state(pool, slot) == KVCA_SLOT_ACTIVE;
    kvca_store(&kvca_words(pool, KVCA_PART_LIMITS)[slot], kvca_limit(&params, capacity));
    set_bit(&kvca_words(pool, KVCA_PART_PLACEABLE)[slot / 64], slot, active);
    set_bit(&kvca_pool_ready(pool)[slot / KVCA_GROUP].unknown, slot,
            active && kvca_capacity_is_unknown(terms, capacity));
    kvca_pool_set_totals(pool, slot, kvca_words(pool, KVCA_PART_BLOCKS)[slot],
                         kvca_words(pool, KVCA_PART_REQUESTS)[slot]);
}

void kvca_pool_set_state(kvca_pool *pool, uint32_t slot, uint32_t generation, enum kvca_slot_state state)
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

void kvca_pool_free_slot(kvca_pool *pool, uint32_t slot)
{
    uint32_t bucket = kvca_pool_find_bucket(pool, kvca_words(pool, KVCA_PART_WORKERS)[slot],
                                            kvca_half_words(pool, KVCA_PART_DP_RANKS)[slot]);
    kvca_pool_set_state(pool, slot, kvca_slot_generation(pool, slot) + 1, KVCA_SLOT_FREE);
    kvca_pool_index_remove(pool, bucket);
    kvca_pool_update_slot(pool, slot);
    clear_bookings(pool, slot);
    note_free(pool, slot);
}

void kvca_pool_free_if_drained(kvca_pool *pool, uint32_t slot)
{
    if (kvca_slot_state(pool, slot) == KVCA_SLOT_DRAINING && kvca_words(pool, KVCA_PART_REQUESTS)[slot] == 0) {
        kvca_pool_free_slot(pool, slot);
    }
}
