/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule: which rank takes the request. docs/rule.md tells it with examples, in this order and in these words.
 *
 * D is the KV blocks booked on a rank, the request's own included. N is the rank's active requests. W is the parameter
 * decode_active_request_weight.
 *
 * Every value that is compared is an integer, or a double that comes of IEEE operations in a fixed order, each
 * rounded once and none fused. So every machine finds the same ties.
 */
#include "rule/rule.h"

#include "rule/random.h"

/* Capacity: what the rank reports, else the parameter capacity_blocks, else unknown. */
uint64_t kvca_capacity(const kvca_params *params, uint64_t total_kv_blocks)
{
    return total_kv_blocks != 0 ? total_kv_blocks : params->capacity_blocks;
}

/*
 * Limit: capacity_fraction x capacity, computed in double, rounded down. If the filter is off, or the capacity is
 * unknown, there is no limit (UINT64_MAX), so the rank always fits.
 */
uint64_t kvca_limit(const kvca_params *params, uint64_t total_kv_blocks)
{
    uint64_t capacity = kvca_capacity(params, total_kv_blocks);
    if (params->capacity_fraction == KVCA_NO_CAPACITY_FILTER || capacity == 0) {
        return UINT64_MAX;
    }
    double limit = params->capacity_fraction * (double)capacity;
    return limit < 0x1p64 ? (uint64_t)limit : UINT64_MAX;
}

uint64_t kvca_decode_cost_blocks(const kvca_ranks *ranks, size_t row)
{
    uint64_t booked = ranks->decode_cost_blocks[row];
    return booked <= UINT64_MAX - ranks->request_blocks ? booked + ranks->request_blocks : UINT64_MAX;
}

static uint64_t reported(const kvca_ranks *ranks, size_t row)
{
    return ranks->total_kv_blocks ? ranks->total_kv_blocks[row] : 0;
}

/* Fits: D is at most the limit. */
bool kvca_fits(const kvca_params *params, const kvca_ranks *ranks, size_t row)
{
    return kvca_decode_cost_blocks(ranks, row) <= kvca_limit(params, reported(ranks, row));
}

/* Count: the active requests come before the cost, unless count_priority is false. */
static uint64_t count(const kvca_params *params, const kvca_ranks *ranks, size_t row)
{
    return params->count_priority ? ranks->active_requests[row] : 0;
}

static double multiplier(const kvca_ranks *ranks, size_t row)
{
    return ranks->preferred_taint_multiplier ? ranks->preferred_taint_multiplier[row] : 1.0;
}

/* Cost: (D + W x N) x preferred_taint_multiplier. */
double kvca_cost(const kvca_params *params, const kvca_ranks *ranks, size_t row)
{
    double blocks = (double)kvca_decode_cost_blocks(ranks, row);
    double requests = params->decode_active_request_weight * (double)ranks->active_requests[row];
    return (blocks + requests) * multiplier(ranks, row);
}

/*
 * A rank that fits beats one that does not. Ranks that fit are ordered by count, then by cost. The others are
 * ordered by D alone, which matters only if no rank fits: the fallback. (Another policy type would order its ranks
 * here. All that follows knows standings only.)
 */
struct kvca_standing kvca_standing_of(const kvca_params *params, const kvca_ranks *ranks, size_t row)
{
    if (!kvca_fits(params, ranks, row)) {
        return (struct kvca_standing){KVCA_TIER_FALLBACK, kvca_decode_cost_blocks(ranks, row), 0.0};
    }
    return (struct kvca_standing){KVCA_TIER_FITS, count(params, ranks, row), kvca_cost(params, ranks, row)};
}

int kvca_compare_standings(const struct kvca_standing *a, const struct kvca_standing *b)
{
    if (a->tier != b->tier) {
        return a->tier < b->tier ? -1 : 1;
    }
    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    return (a->second > b->second) - (a->second < b->second);
}

static bool has_bit(const uint64_t *bitmap, size_t row)
{
    return !bitmap || (bitmap[row / 64] >> row % 64 & 1) != 0;
}

static bool is_candidate(const struct kvca_candidates *candidates, size_t row)
{
    return has_bit(candidates->placeable, row) && has_bit(candidates->eligible, row);
}

bool kvca_is_multiplier(double value)
{
    return value > 0.0 && value <= DBL_MAX;
}

static bool has_unknown_capacity(const kvca_params *params, const kvca_ranks *ranks, size_t row)
{
    return params->capacity_fraction != KVCA_NO_CAPACITY_FILTER && kvca_capacity(params, reported(ranks, row)) == 0;
}

/* Tie set: the candidates with the best standing so far. A better row starts it anew. */
static void take(struct kvca_survey *survey, size_t row, const struct kvca_standing *standing)
{
    int order = survey->selection.ties > 0 ? kvca_compare_standings(standing, &survey->best) : -1;
    if (order < 0) {
        survey->best = *standing;
        survey->selection.row = row;
        survey->selection.ties = 0;
    }
    survey->selection.ties += order <= 0;
}

bool kvca_rule_survey(const kvca_params *params, const struct kvca_candidates *candidates, struct kvca_survey *survey)
{
    const kvca_ranks *ranks = candidates->ranks;
    struct kvca_survey found = {.selection = {.size = sizeof found.selection}};
    for (size_t row = 0; row < ranks->count; row++) {
        if (!is_candidate(candidates, row)) {
            continue;
        }
        if (!kvca_is_multiplier(multiplier(ranks, row))) {
            return false;
        }
        struct kvca_standing standing = kvca_standing_of(params, ranks, row);
        found.selection.fits += standing.tier == KVCA_TIER_FITS;
        found.selection.unknown_capacity += has_unknown_capacity(params, ranks, row);
        take(&found, row, &standing);
    }
    bool fallback = found.selection.ties > 0 && found.selection.fits == 0;
    found.selection.outcome = fallback ? kvca_rule_fallback_outcome(params, candidates) : KVCA_FIT;
    *survey = found;
    return true;
}

kvca_outcome kvca_rule_fallback_outcome(const kvca_params *params, const struct kvca_candidates *candidates)
{
    const kvca_ranks *ranks = candidates->ranks;
    for (size_t row = 0; row < ranks->count; row++) {
        if (is_candidate(candidates, row) && ranks->request_blocks <= kvca_limit(params, reported(ranks, row))) {
            return KVCA_FALLBACK;
        }
    }
    return KVCA_FALLBACK_NEVER;
}

static bool is_tied(const kvca_params *params, const struct kvca_candidates *candidates,
                    const struct kvca_survey *survey, size_t row)
{
    if (!is_candidate(candidates, row)) {
        return false;
    }
    struct kvca_standing standing = kvca_standing_of(params, candidates->ranks, row);
    return kvca_compare_standings(&standing, &survey->best) == 0;
}

/* Draw: each tied row is equally likely. If a host changes columns meanwhile, this still ends at a row. */
size_t kvca_rule_draw(const kvca_params *params, const struct kvca_candidates *candidates,
                      const struct kvca_survey *survey, _Atomic uint64_t *generator)
{
    size_t first = survey->selection.row;
    if (survey->selection.ties <= 1) {
        return first;
    }
    uint64_t before = kvca_draw(generator, survey->selection.ties);
    for (size_t row = first; row < candidates->ranks->count; row++) {
        if (is_tied(params, candidates, survey, row) && before-- == 0) {
            return row;
        }
    }
    return first;
}

void kvca_rule_list(const kvca_params *params, const struct kvca_candidates *candidates,
                    const struct kvca_survey *survey, size_t *rows, size_t room)
{
    size_t written = 0;
    for (size_t row = survey->selection.row; row < candidates->ranks->count && written < room; row++) {
        if (is_tied(params, candidates, survey, row)) {
            rows[written++] = row;
        }
    }
}
