/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All sets of up to three ranks with small values of every field, with all parameters of small values. kvca_select,
 * kvca_tie_set and a pool must agree with the witness on each.
 */
#include "support/test.h"

#include <kvca/pool.h>

#include "support/reference.h"
#include "support/sets.h"

static const uint64_t BLOCKS[] = {0, 1, 2};
static const uint64_t REQUESTS[] = {0, 1, 2};
static const uint64_t CAPACITIES[] = {0, 1, 2};
static const double MULTIPLIERS[] = {1.0, 2.0};
#define RANKS (COUNT(BLOCKS) * COUNT(REQUESTS) * COUNT(CAPACITIES) * COUNT(MULTIPLIERS))
#define MOST 3

static const double FRACTIONS[] = {0.5, 1.0, KVCA_NO_CAPACITY_FILTER};
static const bool PRIORITIES[] = {true, false};
static const double WEIGHTS[] = {0.0, 1.0};
static const uint64_t CAPACITY_BLOCKS[] = {0, 1};
static const uint64_t REQUEST_BLOCKS[] = {0, 1};

static size_t take_digit(size_t *number, size_t base)
{
    size_t digit = *number % base;
    *number /= base;
    return digit;
}

static void fill_row(struct rank_set *set, size_t row, size_t number)
{
    set->decode_cost_blocks[row] = BLOCKS[take_digit(&number, COUNT(BLOCKS))];
    set->active_requests[row] = REQUESTS[take_digit(&number, COUNT(REQUESTS))];
    set->total_kv_blocks[row] = CAPACITIES[take_digit(&number, COUNT(CAPACITIES))];
    set->preferred_taint_multiplier[row] = MULTIPLIERS[take_digit(&number, COUNT(MULTIPLIERS))];
}

struct subject {
    kvca_params params;
    kvca_policy *policy;
    kvca_pool *pools[MOST + 1]; /* by number of ranks */
    kvca_owner owners[MOST + 1];
    size_t sets;
};

static void check_set(struct subject *subject, const struct rank_set *set)
{
    struct reference reference = reference_select(&subject->params, set, NULL);
    kvca_ranks ranks = ranks_of(set);
    kvca_request request = {.size = sizeof request,
                            .blocks = set->request_blocks,
                            .preferred_taint_multiplier = set->preferred_taint_multiplier};
    kvca_selection picked = {.size = sizeof picked};
    kvca_selection listed = {.size = sizeof listed};
    kvca_selection placed = {.size = sizeof placed};
    kvca_booking booking;
    size_t rows[MOST];
    rebook_set(subject->pools[set->count], set);
    bool same = kvca_select(subject->policy, &ranks, &picked) == KVCA_OK &&
                kvca_tie_set(subject->policy, &ranks, rows, COUNT(rows), &listed) == KVCA_OK &&
                kvca_pool_place(subject->pools[set->count], subject->owners[set->count], &request, &booking,
                                &placed) == KVCA_OK &&
                reference_agrees(&reference, &picked) && reference_agrees(&reference, &listed) &&
                reference_agrees(&reference, &placed) && reference_lists(&reference, rows, listed.ties);
    subject->sets++;
    if (!same) {
        print_rank_set(&subject->params, set);
        fail_msg("ties %zu of %zu that fit by the witness, %zu of %zu by kvca_select, %zu of %zu by the pool",
                 reference.ties, reference.fits, picked.ties, picked.fits, placed.ties, placed.fits);
    }
}

/* All sets of `count` ranks, or a share of them. */
static void check_sets(struct subject *subject, size_t count, uint64_t request_blocks)
{
    struct rank_set set = {.count = count, .request_blocks = request_blocks};
    size_t all = 1;
    for (size_t row = 0; row < count; row++) {
        all *= RANKS;
    }
    size_t step = all / (rounds(all) < all ? rounds(all) : all);
    while (step > 1 && (step % 2 == 0 || step % 3 == 0)) { /* otherwise a share would leave out values of a field */
        step++;
    }
    for (size_t number = 0; number < all; number += step) {
        size_t rest = number;
        for (size_t row = 0; row < count; row++) {
            fill_row(&set, row, take_digit(&rest, RANKS));
        }
        check_set(subject, &set);
    }
}

static void set_up(struct subject *subject, kvca_params params)
{
    *subject = (struct subject){.params = params, .policy = make_policy(params)};
    for (size_t count = 1; count <= MOST; count++) {
        struct rank_set set = {.count = count, .worker_id = {0, 1, 2}};
        assert_int_equal(kvca_pool_new((uint32_t)count, 1, &params, &subject->pools[count]), KVCA_OK);
        subject->owners[count] = book_set(subject->pools[count], &set);
    }
}

static void tear_down(struct subject *subject)
{
    kvca_policy_free(subject->policy);
    for (size_t count = 1; count <= MOST; count++) {
        kvca_pool_free(subject->pools[count]);
    }
}

static void sets_of_up_to_three_ranks_match_the_witness(void **state)
{
    (void)state;
    const size_t all = COUNT(FRACTIONS) * COUNT(PRIORITIES) * COUNT(WEIGHTS) * COUNT(CAPACITY_BLOCKS);
    size_t sets = 0;
    for (size_t number = 0; number < all; number++) {
        size_t rest = number;
        kvca_params params = {.size = sizeof params,
                              .capacity_fraction = FRACTIONS[take_digit(&rest, COUNT(FRACTIONS))],
                              .count_priority = PRIORITIES[take_digit(&rest, COUNT(PRIORITIES))],
                              .decode_active_request_weight = WEIGHTS[take_digit(&rest, COUNT(WEIGHTS))],
                              .capacity_blocks = CAPACITY_BLOCKS[take_digit(&rest, COUNT(CAPACITY_BLOCKS))]};
        struct subject subject;
        set_up(&subject, params);
        for (size_t count = 1; count <= MOST; count++) {
            for (size_t request = 0; request < COUNT(REQUEST_BLOCKS); request++) {
                check_sets(&subject, count, REQUEST_BLOCKS[request]);
            }
        }
        sets += subject.sets;
        tear_down(&subject);
    }
    print_message("%zu sets\n", sets);
    assert_true(sets > 0);
}

int main(void)
{
    require_variant();
    const struct CMUnitTest tests[] = {cmocka_unit_test(sets_of_up_to_three_ranks_match_the_witness)};
    return cmocka_run_group_tests_name("exhaustive", tests, NULL, NULL);
}
