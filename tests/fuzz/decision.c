/* SPDX-License-Identifier: Apache-2.0 */
#include "decision.h"

#include <math.h>

#include "support/reference.h"
#include "variants.h"

static size_t first_unsound(const struct rank_set *set)
{
    size_t row = 0;
    while (row < set->count && isfinite(set->preferred_taint_multiplier[row]) &&
           set->preferred_taint_multiplier[row] > 0) {
        row++;
    }
    return row;
}

/* Values that no selection has. */
static const kvca_selection UNTOUCHED = {.size = sizeof UNTOUCHED, .row = 12345, .fits = 678};

static bool is_untouched(const kvca_selection *selection)
{
    return selection->row == UNTOUCHED.row && selection->fits == UNTOUCHED.fits && selection->ties == UNTOUCHED.ties;
}

static void check_unsound(kvca_policy *policy, const kvca_ranks *ranks, size_t unsound)
{
    kvca_selection selection = UNTOUCHED;
    size_t rows[1] = {77};
    size_t row = SIZE_MAX;
    assert_int_equal(kvca_ranks_validate(ranks, &row), KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
    assert_int_equal(row, unsound);
    assert_int_equal(kvca_select(policy, ranks, &selection), KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
    assert_int_equal(kvca_tie_set(policy, ranks, rows, COUNT(rows), &selection), KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
    assert_true(is_untouched(&selection));
    assert_int_equal(rows[0], 77);
    kvca_explanation explanation = {.size = sizeof explanation};
    assert_int_equal(kvca_explain(kvca_policy_params(policy), ranks,
                                  &(kvca_selection){.size = sizeof(kvca_selection), .row = unsound}, 0, &explanation),
                     KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
}

static void check_selection(const kvca_selection *selection, const struct reference *expected)
{
    if (!reference_agrees(expected, selection)) {
        fail_msg("row %zu, outcome %d, fits %zu, ties %zu, unknown %zu; expected outcome %d, fits %zu, ties %zu, "
                 "unknown %zu",
                 selection->row, (int)selection->outcome, selection->fits, selection->ties,
                 selection->unknown_capacity, (int)expected->outcome, expected->fits, expected->ties,
                 expected->unknown_capacity);
    }
}

static void check_tie_set(kvca_policy *policy, const kvca_ranks *ranks, const struct reference *expected, size_t room)
{
    size_t rows[MOST_RANKS + 1];
    for (size_t i = 0; i < COUNT(rows); i++) {
        rows[i] = SIZE_MAX;
    }
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_tie_set(policy, ranks, rows, room, &selection), KVCA_OK);
    check_selection(&selection, expected);
    size_t listed = 0;
    for (size_t row = 0; row < ranks->count && listed < room; row++) {
        if (expected->tied[row]) {
            assert_int_equal(rows[listed++], row);
        }
    }
    assert_true(rows[listed] == SIZE_MAX);
    assert_true(selection.row <= rows[0]); /* even without room */
}

/* The first criterion by which a row differs from the picked one. */
static kvca_reason reason_for(const kvca_params *params, const kvca_selection *picked,
                              const kvca_explanation *explanation, const kvca_explanation *of_picked, bool tied)
{
    if (tied) {
        return KVCA_REASON_TIED;
    }
    if (picked->outcome != KVCA_FIT) {
        return KVCA_REASON_MORE_BLOCKS;
    }
    if (!explanation->fits) {
        return KVCA_REASON_DOES_NOT_FIT;
    }
    bool more = explanation->active_requests > of_picked->active_requests;
    return params->count_priority && more ? KVCA_REASON_MORE_REQUESTS : KVCA_REASON_HIGHER_COST;
}

static kvca_explanation explain(const kvca_policy *policy, const kvca_ranks *ranks, const kvca_selection *picked,
                                size_t row)
{
    kvca_explanation explanation = {.size = sizeof explanation};
    assert_int_equal(kvca_explain(kvca_policy_params(policy), ranks, picked, row, &explanation), KVCA_OK);
    return explanation;
}

static void check_capacity(const kvca_params *params, uint64_t reported, const kvca_explanation *explanation)
{
    uint64_t capacity = reported != 0 ? reported : params->capacity_blocks;
    kvca_capacity_source source = reported != 0                  ? KVCA_CAPACITY_REPORTED
                                  : params->capacity_blocks != 0 ? KVCA_CAPACITY_PARAMETER
                                                                 : KVCA_CAPACITY_UNKNOWN;
    assert_int_equal(explanation->capacity, capacity);
    assert_int_equal(explanation->capacity_source, source);
    bool limited = !isinf(params->capacity_fraction) && capacity != 0;
    assert_true(limited || explanation->limit == UINT64_MAX);
}

static void check_explanations(const kvca_policy *policy, const struct rank_set *set, const kvca_ranks *ranks,
                               const kvca_selection *picked, const struct reference *expected)
{
    const kvca_params *params = kvca_policy_params(policy);
    const kvca_explanation of_picked = explain(policy, ranks, picked, picked->row);
    size_t fits = 0;
    for (size_t row = 0; row < set->count; row++) {
        kvca_explanation explanation = explain(policy, ranks, picked, row);
        uint64_t d = set->decode_cost_blocks[row] + set->request_blocks;
        assert_int_equal(explanation.decode_cost_blocks, d < set->request_blocks ? UINT64_MAX : d);
        assert_int_equal(explanation.active_requests, set->active_requests[row]);
        assert_int_equal(explanation.fits, explanation.decode_cost_blocks <= explanation.limit);
        assert_true(explanation.cost >= 0);
        check_capacity(params, set->total_kv_blocks[row], &explanation);
        assert_int_equal(explanation.reason,
                         reason_for(params, picked, &explanation, &of_picked, expected->tied[row]));
        fits += explanation.fits;
    }
    assert_int_equal(fits, expected->fits);
}

/* A warning is about a rank of unknown capacity, with its identity from the columns. */
static void take_warning(void *user, const kvca_warning *warning)
{
    const kvca_ranks *ranks = user;
    assert_true(warning->row < ranks->count);
    assert_int_equal(warning->worker_id, ranks->worker_id ? ranks->worker_id[warning->row] : warning->row);
    assert_int_equal(warning->dp_rank, ranks->dp_rank ? ranks->dp_rank[warning->row] : 0);
    assert_true(!ranks->total_kv_blocks || ranks->total_kv_blocks[warning->row] == 0);
}

static size_t check_sound(kvca_policy *policy, const struct rank_set *set, const kvca_ranks *ranks,
                          const struct reference *expected, uint64_t seed)
{
    kvca_ranks told = *ranks; /* a callback's user pointer is not const */
    kvca_selection picked = {.size = sizeof picked};
    assert_int_equal(kvca_ranks_validate(ranks, NULL), KVCA_OK);
    assert_int_equal(kvca_policy_set_seed(policy, seed), KVCA_OK);
    assert_int_equal(kvca_policy_set_warning(policy, take_warning, &told), KVCA_OK);
    assert_int_equal(kvca_select(policy, ranks, &picked), KVCA_OK);
    check_selection(&picked, expected);
    check_tie_set(policy, ranks, expected, ranks->count);
    check_tie_set(policy, ranks, expected, (size_t)(seed % MOST_RANKS));
    check_explanations(policy, set, ranks, &picked, expected);
    return picked.row;
}

void decision_check(const kvca_params *params, const struct rank_set *set, const kvca_ranks *ranks, uint64_t seed)
{
    size_t unsound = ranks->preferred_taint_multiplier ? first_unsound(set) : set->count;
    struct reference expected;
    if (unsound == set->count) {
        expected = reference_select(params, set, NULL);
    }
    size_t first = SIZE_MAX;
    for (size_t variant = 0; variant < variants_count(); variant++) {
        variants_use(variant);
        kvca_policy *policy = make_policy(*params);
        if (unsound < set->count) {
            check_unsound(policy, ranks, unsound);
        } else {
            size_t row = check_sound(policy, set, ranks, &expected, seed);
            assert_true(first == SIZE_MAX || row == first); /* the same seed, the same draw */
            first = row;
        }
        kvca_policy_free(policy);
    }
}
