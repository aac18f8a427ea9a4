/* SPDX-License-Identifier: Apache-2.0 */
/* The rule: the boundary cases of vectors/selection.yaml, each a test, and what holds for every rank set. */
#include "support/test.h"

#include <float.h>

#include "support/sets.h"
#include "support/vectors.h"

struct vector {
    const char *name;
    kvca_params params;
    struct rank_set set;
    bool tied[MOST_RANKS];
    size_t ties;
    bool unreported[MOST_RANKS];
    size_t unreported_count;
    bool fallback;
};

static yaml_document_t document;

static void read_params(struct vector *vector, yaml_node_t *node)
{
    vector->params = (kvca_params)KVCA_PARAMS_DEFAULT;
    yaml_node_t *fraction = vector_get(&document, node, "capacity_fraction");
    vector->params.capacity_fraction =
        vector_is_null(fraction) ? KVCA_NO_CAPACITY_FILTER : vector_double(fraction, 1.0);
    vector->params.count_priority = vector_bool(vector_get(&document, node, "count_priority"), true);
    vector->params.decode_active_request_weight =
        vector_double(vector_get(&document, node, "decode_active_request_weight"), 0.0);
    vector->params.capacity_blocks = vector_uint64(vector_get(&document, node, "capacity_blocks"), 0);
}

static void read_ranks(struct rank_set *set, yaml_node_t *list)
{
    yaml_node_t *rank;
    while ((rank = vector_at(&document, list, set->count))) {
        size_t row = set->count++;
        set->worker_id[row] = row / 4 + 1000;
        set->dp_rank[row] = (uint32_t)(row % 4);
        set->decode_cost_blocks[row] = vector_uint64(vector_get(&document, rank, "decode_cost_blocks"), 0);
        set->active_requests[row] = vector_uint64(vector_get(&document, rank, "active_requests"), 0);
        set->total_kv_blocks[row] = vector_uint64(vector_get(&document, rank, "total_kv_blocks"), 0);
        set->preferred_taint_multiplier[row] =
            vector_double(vector_get(&document, rank, "preferred_taint_multiplier"), 1.0);
    }
}

static size_t read_rows(bool *marked, yaml_node_t *list)
{
    size_t count = 0;
    yaml_node_t *row;
    while ((row = vector_at(&document, list, count))) {
        marked[vector_uint64(row, 0)] = true;
        count++;
    }
    return count;
}

static struct vector *read_vector(yaml_node_t *node)
{
    struct vector *vector = calloc(1, sizeof *vector);
    yaml_node_t *expect = vector_get(&document, node, "expect");
    vector->name = vector_text(vector_get(&document, node, "name"));
    read_params(vector, vector_get(&document, node, "parameters"));
    read_ranks(&vector->set, vector_get(&document, node, "ranks"));
    vector->set.request_blocks = vector_uint64(vector_get(&document, node, "request_blocks"), 0);
    vector->ties = read_rows(vector->tied, vector_get(&document, expect, "ties"));
    vector->unreported_count = read_rows(vector->unreported, vector_get(&document, expect, "unreported"));
    vector->fallback = vector_bool(vector_get(&document, expect, "fallback"), false);
    return vector;
}

/* The warnings of one policy: how many each row got. */
struct warnings {
    const struct rank_set *set;
    unsigned given[MOST_RANKS];
};

static void count_warning(void *user, const kvca_warning *warning)
{
    struct warnings *warnings = user;
    assert_true(warning->row < warnings->set->count);
    assert_int_equal(warning->worker_id, warnings->set->worker_id[warning->row]);
    assert_int_equal(warning->dp_rank, warnings->set->dp_rank[warning->row]);
    warnings->given[warning->row]++;
}

static void check_tie_set(kvca_policy *policy, const struct vector *vector, kvca_selection *selection)
{
    kvca_ranks ranks = ranks_of(&vector->set);
    size_t rows[MOST_RANKS];
    assert_int_equal(kvca_tie_set(policy, &ranks, rows, COUNT(rows), selection), KVCA_OK);
    assert_int_equal(selection->outcome != KVCA_FIT, vector->fallback);
    assert_int_equal(selection->ties, vector->ties);
    assert_int_equal(selection->unknown_capacity, vector->unreported_count);
    assert_int_equal(selection->fits == 0, vector->fallback);
    assert_int_equal(selection->row, rows[0]);
    for (size_t i = 0; i < selection->ties; i++) {
        assert_true(vector->tied[rows[i]]);
        assert_true(i == 0 || rows[i - 1] < rows[i]);
    }
}

static void check_draws(kvca_policy *policy, const struct vector *vector)
{
    kvca_ranks ranks = ranks_of(&vector->set);
    bool reached[MOST_RANKS] = {false};
    for (size_t i = 0; i < 64 * vector->ties; i++) {
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        assert_true(vector->tied[selection.row]);
        reached[selection.row] = true;
    }
    assert_memory_equal(reached, vector->tied, sizeof reached);
}

static void check_explanations(const kvca_policy *policy, const struct vector *vector,
                               const kvca_selection *selection)
{
    kvca_ranks ranks = ranks_of(&vector->set);
    size_t fits = 0;
    for (size_t row = 0; row < ranks.count; row++) {
        kvca_explanation explanation = {.size = sizeof explanation};
        assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, selection, row, &explanation), KVCA_OK);
        assert_int_equal(explanation.reason == KVCA_REASON_TIED, vector->tied[row]);
        assert_int_equal(explanation.fits, explanation.decode_cost_blocks <= explanation.limit);
        fits += explanation.fits;
    }
    assert_int_equal(fits, selection->fits);
}

static void boundary_vector_matches_reference_tie_set(void **state)
{
    const struct vector *vector = *state;
    print_rank_set(&vector->params, &vector->set);
    kvca_policy *policy = make_policy(vector->params);
    struct warnings warnings = {.set = &vector->set};
    assert_int_equal(kvca_policy_set_warning(policy, count_warning, &warnings), KVCA_OK);
    kvca_selection selection = {.size = sizeof selection};
    check_tie_set(policy, vector, &selection);
    check_draws(policy, vector);
    check_explanations(policy, vector, &selection);
    for (size_t row = 0; row < vector->set.count; row++) {
        assert_int_equal(warnings.given[row], vector->unreported[row]);
    }
    kvca_policy_free(policy);
}

static void columns_may_be_missing(void **state)
{
    (void)state;
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    const uint64_t blocks[] = {7, 5, 5};
    const uint64_t requests[] = {1, 2, 1};
    kvca_ranks ranks = {.size = sizeof ranks, .count = 3, .decode_cost_blocks = blocks, .active_requests = requests};
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
    assert_int_equal(selection.row, 2);
    assert_int_equal(selection.outcome, KVCA_FIT);
    assert_int_equal(selection.fits, 3);
    assert_int_equal(selection.ties, 1);
    assert_int_equal(selection.unknown_capacity, 3);
    kvca_policy_free(policy);
}

/* A random set. Equal values, ranks that are over and ranks of unknown capacity are all common. */
static void fill_randomly(struct rank_set *set, uint64_t *random)
{
    set->count = 1 + (size_t)random_below(random, 12);
    set->request_blocks = random_below(random, 3);
    for (size_t row = 0; row < set->count; row++) {
        set->worker_id[row] = row;
        set->dp_rank[row] = 0;
        set->decode_cost_blocks[row] = random_below(random, 12);
        set->active_requests[row] = random_below(random, 4);
        set->total_kv_blocks[row] = random_below(random, 10);
        set->preferred_taint_multiplier[row] = 1.0;
    }
}

static void without_filter_and_count_ties_are_by_cost(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (size_t round = 0; round < rounds(20000); round++) {
        kvca_params params = KVCA_PARAMS_DEFAULT;
        params.capacity_fraction = KVCA_NO_CAPACITY_FILTER;
        params.count_priority = false;
        params.decode_active_request_weight = (double)random_below(&random, 5);
        struct rank_set set = {0};
        fill_randomly(&set, &random);
        uint64_t weight = (uint64_t)params.decode_active_request_weight;
        uint64_t least = UINT64_MAX;
        uint64_t costs[MOST_RANKS];
        for (size_t row = 0; row < set.count; row++) {
            costs[row] = set.decode_cost_blocks[row] + set.request_blocks + weight * set.active_requests[row];
            least = costs[row] < least ? costs[row] : least;
        }
        kvca_policy *policy = make_policy(params);
        kvca_ranks ranks = ranks_of(&set);
        kvca_selection selection = {.size = sizeof selection};
        size_t rows[MOST_RANKS];
        assert_int_equal(kvca_tie_set(policy, &ranks, rows, COUNT(rows), &selection), KVCA_OK);
        kvca_policy_free(policy);
        size_t ties = 0;
        for (size_t row = 0; row < set.count; row++) {
            if (costs[row] != least) {
                continue;
            }
            if (ties >= selection.ties || rows[ties] != row) {
                print_rank_set(&params, &set);
                fail_msg("round %zu: row %zu has the least cost but is not in the tie set", round, row);
            }
            ties++;
        }
        assert_int_equal(selection.ties, ties);
    }
}

/* An unsound multiplier in any row is the answer, and nothing is written, whatever else the set has. */
static void unsound_multiplier_is_found_in_any_row(void **state)
{
    (void)state;
    static const double unsound[] = {0.0, -0.0, -1.0, -DBL_TRUE_MIN, HUGE_VAL, -HUGE_VAL, (double)NAN, -(double)NAN};
    const kvca_selection untouched = {.size = sizeof untouched, .row = 12345, .fits = 678};
    uint64_t random = 5;
    for (size_t round = 0; round < rounds(20000); round++) {
        kvca_params params = {.size = sizeof params};
        struct rank_set set = {0};
        fill_at_boundaries(&set, &params, &random);
        size_t row = (size_t)random_below(&random, set.count);
        set.preferred_taint_multiplier[row] = unsound[random_below(&random, COUNT(unsound))];
        kvca_ranks ranks = ranks_of(&set);
        kvca_policy *policy = make_policy(params);
        kvca_selection selection = untouched;
        kvca_status selected = kvca_select(policy, &ranks, &selection);
        kvca_status listed = kvca_tie_set(policy, &ranks, NULL, 0, &selection);
        size_t told = SIZE_MAX;
        kvca_status validated = kvca_ranks_validate(&ranks, &told);
        kvca_policy_free(policy);
        if (selected != KVCA_ERR_PREFERRED_TAINT_MULTIPLIER || listed != selected || validated != selected ||
            told != row || memcmp(&selection, &untouched, sizeof untouched) != 0) {
            print_rank_set(&params, &set);
            fail_msg("round %zu: row %zu is unsound; statuses %d, %d, %d, reported row %zu", round, row,
                     (int)selected, (int)listed, (int)validated, told);
        }
    }
}

static bool fits_by_integers(const kvca_params *params, const struct rank_set *set, size_t row)
{
    uint64_t capacity = set->total_kv_blocks[row] ? set->total_kv_blocks[row] : params->capacity_blocks;
    return capacity == 0 || set->decode_cost_blocks[row] + set->request_blocks <= capacity;
}

static void never_fails_and_prefers_ranks_that_fit(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (size_t round = 0; round < rounds(20000); round++) {
        kvca_params params = KVCA_PARAMS_DEFAULT;
        params.count_priority = random_below(&random, 2) == 0;
        params.capacity_blocks = random_below(&random, 3) * 4;
        struct rank_set set = {0};
        fill_randomly(&set, &random);
        size_t fits = 0;
        for (size_t row = 0; row < set.count; row++) {
            fits += fits_by_integers(&params, &set, row);
        }
        kvca_policy *policy = make_policy(params);
        kvca_ranks ranks = ranks_of(&set);
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        kvca_policy_free(policy);
        bool right = selection.fits == fits && (selection.outcome == KVCA_FIT) == (fits > 0) &&
                     fits_by_integers(&params, &set, selection.row) == (fits > 0);
        if (!right) {
            print_rank_set(&params, &set);
            fail_msg("round %zu: picked row %zu; %zu rows fit", round, selection.row, fits);
        }
    }
}

static void reported_capacity_goes_before_the_parameter(void **state)
{
    (void)state;
    static const struct {
        uint64_t reported;
        uint64_t parameter;
        uint64_t capacity;
        kvca_capacity_source source;
    } rows[] = {
        {100, 0, 100, KVCA_CAPACITY_REPORTED}, {100, 50, 100, KVCA_CAPACITY_REPORTED},
        {50, 100, 50, KVCA_CAPACITY_REPORTED}, {0, 70, 70, KVCA_CAPACITY_PARAMETER},
        {0, 0, 0, KVCA_CAPACITY_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("reported %d, parameter %d\n", (int)rows[i].reported, (int)rows[i].parameter);
        kvca_params params = KVCA_PARAMS_DEFAULT;
        params.capacity_blocks = rows[i].parameter;
        kvca_policy *policy = make_policy(params);
        const uint64_t zero = 0;
        kvca_ranks ranks = {.size = sizeof ranks,
                            .count = 1,
                            .decode_cost_blocks = &zero,
                            .active_requests = &zero,
                            .total_kv_blocks = &rows[i].reported};
        kvca_selection selection = {.size = sizeof selection};
        kvca_explanation explanation = {.size = sizeof explanation};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, &selection, 0, &explanation), KVCA_OK);
        assert_int_equal(explanation.capacity, rows[i].capacity);
        assert_int_equal(explanation.capacity_source, rows[i].source);
        assert_int_equal(explanation.limit, rows[i].capacity ? rows[i].capacity : UINT64_MAX);
        assert_int_equal(selection.unknown_capacity, rows[i].capacity == 0);
        kvca_policy_free(policy);
    }
}

static void limits_are_exact(void **state)
{
    (void)state;
    static const struct {
        double fraction;
        uint64_t capacity;
        uint64_t limit;
    } rows[] = {
        {1.0, 1, 1},
        {1.0, UINT64_MAX, UINT64_MAX},
        {1.0, (UINT64_C(1) << 53) - 1, (UINT64_C(1) << 53) - 1},
        {1.0, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 53},
        {1.0, UINT64_MAX - 1024, UINT64_MAX - 2047},
        {0.5, UINT64_MAX, UINT64_C(1) << 63},
        {DBL_TRUE_MIN, UINT64_MAX, 0},
        {1.0 - DBL_EPSILON / 2, UINT64_MAX, UINT64_MAX - 2047},
        {KVCA_NO_CAPACITY_FILTER, 1, UINT64_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("%.17g of %llu\n", rows[i].fraction, (unsigned long long)rows[i].capacity);
        kvca_params params = KVCA_PARAMS_DEFAULT;
        params.capacity_fraction = rows[i].fraction;
        kvca_policy *policy = make_policy(params);
        const uint64_t zero = 0;
        kvca_ranks ranks = {.size = sizeof ranks,
                            .count = 1,
                            .decode_cost_blocks = &rows[i].limit,
                            .active_requests = &zero,
                            .total_kv_blocks = &rows[i].capacity};
        kvca_selection selection = {.size = sizeof selection};
        kvca_explanation explanation = {.size = sizeof explanation};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        assert_int_equal(selection.outcome, KVCA_FIT);
        assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, &selection, 0, &explanation), KVCA_OK);
        assert_int_equal(explanation.limit, rows[i].limit);
        ranks.request_blocks = 1;
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        assert_int_equal(selection.outcome != KVCA_FIT, rows[i].limit != UINT64_MAX);
        kvca_policy_free(policy);
    }
}

static void infinite_costs_tie(void **state)
{
    (void)state;
    kvca_params params = PARAMS(KVCA_NO_CAPACITY_FILTER, false, DBL_MAX, 0);
    kvca_policy *policy = make_policy(params);
    const uint64_t blocks[] = {1, 2, 3};
    const uint64_t requests[] = {2, 3, UINT64_MAX};
    const double multipliers[] = {DBL_TRUE_MIN, DBL_MAX, 1.0};
    kvca_ranks ranks = {.size = sizeof ranks,
                        .count = 3,
                        .decode_cost_blocks = blocks,
                        .active_requests = requests,
                        .preferred_taint_multiplier = multipliers};
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_tie_set(policy, &ranks, NULL, 0, &selection), KVCA_OK);
    assert_int_equal(selection.ties, 3);
    kvca_policy_free(policy);
}

static void reasons_tell_the_first_criterion(void **state)
{
    (void)state;
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    const uint64_t blocks[] = {10, 30, 5, 200, 10};
    const uint64_t requests[] = {1, 1, 2, 0, 1};
    const uint64_t capacity[] = {100, 100, 100, 100, 100};
    const kvca_reason with_room[] = {KVCA_REASON_TIED, KVCA_REASON_HIGHER_COST, KVCA_REASON_MORE_REQUESTS,
                                     KVCA_REASON_DOES_NOT_FIT, KVCA_REASON_TIED};
    const kvca_reason without_room[] = {KVCA_REASON_MORE_BLOCKS, KVCA_REASON_MORE_BLOCKS, KVCA_REASON_TIED,
                                        KVCA_REASON_MORE_BLOCKS, KVCA_REASON_MORE_BLOCKS};
    kvca_ranks ranks = {.size = sizeof ranks,
                        .count = 5,
                        .decode_cost_blocks = blocks,
                        .active_requests = requests,
                        .total_kv_blocks = capacity};
    for (int over = 0; over < 2; over++) {
        ranks.request_blocks = over ? 1000 : 0;
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        for (size_t row = 0; row < ranks.count; row++) {
            kvca_explanation explanation = {.size = sizeof explanation};
            assert_int_equal(kvca_explain(kvca_policy_params(policy), &ranks, &selection, row, &explanation),
                             KVCA_OK);
            assert_int_equal(explanation.reason, over ? without_room[row] : with_room[row]);
        }
    }
    kvca_policy_free(policy);
}

static const struct CMUnitTest OTHERS[] = {
    cmocka_unit_test(columns_may_be_missing),
    cmocka_unit_test(without_filter_and_count_ties_are_by_cost),
    cmocka_unit_test(unsound_multiplier_is_found_in_any_row),
    cmocka_unit_test(never_fails_and_prefers_ranks_that_fit),
    cmocka_unit_test(reported_capacity_goes_before_the_parameter),
    cmocka_unit_test(limits_are_exact),
    cmocka_unit_test(infinite_costs_tie),
    cmocka_unit_test(reasons_tell_the_first_criterion),
};

int main(void)
{
    require_variant();
    vectors_load(&document, "selection.yaml");
    size_t count = vectors_count(&document);
    struct CMUnitTest *tests = calloc(count + COUNT(OTHERS), sizeof *tests);
    for (size_t i = 0; i < count; i++) {
        struct vector *vector = read_vector(vectors_case(&document, i));
        tests[i] = (struct CMUnitTest){
            .name = vector->name,
            .test_func = boundary_vector_matches_reference_tie_set,
            .initial_state = vector,
        };
    }
    memcpy(tests + count, OTHERS, sizeof OTHERS);
    int failed = _cmocka_run_group_tests("select", tests, count + COUNT(OTHERS), NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        free(tests[i].initial_state);
    }
    free(tests);
    yaml_document_delete(&document);
    return failed;
}
