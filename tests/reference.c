/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <math.h>

/* One rank, step by step. `volatile` keeps each double from being anything but a double. */
struct rank_facts {
    bool candidate;
    bool unknown;
    bool fits;
    uint64_t d;
    uint64_t n;
    double cost;
};

static struct rank_facts facts_of(const kvca_params *params, const struct rank_set *set, size_t row)
{
    struct rank_facts facts = {.n = set->active_requests[row]};
    facts.d = set->decode_cost_blocks[row] + set->request_blocks;
    if (facts.d < set->request_blocks) {
        facts.d = UINT64_MAX;
    }
    bool filter = !isinf(params->capacity_fraction);
    uint64_t capacity = set->total_kv_blocks[row];
    if (capacity == 0) {
        capacity = params->capacity_blocks;
    }
    facts.unknown = filter && capacity == 0;
    facts.fits = true;
    if (filter && capacity != 0) {
        volatile double product = (double)capacity;
        product = product * params->capacity_fraction;
        volatile double whole = floor(product);
        facts.fits = whole >= ldexp(1.0, 64) || facts.d <= (uint64_t)whole;
    }
    volatile double requests = (double)facts.n;
    requests = requests * params->decode_active_request_weight;
    volatile double sum = (double)facts.d;
    sum = sum + requests;
    volatile double cost = sum * set->preferred_taint_multiplier[row];
    facts.cost = cost;
    return facts;
}

struct reference reference_select(const kvca_params *params, const struct rank_set *set, const bool *candidates)
{
    struct rank_facts facts[MOST_RANKS];
    struct reference reference = {.outcome = KVCA_FALLBACK};
    for (size_t row = 0; row < set->count; row++) {
        facts[row] = facts_of(params, set, row);
        facts[row].candidate = !candidates || candidates[row];
        reference.fits += facts[row].candidate && facts[row].fits;
        reference.unknown_capacity += facts[row].candidate && facts[row].unknown;
    }
    if (reference.fits > 0) {
        reference.outcome = KVCA_FIT;
    }
    for (size_t row = 0; row < set->count; row++) {
        bool best = facts[row].candidate && (facts[row].fits || reference.outcome == KVCA_FALLBACK);
        for (size_t other = 0; best && other < set->count; other++) {
            const struct rank_facts *a = &facts[row];
            const struct rank_facts *b = &facts[other];
            if (!b->candidate || (!b->fits && reference.outcome == KVCA_FIT)) {
                continue;
            }
            if (reference.outcome == KVCA_FALLBACK) {
                best = a->d <= b->d;
            } else if (params->count_priority && a->n != b->n) {
                best = a->n < b->n;
            } else {
                best = a->cost <= b->cost;
            }
        }
        reference.tied[row] = best;
        reference.ties += best;
    }
    return reference;
}
