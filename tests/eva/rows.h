/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selection, a tie set and explanations of rows with any values, by any parameters. The file that includes this says
 * how many rows there are (ROWS, any_count()), how many may be listed (room()), whether optional columns are left out
 * (FEWEST_COLUMNS: 0 for all combinations, 3 for none), and what is asserted (check_selection()).
 */
#ifndef KVCA_EVA_ROWS_H
#define KVCA_EVA_ROWS_H

static uint64_t booked[ROWS];
static uint64_t requests[ROWS];
static uint64_t capacities[ROWS];
static double multipliers[ROWS];
static uint64_t workers[ROWS];
static uint32_t dp_ranks[ROWS];
static size_t tied[ROWS];

static int columns_case;
static int call_case;

static void warn(void *user, const kvca_warning *warning)
{
    const kvca_ranks *ranks = user;
    //@ assert warned_row: warning->row < ranks->count;
}

static void explain(const kvca_policy *policy, const kvca_ranks *ranks, const kvca_selection *selection)
{
    kvca_explanation explanation = {.size = sizeof explanation};
    kvca_explain(kvca_policy_params(policy), ranks, selection, any_word(), &explanation);
}

static void select(kvca_policy *policy, const kvca_ranks *ranks)
{
    kvca_selection selection = {.size = sizeof selection};
    if (kvca_select(policy, ranks, &selection) == KVCA_OK) {
        check_selection(ranks, &selection);
        explain(policy, ranks, &selection);
    }
}

static void list(kvca_policy *policy, const kvca_ranks *ranks)
{
    kvca_selection selection = {.size = sizeof selection};
    if (kvca_tie_set(policy, ranks, tied, room(), &selection) == KVCA_OK) {
        check_selection(ranks, &selection);
    }
}

int main(void)
{
    kvca_policy *policy;
    kvca_params params = any_params();
    if (kvca_policy_new(&params, &policy) != KVCA_OK) {
        return 1;
    }
    make_any(booked, sizeof booked);
    make_any(requests, sizeof requests);
    make_any(capacities, sizeof capacities);
    make_any(multipliers, sizeof multipliers);
    make_any(workers, sizeof workers);
    make_any(dp_ranks, sizeof dp_ranks);
    kvca_ranks ranks = {
        .size = sizeof ranks,
        .count = any_count(),
        .worker_id = any_bool() ? workers : NULL,
        .dp_rank = any_bool() ? dp_ranks : NULL,
        .decode_cost_blocks = booked,
        .active_requests = requests,
        .total_kv_blocks = (columns_case = any_of(FEWEST_COLUMNS, 3)) % 2 != 0 ? capacities : NULL,
        .preferred_taint_multiplier = columns_case / 2 != 0 ? multipliers : NULL,
        .request_blocks = any_word(),
    };
    kvca_policy_set_warning(policy, any_bool() ? warn : NULL, &ranks);
    call_case = any_of(0, 1);
    if (call_case == 0) {
        select(policy, &ranks);
    } else {
        list(policy, &ranks);
    }
    kvca_policy_free(policy);
    return 0;
}

#endif
