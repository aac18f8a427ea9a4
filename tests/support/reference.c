/* SPDX-License-Identifier: Apache-2.0 */
#include "support/reference.h"

#include <math.h>

#include "support/exact.h"

/* What the rule says of one rank, step by step. */
struct rank_facts {
    bool candidate;
    bool unknown;
    bool fits;
    bool fits_empty; /* it would if nothing else were booked on it */
    uint64_t d;
    uint64_t n;
    exact cost;
};

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t reference_capacity(const kvca_params *params, const struct rank_set *set, size_t row)
{
    return set->total_kv_blocks[row] != 0 ? set->total_kv_blocks[row] : params->capacity_blocks;
}

uint64_t reference_limit(const kvca_params *params, uint64_t capacity)
{
    return exact_floor(exact_product(exact_of(params->capacity_fraction), exact_of_integer(capacity)));
}

static struct rank_facts facts_of(const kvca_params *params, const struct rank_set *set, size_t row)
{
    struct rank_facts facts = {.n = set->active_requests[row]};
    facts.d = add_saturating(set->decode_cost_blocks[row], set->request_blocks);

    bool filter = !isinf(params->capacity_fraction);
    uint64_t capacity = reference_capacity(params, set, row);
    facts.unknown = filter && capacity == 0;
    bool limited = filter && capacity != 0;
    facts.fits = !limited || facts.d <= reference_limit(params, capacity);
    facts.fits_empty = !limited || set->request_blocks <= reference_limit(params, capacity);

    exact requests = exact_product(exact_of(params->decode_active_request_weight), exact_of_integer(facts.n));
    exact sum = exact_sum(exact_of_integer(facts.d), requests);
    facts.cost = exact_product(sum, exact_of(set->preferred_taint_multiplier[row]));
    return facts;
}

struct reference reference_select(const kvca_params *params, const struct rank_set *set, const bool *candidates)
{
    struct rank_facts facts[MOST_RANKS];
    struct reference reference = {.outcome = KVCA_FALLBACK_NEVER};
    for (size_t row = 0; row < set->count; row++) {
        facts[row] = facts_of(params, set, row);
        facts[row].candidate = !candidates || candidates[row];
        reference.fits += facts[row].candidate && facts[row].fits;
        reference.unknown_capacity += facts[row].candidate && facts[row].unknown;
        if (facts[row].candidate && facts[row].fits_empty) {
            reference.outcome = KVCA_FALLBACK;
        }
    }
    if (reference.fits > 0) {
        reference.outcome = KVCA_FIT;
    }
    for (size_t row = 0; row < set->count; row++) {
        bool best = facts[row].candidate && (facts[row].fits || reference.outcome != KVCA_FIT);
        for (size_t other = 0; best && other < set->count; other++) {
            const struct rank_facts *a = &facts[row];
            const struct rank_facts *b = &facts[other];
            if (!b->candidate || (!b->fits && reference.outcome == KVCA_FIT)) {
                continue;
            }
            if (reference.outcome != KVCA_FIT) {
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

void reference_look_ahead(struct reference *reference, const kvca_params *params, const struct rank_set *set,
                          const bool *later)
{
    for (size_t row = 0; row < set->count; row++) {
        if (reference->outcome == KVCA_FALLBACK_NEVER && later[row] && facts_of(params, set, row).fits_empty) {
            reference->outcome = KVCA_FALLBACK;
        }
    }
}

bool reference_agrees(const struct reference *reference, const kvca_selection *selection)
{
    return selection->outcome == reference->outcome && selection->ties == reference->ties &&
           selection->fits == reference->fits && selection->unknown_capacity == reference->unknown_capacity &&
           selection->row < MOST_RANKS && reference->tied[selection->row];
}

bool reference_lists(const struct reference *reference, const size_t *rows, size_t count)
{
    bool same = count == reference->ties;
    for (size_t i = 0; same && i < count; i++) {
        same = reference->tied[rows[i]] && (i == 0 || rows[i - 1] < rows[i]);
    }
    return same;
}
