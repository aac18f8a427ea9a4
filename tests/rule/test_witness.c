/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule compared with a second witness (reference.h), on rank sets that look for trouble, through kvca_select,
 * kvca_tie_set, kvca_explain and a pool. Also what the rule promises for sets that differ a little.
 */
#include "support/test.h"

#include <float.h>

#include <kvca/pool.h>

#include "pool/ledger.h"
#include "support/exact.h"
#include "support/reference.h"
#include "support/sets.h"

/* The witness computes as IEEE 754 says. Here the processor's own doubles check that. */
static void exact_arithmetic_matches_doubles(void **state)
{
    (void)state;
    static const double doubles[] = {0.0,     -0.0,          DBL_TRUE_MIN, 3 * DBL_TRUE_MIN, DBL_MIN, 0x1p-53, 0.1,
                                     0.5,     1.0 - 0x1p-53, 1.0,          1.0 + 0x1p-52,    1.5,     0x1p52,  0x1p53,
                                     0x1p600, DBL_MAX / 2,   DBL_MAX,      HUGE_VAL};
    uint64_t random = 21;
    for (size_t round = 0; round < rounds(200000); round++) {
        volatile double pair[2];
        for (size_t i = 0; i < 2; i++) {
            uint64_t bits = next_random(&random) % (UINT64_C(0x7ff) << 52);
            double any;
            memcpy(&any, &bits, sizeof any);
            uint64_t near = next_random(&random) >> random_below(&random, 64);
            double choice[] = {any, (double)near, doubles[random_below(&random, COUNT(doubles))]};
            pair[i] = choice[random_below(&random, COUNT(choice))];
        }
        volatile double sum = pair[0] + pair[1];
        volatile double product = pair[0] * pair[1];
        bool defined = !isnan(product); /* except 0 x infinity, which the rule never computes */
        uint64_t integer = next_random(&random) >> random_below(&random, 64);
        volatile double converted = (double)integer;
        uint64_t whole = pair[0] < 0x1p64 ? (uint64_t)pair[0] : UINT64_MAX;
        if (exact_sum(exact_of(pair[0]), exact_of(pair[1])) != exact_of(sum) ||
            (defined && exact_product(exact_of(pair[0]), exact_of(pair[1])) != exact_of(product)) ||
            exact_of_integer(integer) != exact_of(converted) || exact_floor(exact_of(pair[0])) != whole) {
            fail_msg("round %zu: %a and %a, or the integer %llu", round, pair[0], pair[1],
                     (unsigned long long)integer);
        }
    }
}

/* Whether each row is explained by its difference from the pick. */
static bool explains(const kvca_policy *policy, const kvca_ranks *ranks, const kvca_selection *picked,
                     const struct reference *reference)
{
    bool same = true;
    size_t fits = 0;
    for (size_t row = 0; same && row < ranks->count; row++) {
        kvca_explanation explanation = {.size = sizeof explanation};
        assert_int_equal(kvca_explain(kvca_policy_params(policy), ranks, picked, row, &explanation), KVCA_OK);
        fits += explanation.fits;
        same = (explanation.reason == KVCA_REASON_TIED) == reference->tied[row] &&
               explanation.fits == (explanation.decode_cost_blocks <= explanation.limit);
    }
    return same && fits == reference->fits;
}

static _Noreturn void differ(const char *what, const kvca_params *params, const struct rank_set *set,
                             const kvca_selection *selection, const struct reference *reference)
{
    print_rank_set(params, set);
    fail_msg("%s: row %zu, outcome %d, ties %zu, fits %zu, unknown %zu; the witness: outcome %d, ties %zu, fits %zu, "
             "unknown %zu",
             what, selection->row, (int)selection->outcome, selection->ties, selection->fits,
             selection->unknown_capacity, (int)reference->outcome, reference->ties, reference->fits,
             reference->unknown_capacity);
    abort(); /* not reached */
}

static void check_selection(const kvca_params *params, const struct rank_set *set, const kvca_ranks *ranks)
{
    struct reference reference = reference_select(params, set, NULL);
    kvca_policy *policy = make_policy(*params);
    kvca_selection listed = {.size = sizeof listed};
    kvca_selection picked = {.size = sizeof picked};
    size_t rows[MOST_RANKS];
    assert_int_equal(kvca_tie_set(policy, ranks, rows, COUNT(rows), &listed), KVCA_OK);
    assert_int_equal(kvca_select(policy, ranks, &picked), KVCA_OK);
    bool explained = explains(policy, ranks, &picked, &reference);
    kvca_policy_free(policy);
    if (!reference_agrees(&reference, &listed) || listed.row != rows[0] ||
        !reference_lists(&reference, rows, listed.ties)) {
        differ("kvca_tie_set", params, set, &listed, &reference);
    }
    if (!reference_agrees(&reference, &picked)) {
        differ("kvca_select", params, set, &picked, &reference);
    }
    if (!explained) {
        differ("kvca_explain", params, set, &picked, &reference);
    }
}

static void selections_match_the_witness(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (size_t round = 0; round < rounds(100000); round++) {
        kvca_params params = {.size = sizeof params};
        struct rank_set set = {0};
        fill_at_boundaries(&set, &params, &random);
        kvca_ranks ranks = leave_out(&set, &random);
        check_selection(&params, &set, &ranks);
    }
}

/* What a pool is asked in addition to the set. */
struct question {
    bool candidates[MOST_RANKS];
    bool later[MOST_RANKS]; /* those that would overflow included */
    uint64_t eligible[(MOST_RANKS + 63) / 64];
    kvca_request request;
};

/* Asks for some of the slots, or for all. Some slots drain, if that does not free them at once. */
static void ask(kvca_pool *pool, const struct rank_set *set, bool multipliers, struct question *question,
                uint64_t *random)
{
    *question = (struct question){.request = {.size = sizeof(kvca_request), .blocks = set->request_blocks}};
    question->request.only_if_fits = random_below(random, 4) == 0;
    question->request.preferred_taint_multiplier = multipliers ? set->preferred_taint_multiplier : NULL;
    bool all_eligible = random_below(random, 2) == 0;
    bool some_drain = random_below(random, 4) == 0;
    question->request.eligible = all_eligible ? NULL : question->eligible;
    for (size_t row = 0; row < set->count; row++) {
        bool eligible = all_eligible || random_below(random, 4) != 0;
        bool drains = some_drain && set->active_requests[row] != 0 && random_below(random, 4) == 0;
        bool overflows = set->decode_cost_blocks[row] > UINT64_MAX - set->request_blocks;
        question->eligible[row / 64] |= (uint64_t)eligible << row % 64;
        question->later[row] = eligible && !drains;
        question->candidates[row] = eligible && !drains && !overflows;
        if (drains) {
            assert_int_equal(kvca_pool_drain(pool, set->worker_id[row], set->dp_rank[row]), KVCA_OK);
        }
    }
}

static bool books(kvca_pool *pool, const struct rank_set *set, size_t row)
{
    const uint64_t *blocks = kvca_words(pool, KVCA_PART_BLOCKS);
    const uint64_t *requests = kvca_words(pool, KVCA_PART_REQUESTS);
    return blocks[row] == set->decode_cost_blocks[row] + set->request_blocks &&
           requests[row] == set->active_requests[row] + 1;
}

static void check_place(kvca_pool *pool, kvca_owner owner, const kvca_params *params, const struct rank_set *set,
                        const struct question *question)
{
    struct reference reference = reference_select(params, set, question->candidates);
    reference_look_ahead(&reference, params, set, question->later);
    kvca_booking booking;
    kvca_selection selection = {.size = sizeof selection, .row = SIZE_MAX};
    kvca_status status = kvca_pool_place(pool, owner, &question->request, &booking, &selection);
    if (reference.ties == 0) {
        if (status != KVCA_NONE_ELIGIBLE && status != KVCA_ERR_OVERFLOW) {
            differ("kvca_pool_place picks although it has no candidate", params, set, &selection, &reference);
        }
    } else if (reference.outcome != KVCA_FIT && question->request.only_if_fits) {
        if (status != (reference.outcome == KVCA_FALLBACK ? KVCA_NONE_FITS : KVCA_NEVER_FITS)) {
            differ("kvca_pool_place with only_if_fits", params, set, &selection, &reference);
        }
    } else if (status != KVCA_OK || !reference_agrees(&reference, &selection) || !books(pool, set, selection.row)) {
        differ("kvca_pool_place", params, set, &selection, &reference);
    }
}

static void places_match_the_witness(void **state)
{
    (void)state;
    uint64_t random = 4;
    for (size_t round = 0; round < rounds(40000); round++) {
        kvca_params params = {.size = sizeof params};
        struct rank_set set = {0};
        fill_at_boundaries(&set, &params, &random);
        kvca_ranks ranks = leave_out(&set, &random);
        kvca_pool *pool;
        assert_int_equal(kvca_pool_new((uint32_t)set.count, 1, &params, &pool), KVCA_OK);
        kvca_owner owner = book_set(pool, &set);
        struct question question;
        ask(pool, &set, ranks.preferred_taint_multiplier != NULL, &question, &random);
        check_place(pool, owner, &params, &set, &question);
        kvca_pool_free(pool);
    }
}

/* A set made from another one, and the row there of each of its rows. */
struct change {
    struct rank_set set;
    size_t origin[MOST_RANKS];
};

static struct reference ties_of(const kvca_params *params, const struct rank_set *set)
{
    kvca_ranks ranks = ranks_of(set);
    kvca_policy *policy = make_policy(*params);
    size_t rows[MOST_RANKS];
    kvca_selection selection = {.size = sizeof selection};
    struct reference ties = {.ties = 0};
    assert_int_equal(kvca_tie_set(policy, &ranks, rows, COUNT(rows), &selection), KVCA_OK);
    kvca_policy_free(policy);
    for (size_t i = 0; i < selection.ties; i++) {
        ties.tied[rows[i]] = true;
    }
    ties.ties = selection.ties;
    ties.fits = selection.fits;
    ties.outcome = selection.outcome;
    return ties;
}

static void the_order_of_rows_does_not_matter(void **state)
{
    (void)state;
    uint64_t random = 31;
    for (size_t round = 0; round < rounds(20000); round++) {
        kvca_params params = {.size = sizeof params};
        struct rank_set set = {0};
        fill_at_boundaries(&set, &params, &random);
        struct change shuffled = {.set = {.count = set.count, .request_blocks = set.request_blocks}};
        for (size_t row = 0; row < set.count; row++) { /* Fisher and Yates, from the inside out */
            size_t other = (size_t)random_below(&random, row + 1);
            shuffled.origin[row] = shuffled.origin[other];
            shuffled.origin[other] = row;
        }
        for (size_t row = 0; row < set.count; row++) {
            copy_row(&shuffled.set, row, &set, shuffled.origin[row]);
        }
        struct reference before = ties_of(&params, &set);
        struct reference after = ties_of(&params, &shuffled.set);
        bool same = before.ties == after.ties && before.outcome == after.outcome && before.fits == after.fits;
        for (size_t row = 0; same && row < set.count; row++) {
            same = after.tied[row] == before.tied[shuffled.origin[row]];
        }
        if (!same) {
            print_rank_set(&params, &set);
            print_rank_set(&params, &shuffled.set);
            fail_msg("round %zu: %zu ties in one order, %zu in the other", round, before.ties, after.ties);
        }
    }
}

/* The smallest D that does not fit a rank of this capacity; false if every D fits. */
static bool smallest_over(const kvca_params *params, uint64_t capacity, uint64_t *blocks)
{
    if (isinf(params->capacity_fraction) || capacity == 0) {
        return false;
    }
    uint64_t limit = reference_limit(params, capacity);
    *blocks = limit + 1;
    return limit != UINT64_MAX;
}

/* If some ranks fit, another rank that does not fit changes nothing, however few requests it has. */
static void a_rank_that_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    uint64_t random = 32;
    size_t checked = 0;
    for (size_t round = 0; round < rounds(20000); round++) {
        kvca_params params = {.size = sizeof params};
        struct rank_set set = {0};
        fill_at_boundaries(&set, &params, &random);
        size_t last = set.count - 1;
        uint64_t capacity = reference_capacity(&params, &set, last);
        uint64_t blocks;
        if (set.count < 2 || !smallest_over(&params, capacity, &blocks) || blocks < set.request_blocks) {
            continue;
        }
        set.decode_cost_blocks[last] = blocks - set.request_blocks;
        set.active_requests[last] = 0;
        struct reference with = ties_of(&params, &set);
        set.count--;
        struct reference without = ties_of(&params, &set);
        if (without.outcome != KVCA_FIT) {
            continue; /* its D counts then */
        }
        checked++;
        if (with.outcome != KVCA_FIT || with.ties != without.ties || with.fits != without.fits ||
            memcmp(with.tied, without.tied, sizeof with.tied) != 0) {
            set.count++;
            print_rank_set(&params, &set);
            fail_msg("round %zu: %zu ties with the last row, %zu without it", round, with.ties, without.ties);
        }
    }
    assert_true(checked > 0);
}

/* If the load of the pick falls, the rule promises that it stays a pick and that no other row becomes one. */
static void a_pick_stays_when_its_load_falls(void **state)
{
    (void)state;
    uint64_t random = 33;
    for (size_t round = 0; round < rounds(20000); round++) {
        kvca_params params = {.size = sizeof params};
        struct rank_set set = {0};
        fill_at_boundaries(&set, &params, &random);
        struct reference before = ties_of(&params, &set);
        size_t pick = 0;
        while (!before.tied[pick]) {
            pick++;
        }
        uint64_t *load = random_below(&random, 2) == 0 ? &set.decode_cost_blocks[pick] : &set.active_requests[pick];
        uint64_t was = *load;
        *load = random_below(&random, 2) == 0 || was == 0 ? was - (was != 0) : random_below(&random, was);
        struct reference after = ties_of(&params, &set);
        bool same = after.tied[pick];
        for (size_t row = 0; same && row < set.count; row++) {
            same = before.tied[row] || !after.tied[row];
        }
        if (!same) {
            print_rank_set(&params, &set);
            fail_msg("round %zu: row %zu was picked; its load fell from %llu and it is %s", round, pick,
                     (unsigned long long)was, after.tied[pick] ? "not the only pick" : "not a pick any more");
        }
    }
}

int main(void)
{
    require_variant();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_arithmetic_matches_doubles),
        cmocka_unit_test(selections_match_the_witness),
        cmocka_unit_test(places_match_the_witness),
        cmocka_unit_test(the_order_of_rows_does_not_matter),
        cmocka_unit_test(a_rank_that_does_not_fit_changes_nothing),
        cmocka_unit_test(a_pick_stays_when_its_load_falls),
    };
    return cmocka_run_group_tests_name("witness", tests, NULL, NULL);
}
