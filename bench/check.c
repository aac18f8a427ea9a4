/* SPDX-License-Identifier: Apache-2.0 */
/* Checks before the timing that all subjects give the same answers. A fast wrong answer is no baseline. */
#include "check.h"

#include <string.h>

#include "common.h"

/* For the message. */
struct place {
    const struct trial *trial;
    size_t set;
    const char *subject;
};

_Noreturn static void differ(const struct place *place, const char *what, size_t found, size_t expected)
{
    fail("%s is wrong: %s, %zu ranks, set %zu: %s %zu, but %zu by kvca_select", place->subject,
         scenario_name(place->trial->scenario), place->trial->loads->ranks, place->set, what, found, expected);
}

static void expect(const struct place *place, const char *what, size_t found, size_t expected)
{
    if (found != expected) {
        differ(place, what, found, expected);
    }
}

/* The row may be any of the tied rows. */
static void expect_tied(const struct place *place, const kvca_policy *policy, const kvca_ranks *ranks,
                        const kvca_selection *picked, size_t row)
{
    kvca_explanation explanation = {.size = sizeof explanation};
    must(kvca_explain(kvca_policy_params(policy), ranks, picked, row, &explanation));
    if (explanation.reason != KVCA_REASON_TIED) {
        differ(place, "picks row", row, picked->row);
    }
}

static void expect_same(const struct place *place, const kvca_selection *found, const kvca_selection *expected)
{
    expect(place, "outcome", (size_t)found->outcome, (size_t)expected->outcome);
    expect(place, "fits", found->fits, expected->fits);
    expect(place, "ties", found->ties, expected->ties);
    expect(place, "unknown_capacity", found->unknown_capacity, expected->unknown_capacity);
}

static void check_plain(struct trial *trial, size_t set, bool multipliers)
{
    struct place place = {trial, set, multipliers ? "C with multipliers" : "C"};
    kvca_ranks ranks = loads_columns(trial->loads, set, multipliers);
    const struct row *rows = trial->loads->rows + set * trial->loads->stride;
    kvca_selection expected = {.size = sizeof expected};
    kvca_selection found = {.size = sizeof found};
    must(kvca_select(trial->policy, &ranks, &expected));
    (multipliers ? plain_select_multipliers : plain_select)(&trial->params, rows, ranks.count, ranks.request_blocks,
                                                            &trial->drawer, &found);
    expect_same(&place, &found, &expected);
    expect_tied(&place, trial->policy, &ranks, &expected, found.row);
}

static size_t row_of(const struct loads *loads, const struct candidate *candidate)
{
    size_t row = 0;
    while (loads->worker_id[row] != candidate->worker_id || loads->dp_rank[row] != candidate->dp_rank) {
        row++;
    }
    return row;
}

static void check_router(struct trial *trial, size_t set)
{
    struct place place = {trial, set, "A"};
    kvca_ranks ranks = loads_columns(trial->loads, set, false);
    kvca_selection expected = {.size = sizeof expected};
    kvca_selection found = {.size = sizeof found};
    must(kvca_select(trial->policy, &ranks, &expected));
    router_select(&trial->loads->routers[set], &trial->stages, &trial->params, ranks.request_blocks,
                  trial->candidates, &trial->drawer, &found);
    expect_same(&place, &found, &expected);
    expect_tied(&place, trial->policy, &ranks, &expected, row_of(trial->loads, &trial->candidates[found.row]));
}

static void check_minimum(struct trial *trial, kvca_policy *usual, size_t set)
{
    struct place place = {trial, set, "B"};
    kvca_ranks ranks = loads_columns(trial->loads, set, false);
    kvca_selection expected = {.size = sizeof expected};
    size_t ties;
    must(kvca_select(usual, &ranks, &expected));
    size_t row = minimum_select(trial->loads->usual_costs + set * trial->loads->stride, ranks.count,
                                &trial->drawer.generator, &ties);
    expect(&place, "ties", ties, expected.ties);
    expect_tied(&place, usual, &ranks, &expected, row);
}

static uint64_t least(const uint64_t *values, size_t count)
{
    uint64_t minimum = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        minimum = values[i] < minimum ? values[i] : minimum;
    }
    return minimum;
}

static void check_floor(struct trial *trial, size_t set)
{
    kvca_ranks ranks = loads_columns(trial->loads, set, true);
    double multiplier = HUGE_VAL;
    for (size_t i = 0; i < ranks.count; i++) {
        double value = ranks.preferred_taint_multiplier[i];
        multiplier = value < multiplier ? value : multiplier;
    }
    uint64_t fourth;
    memcpy(&fourth, &multiplier, sizeof fourth);
    uint64_t sum = least(ranks.decode_cost_blocks, ranks.count) + least(ranks.active_requests, ranks.count) +
                   least(ranks.total_kv_blocks, ranks.count);
    if (trial->floor.three(ranks.decode_cost_blocks, ranks.active_requests, ranks.total_kv_blocks, ranks.count) !=
            sum ||
        trial->floor.four(ranks.decode_cost_blocks, ranks.active_requests, ranks.total_kv_blocks,
                          ranks.preferred_taint_multiplier, ranks.count) != sum + fourth) {
        fail("D is wrong: %s, %zu ranks, set %zu", scenario_name(trial->scenario), ranks.count, set);
    }
}

static void check_pool(struct trial *trial, size_t set, const uint64_t *eligible)
{
    struct place place = {trial, set, eligible ? "kvca_pool_place of those eligible" : "kvca_pool_place"};
    bool copied = loads_pool_is_copy(trial->loads, set);
    kvca_ranks ranks = loads_columns(trial->loads, copied ? 0 : set, false);
    kvca_request request = {.size = sizeof request, .blocks = ranks.request_blocks, .eligible = eligible};
    kvca_booking booking;
    kvca_selection expected = {.size = sizeof expected};
    kvca_selection found = {.size = sizeof found};
    must(kvca_select(trial->policy, &ranks, &expected));
    must(kvca_pool_place(loads_pool(trial->loads, set), trial->loads->owners[set], &request, &booking, &found));
    must(kvca_pool_release(loads_pool(trial->loads, set), &booking));
    expect_same(&place, &found, &expected);
    expect_tied(&place, trial->policy, &ranks, &expected, found.row);
}

void trial_check(struct trial *trial)
{
    kvca_params params = {.size = sizeof params,
                          .capacity_fraction = KVCA_NO_CAPACITY_FILTER,
                          .decode_active_request_weight = USUAL_WEIGHT};
    kvca_policy *usual;
    must(kvca_policy_new(&params, &usual));
    for (size_t set = 0; set < trial->loads->sets; set++) {
        check_plain(trial, set, false);
        check_plain(trial, set, true);
        check_floor(trial, set);
        if (trial_has(trial, SUBJECT_ROUTER)) {
            check_router(trial, set);
            check_minimum(trial, usual, set);
        }
        if (trial_has(trial, SUBJECT_PLACE) && set < trial->loads->pools) {
            check_pool(trial, set, NULL);
            check_pool(trial, set, trial->all_eligible);
        }
    }
    kvca_policy_free(usual);
}
