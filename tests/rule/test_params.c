/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, with which status. Nothing is written then. */
#include "support/test.h"

#include <float.h>

static void parameters_are_checked(void **state)
{
    (void)state;
    static const struct {
        kvca_params params;
        kvca_status status;
    } rows[] = {
        {KVCA_PARAMS_DEFAULT, KVCA_OK},
        {PARAMS(DBL_TRUE_MIN, true, 0.0, 0), KVCA_OK},
        {PARAMS(1.0, false, DBL_MAX, UINT64_MAX), KVCA_OK},
        {PARAMS(KVCA_NO_CAPACITY_FILTER, true, DBL_TRUE_MIN, 1), KVCA_OK},
        {PARAMS(1.0, true, -0.0, 0), KVCA_OK},
        {PARAMS(0.0, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS(-0.0, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS(-0.5, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS(1.0 + DBL_EPSILON, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS(95.0, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS(DBL_MAX, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS(-(double)INFINITY, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS((double)NAN, true, 0.0, 0), KVCA_ERR_CAPACITY_FRACTION},
        {PARAMS(1.0, true, -DBL_TRUE_MIN, 0), KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT},
        {PARAMS(1.0, true, (double)INFINITY, 0), KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT},
        {PARAMS(1.0, true, (double)NAN, 0), KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT},
        {PARAMS(0.0, true, -1.0, 0), KVCA_ERR_CAPACITY_FRACTION},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("row %zu: capacity_fraction %g, weight %g\n", i, rows[i].params.capacity_fraction,
                      rows[i].params.decode_active_request_weight);
        assert_int_equal(kvca_params_validate(&rows[i].params), rows[i].status);
        kvca_policy *policy = NULL;
        assert_int_equal(kvca_policy_new(&rows[i].params, &policy), rows[i].status);
        assert_int_equal(policy != NULL, rows[i].status == KVCA_OK);
        kvca_policy_free(policy);
    }
}

static const uint64_t SOME[] = {1, 2, 3};

static const struct {
    const char *name;
    kvca_ranks ranks;
    kvca_status status;
} FAULTY[] = {
    {"no rows",
     {.size = sizeof(kvca_ranks), .count = 0, .decode_cost_blocks = SOME, .active_requests = SOME},
     KVCA_ERR_NO_RANKS},
    {"no blocks", {.size = sizeof(kvca_ranks), .count = 3, .active_requests = SOME}, KVCA_ERR_DECODE_COST_BLOCKS},
    {"no requests", {.size = sizeof(kvca_ranks), .count = 3, .decode_cost_blocks = SOME}, KVCA_ERR_ACTIVE_REQUESTS},
    {"all zero", {.size = sizeof(kvca_ranks), .count = 0}, KVCA_ERR_NO_RANKS},
};

static const struct {
    double multipliers[3];
    size_t row;
} FAULTY_MULTIPLIERS[] = {
    {{0.0, 1.0, 1.0}, 0},
    {{1.0, -0.0, 1.0}, 1},
    {{1.0, 1.0, -1.0}, 2},
    {{1.0, (double)NAN, 0.0}, 1},
    {{(double)INFINITY, 1.0, 1.0}, 0},
    {{1.0, 1.0, -(double)INFINITY}, 2},
    {{1.0, -DBL_TRUE_MIN, 1.0}, 1},
};

/* Every function that takes ranks refuses them alike if it looks at the faulty row, and writes nothing. */
static void check_refused(const kvca_ranks *ranks, size_t faulty, kvca_status status)
{
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    kvca_selection selection = {.size = sizeof selection};
    kvca_explanation explanation = {.size = sizeof explanation};
    size_t rows[3];
    unsigned char before[sizeof explanation];
    memset(&selection, 0xa5, sizeof selection);
    memset(&explanation, 0xa5, sizeof explanation);
    selection.size = sizeof selection;
    explanation.size = sizeof explanation;
    const kvca_selection no_selection = selection;
    const kvca_explanation no_explanation = explanation;
    memset(rows, 0xa5, sizeof rows);
    memset(before, 0xa5, sizeof before);
    assert_int_equal(kvca_select(policy, ranks, &selection), status);
    assert_memory_equal(&selection, &no_selection, sizeof selection);
    assert_int_equal(kvca_tie_set(policy, ranks, rows, 3, &selection), status);
    assert_memory_equal(&selection, &no_selection, sizeof selection);
    assert_memory_equal(rows, before, sizeof rows);
    const kvca_selection first = {.size = sizeof first, .row = 0};
    assert_int_equal(kvca_explain(kvca_policy_params(policy), ranks, &first, faulty, &explanation), status);
    assert_memory_equal(&explanation, &no_explanation, sizeof explanation);
    kvca_policy_free(policy);
}

static void faulty_columns_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(FAULTY); i++) {
        print_message("%s\n", FAULTY[i].name);
        size_t row = 77;
        assert_int_equal(kvca_ranks_validate(&FAULTY[i].ranks, &row), FAULTY[i].status);
        assert_int_equal(row, 77);
        check_refused(&FAULTY[i].ranks, 0, FAULTY[i].status);
    }
}

static void faulty_multipliers_are_refused_by_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(FAULTY_MULTIPLIERS); i++) {
        const double *multipliers = FAULTY_MULTIPLIERS[i].multipliers;
        print_message("multipliers %g %g %g\n", multipliers[0], multipliers[1], multipliers[2]);
        kvca_ranks ranks = {.size = sizeof ranks,
                            .count = 3,
                            .decode_cost_blocks = SOME,
                            .active_requests = SOME,
                            .preferred_taint_multiplier = multipliers};
        size_t row = 77;
        assert_int_equal(kvca_ranks_validate(&ranks, NULL), KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
        assert_int_equal(kvca_ranks_validate(&ranks, &row), KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
        assert_int_equal(row, FAULTY_MULTIPLIERS[i].row);
        check_refused(&ranks, row, KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
    }
}

static void sound_columns_are_accepted(void **state)
{
    (void)state;
    const double multipliers[] = {DBL_TRUE_MIN, 1.0, DBL_MAX};
    size_t row = 77;
    kvca_ranks ranks = {.size = sizeof ranks, .count = 3, .decode_cost_blocks = SOME, .active_requests = SOME};
    assert_int_equal(kvca_ranks_validate(&ranks, &row), KVCA_OK);
    ranks.preferred_taint_multiplier = multipliers;
    assert_int_equal(kvca_ranks_validate(&ranks, &row), KVCA_OK);
    assert_int_equal(kvca_ranks_validate(&ranks, NULL), KVCA_OK);
    assert_int_equal(row, 77);
}

/* If the pick's multiplier is unsound, nothing is explained. */
static void pick_with_a_faulty_multiplier_explains_nothing(void **state)
{
    (void)state;
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    kvca_ranks ranks = {.size = sizeof ranks,
                        .count = 3,
                        .decode_cost_blocks = SOME,
                        .active_requests = SOME,
                        .preferred_taint_multiplier = (const double[]){1.0, 1.0, 0.0}};
    const kvca_selection picked = {.size = sizeof picked, .row = 2};
    kvca_explanation explanation = {.size = sizeof explanation};
    assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, &picked, 0, &explanation),
                     KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
    kvca_policy_free(policy);
}

/* A multiplier is also checked on a rank that could not be picked. */
static void faulty_multiplier_on_a_full_rank_is_refused(void **state)
{
    (void)state;
    const uint64_t blocks[] = {1, 1000, 1};
    const uint64_t capacity[] = {10, 10, 10};
    kvca_ranks ranks = {.size = sizeof ranks,
                        .count = 3,
                        .decode_cost_blocks = blocks,
                        .active_requests = SOME,
                        .total_kv_blocks = capacity,
                        .preferred_taint_multiplier = (const double[]){1.0, 0.0, 1.0}};
    check_refused(&ranks, 1, KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
}

static void null_pointers_are_refused(void **state)
{
    (void)state;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_policy *policy = make_policy(params);
    kvca_ranks ranks = {.size = sizeof ranks, .count = 3, .decode_cost_blocks = SOME, .active_requests = SOME};
    kvca_selection selection = {.size = sizeof selection, .row = 0};
    kvca_explanation explanation = {.size = sizeof explanation};
    size_t rows[3];
    assert_int_equal(kvca_params_validate(NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_policy_new(NULL, &policy), KVCA_ERR_NULL);
    assert_int_equal(kvca_policy_new(&params, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_policy_set_seed(NULL, 1), KVCA_ERR_NULL);
    assert_int_equal(kvca_policy_set_warning(NULL, NULL, NULL), KVCA_ERR_NULL);
    assert_null(kvca_policy_params(NULL));
    assert_int_equal(kvca_ranks_validate(NULL, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_select(NULL, &ranks, &selection), KVCA_ERR_NULL);
    assert_int_equal(kvca_select(policy, NULL, &selection), KVCA_ERR_NULL);
    assert_int_equal(kvca_select(policy, &ranks, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_tie_set(NULL, &ranks, rows, 3, &selection), KVCA_ERR_NULL);
    assert_int_equal(kvca_tie_set(policy, NULL, rows, 3, &selection), KVCA_ERR_NULL);
    assert_int_equal(kvca_tie_set(policy, &ranks, NULL, 3, &selection), KVCA_ERR_NULL);
    assert_int_equal(kvca_tie_set(policy, &ranks, rows, 3, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_explain(NULL, &ranks, &selection, 0, &explanation), KVCA_ERR_NULL);
    assert_int_equal(kvca_explain(kvca_policy_params(policy), NULL, &selection, 0, &explanation), KVCA_ERR_NULL);
    assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, NULL, 0, &explanation), KVCA_ERR_NULL);
    assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, &selection, 0, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, &selection, 3, &explanation), KVCA_ERR_ROW);
    selection.row = 3;
    assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, &selection, 0, &explanation), KVCA_ERR_ROW);
    kvca_policy_free(policy);
    kvca_policy_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(faulty_columns_are_refused),
        cmocka_unit_test(faulty_multipliers_are_refused_by_row),
        cmocka_unit_test(sound_columns_are_accepted),
        cmocka_unit_test(pick_with_a_faulty_multiplier_explains_nothing),
        cmocka_unit_test(faulty_multiplier_on_a_full_rank_is_refused),
        cmocka_unit_test(null_pointers_are_refused),
    };
    return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
