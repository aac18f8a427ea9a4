/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule: which rank takes the request.
 *
 * 1. The capacity of a rank is what it reports, else the parameter capacity_blocks, else unknown.
 * 2. A rank fits when D <= capacity_fraction x capacity. One of unknown capacity always fits; with the filter off
 *    all do.
 * 3. Of the ranks that fit, the fewest active requests come first (with count_priority), then the smallest
 *    (D + W x N) x preferred_taint_multiplier.
 * 4. When none fits, the smallest D comes first, and nothing else counts.
 * 5. One rank is drawn uniformly from those that come first together.
 *
 * docs/rule.md tells it at length. D is the blocks booked on a rank with this request, N its active requests, W the
 * parameter decode_active_request_weight. The tie set is the same on every machine because every value compared is
 * an integer, or a double that was rounded once after each operation.
 */
#include "select.h"

#include <float.h>

#include "params.h"
#include "random.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "the rule needs IEEE arithmetic: build without -ffast-math, -Ofast and -ffinite-math-only"
#endif
#if FLT_EVAL_METHOD != 0
#error "the rule needs doubles that are rounded after each operation: on 32-bit x86, build with -msse2 -mfpmath=sse"
#endif

static bool filter_is_on(const kvca_params *params)
{
    return params->capacity_fraction <= 1.0;
}

/* D: with the request, and never past the largest integer. */
static uint64_t decode_cost_blocks(const struct kvca_view *view, size_t row)
{
    uint64_t booked = view->ranks->decode_cost_blocks[row];
    uint64_t request = view->ranks->request_blocks;
    return booked > UINT64_MAX - request ? UINT64_MAX : booked + request;
}

static uint64_t active_requests(const struct kvca_view *view, size_t row)
{
    return view->ranks->active_requests[row];
}

static uint64_t reported_capacity(const struct kvca_view *view, size_t row)
{
    return view->ranks->total_kv_blocks ? view->ranks->total_kv_blocks[row] : 0;
}

/* 0 when unknown. */
static uint64_t known_capacity(const kvca_params *params, uint64_t reported)
{
    return reported != 0 ? reported : params->capacity_blocks;
}

static uint64_t capacity(const struct kvca_view *view, size_t row)
{
    return known_capacity(view->params, reported_capacity(view, row));
}

uint64_t kvca_limit(const kvca_params *params, uint64_t total_kv_blocks)
{
    uint64_t blocks = known_capacity(params, total_kv_blocks);
    if (!filter_is_on(params) || blocks == 0) {
        return UINT64_MAX;
    }
    double product = params->capacity_fraction * (double)blocks;
    /* 2^64 and above hold every D, and are past what the conversion is defined for. */
    return product >= 0x1p64 ? UINT64_MAX : (uint64_t)product;
}

/* The largest D that fits. */
static uint64_t limit(const struct kvca_view *view, size_t row)
{
    return view->limits ? view->limits[row] : kvca_limit(view->params, reported_capacity(view, row));
}

static bool fits(const struct kvca_view *view, size_t row)
{
    return decode_cost_blocks(view, row) <= limit(view, row);
}

static double cost(const struct kvca_view *view, size_t row)
{
    double requests = view->params->decode_active_request_weight * (double)active_requests(view, row);
    double sum = (double)decode_cost_blocks(view, row) + requests;
    const double *multiplier = view->ranks->preferred_taint_multiplier;
    return multiplier ? sum * multiplier[row] : sum;
}

static struct kvca_key fit_key(const struct kvca_view *view, size_t row)
{
    uint64_t requests = view->params->count_priority ? active_requests(view, row) : 0;
    return (struct kvca_key){.first = requests, .second = cost(view, row)};
}

static struct kvca_key fallback_key(const struct kvca_view *view, size_t row)
{
    return (struct kvca_key){.first = decode_cost_blocks(view, row)};
}

static bool less(struct kvca_key a, struct kvca_key b)
{
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

static bool equal(struct kvca_key a, struct kvca_key b)
{
    return a.first == b.first && a.second == b.second;
}

static bool has_bit(const uint64_t *bitmap, size_t row)
{
    return !bitmap || (bitmap[row / 64] >> (row % 64) & 1) != 0;
}

bool kvca_view_is_candidate(const struct kvca_view *view, size_t row)
{
    return has_bit(view->candidates[0], row) && has_bit(view->candidates[1], row);
}

/* Whether the row is up for this outcome; its key if so. */
static bool competes(const struct kvca_view *view, size_t row, kvca_outcome outcome, struct kvca_key *key)
{
    if (!kvca_view_is_candidate(view, row)) {
        return false;
    }
    if (outcome == KVCA_FALLBACK) {
        *key = fallback_key(view, row);
        return true;
    }
    if (!fits(view, row)) {
        return false;
    }
    *key = fit_key(view, row);
    return true;
}

/* Finds the best rows of those up for `outcome`, and returns how many were up. */
static size_t find_best(const struct kvca_view *view, kvca_outcome outcome, struct kvca_choice *choice)
{
    size_t candidates = 0;
    struct kvca_key key;
    for (size_t row = 0; row < view->ranks->count; row++) {
        if (!competes(view, row, outcome, &key)) {
            continue;
        }
        if (candidates++ == 0 || less(key, choice->key)) {
            choice->key = key;
            choice->selection.row = row;
            choice->selection.ties = 1;
        } else if (equal(key, choice->key)) {
            choice->selection.ties++;
        }
    }
    choice->selection.outcome = outcome;
    return candidates;
}

bool kvca_capacity_is_unknown(const kvca_params *params, uint64_t total_kv_blocks)
{
    return filter_is_on(params) && known_capacity(params, total_kv_blocks) == 0;
}

static size_t count_unknown(const struct kvca_view *view)
{
    size_t unknown = 0;
    for (size_t row = 0; row < view->ranks->count; row++) {
        unknown +=
            kvca_view_is_candidate(view, row) && kvca_capacity_is_unknown(view->params, reported_capacity(view, row));
    }
    return unknown;
}

struct kvca_choice kvca_view_choose(const struct kvca_view *view)
{
    struct kvca_choice choice = {.selection.unknown_capacity = count_unknown(view)};
    choice.selection.fits = find_best(view, KVCA_FIT, &choice);
    if (choice.selection.fits == 0) {
        find_best(view, KVCA_FALLBACK, &choice);
    }
    return choice;
}

size_t kvca_view_tied(const struct kvca_view *view, const struct kvca_choice *choice, size_t skip, size_t *rows,
                      size_t room)
{
    size_t written = 0;
    struct kvca_key key;
    for (size_t row = choice->selection.row; row < view->ranks->count && written < room; row++) {
        bool tied = competes(view, row, choice->selection.outcome, &key) && equal(key, choice->key);
        if (tied && skip > 0) {
            skip--;
        } else if (tied) {
            rows[written++] = row;
        }
    }
    return written;
}

size_t kvca_view_draw(const struct kvca_view *view, const struct kvca_choice *choice, _Atomic uint64_t *generator)
{
    size_t row = choice->selection.row;
    if (choice->selection.ties > 1) {
        size_t drawn = (size_t)kvca_draw(generator, choice->selection.ties);
        kvca_view_tied(view, choice, drawn, &row, 1);
    }
    return row;
}

static kvca_capacity_source capacity_source(const struct kvca_view *view, size_t row)
{
    if (reported_capacity(view, row) != 0) {
        return KVCA_CAPACITY_REPORTED;
    }
    return view->params->capacity_blocks != 0 ? KVCA_CAPACITY_PARAMETER : KVCA_CAPACITY_UNKNOWN;
}

/* The first criterion that puts `row` behind the row `picked`. */
static kvca_reason reason(const struct kvca_view *view, size_t row, size_t picked, kvca_outcome outcome)
{
    if (outcome == KVCA_FALLBACK) {
        return less(fallback_key(view, picked), fallback_key(view, row)) ? KVCA_REASON_MORE_BLOCKS : KVCA_REASON_TIED;
    }
    if (!fits(view, row)) {
        return KVCA_REASON_DOES_NOT_FIT;
    }
    struct kvca_key key = fit_key(view, row);
    struct kvca_key best = fit_key(view, picked);
    if (!less(best, key)) {
        return KVCA_REASON_TIED;
    }
    return best.first < key.first ? KVCA_REASON_MORE_REQUESTS : KVCA_REASON_HIGHER_COST;
}

static bool has_sound_multiplier(const kvca_ranks *ranks, size_t row)
{
    return !ranks->preferred_taint_multiplier || kvca_is_multiplier(ranks->preferred_taint_multiplier[row]);
}

static kvca_status check_question(const kvca_ranks *ranks, size_t row, size_t picked)
{
    kvca_status status = kvca_columns_validate(ranks);
    if (status != KVCA_OK) {
        return status;
    }
    if (row >= ranks->count || picked >= ranks->count) {
        return KVCA_ERR_ROW;
    }
    bool sound = has_sound_multiplier(ranks, row) && has_sound_multiplier(ranks, picked);
    return sound ? KVCA_OK : KVCA_ERR_PREFERRED_TAINT_MULTIPLIER;
}

kvca_status kvca_explain(const kvca_policy *policy, const kvca_ranks *ranks, const kvca_selection *selection,
                         size_t row, kvca_explanation *explanation)
{
    if (!policy || !selection || !explanation) {
        return KVCA_ERR_NULL;
    }
    kvca_status status = check_question(ranks, row, selection->row);
    if (status != KVCA_OK) {
        return status;
    }
    struct kvca_view view = {.params = kvca_policy_params(policy), .ranks = ranks};
    *explanation = (kvca_explanation){
        .decode_cost_blocks = decode_cost_blocks(&view, row),
        .active_requests = active_requests(&view, row),
        .capacity = capacity(&view, row),
        .capacity_source = capacity_source(&view, row),
        .limit = limit(&view, row),
        .fits = fits(&view, row),
        .cost = cost(&view, row),
        .reason = reason(&view, row, selection->row, selection->outcome),
    };
    return KVCA_OK;
}
