/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from the truth, slot by slot. Of it the rule reads a key and a room for each slot, 12 bytes instead of
 * D, N and the limit: whoever books keeps them, once, so that every selection reads less.
 */
#include "pool/ledger.h"

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
