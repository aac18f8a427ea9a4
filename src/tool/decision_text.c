/* SPDX-License-Identifier: Apache-2.0 */
/* A decision as text. The table alone must answer "why this rank, why not that one". */
#include <inttypes.h>
#include <stdio.h>

#include "tool/decision.h"
#include "tool/table.h"
#include "tool/tool.h"

/* The most tied rows that are listed. */
#define ROWS_LISTED 16

static const kvca_explanation *picked(const struct decision *decision)
{
    return &decision->explained[decision->selection.row];
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_policy(const struct decision *decision)
{
    const kvca_params *params = &decision->policy.params;
    printf("policy   %s", decision->policy_path);
    if (decision->policy.instance[0] != '\0') {
        printf(", instance %s", decision->policy.instance);
    }
    if (params->capacity_fraction == KVCA_NO_CAPACITY_FILTER) {
        printf(": capacity_fraction null (filter off)");
    } else {
        printf(": capacity_fraction %s", tool_number(params->capacity_fraction).text);
    }
    printf(", count_priority %s, decode_active_request_weight %s, ", params->count_priority ? "true" : "false",
           tool_number(params->decode_active_request_weight).text);
    if (params->capacity_blocks) {
        printf("capacity_blocks %" PRIu64 "\n", params->capacity_blocks);
    } else {
        printf("capacity_blocks unset\n");
    }
    printf("request  %" PRIu64 " KV block%s\n\n", decision->ranks.request_blocks,
           plural(decision->ranks.request_blocks));
}

static void add_capacity(struct table *table, const kvca_explanation *rank)
{
    switch (rank->capacity_source) {
    case KVCA_CAPACITY_REPORTED:
        table_add(table, "%" PRIu64, rank->capacity);
        table_add(table, "%.0f%%", 100.0 * (double)rank->decode_cost_blocks / (double)rank->capacity);
        break;
    case KVCA_CAPACITY_PARAMETER:
        table_add(table, "%" PRIu64 "*", rank->capacity);
        table_add(table, "%.0f%%", 100.0 * (double)rank->decode_cost_blocks / (double)rank->capacity);
        break;
    case KVCA_CAPACITY_UNKNOWN:
        table_add(table, "unknown");
        table_add(table, "-");
        break;
    }
}

static void add_limit(struct table *table, const kvca_explanation *rank)
{
    if (rank->limit == UINT64_MAX) {
        table_add(table, "none");
    } else {
        table_add(table, "%" PRIu64, rank->limit);
    }
}

/* Why a rank passes the filter. */
static const char *passing(const struct decision *decision, const kvca_explanation *rank)
{
    if (decision->policy.params.capacity_fraction == KVCA_NO_CAPACITY_FILTER) {
        return "not filtered";
    }
    return rank->capacity_source == KVCA_CAPACITY_UNKNOWN ? "capacity unknown, taken to fit" : "fits";
}

static void add_tied_verdict(struct table *table, const struct decision *decision, size_t row)
{
    const kvca_explanation *rank = &decision->explained[row];
    const char *drawn = row == decision->selection.row ? "PICKED"
                        : rank->fits                   ? "as good as the pick, not drawn"
                                                       : "D is as small as the pick's, not drawn";
    if (rank->fits) {
        table_add(table, "%s: %s", passing(decision, rank), drawn);
    } else {
        table_add(table, "does not fit: D is %" PRIu64 " over the limit: %s", rank->decode_cost_blocks - rank->limit,
                  drawn);
    }
}

static void add_verdict(struct table *table, const struct decision *decision, size_t row)
{
    const kvca_explanation *rank = &decision->explained[row];
    const kvca_explanation *best = picked(decision);
    switch (rank->reason) {
    case KVCA_REASON_TIED:
        add_tied_verdict(table, decision, row);
        break;
    case KVCA_REASON_DOES_NOT_FIT:
        table_add(table, "does not fit: D is %" PRIu64 " over the limit", rank->decode_cost_blocks - rank->limit);
        break;
    case KVCA_REASON_MORE_REQUESTS:
        table_add(table, "%s, but N is %" PRIu64 " and the pick has %" PRIu64, passing(decision, rank),
                  rank->active_requests, best->active_requests);
        break;
    case KVCA_REASON_HIGHER_COST:
        table_add(table, "%s, but costs %s and the pick %s", passing(decision, rank), tool_number(rank->cost).text,
                  tool_number(best->cost).text);
        break;
    case KVCA_REASON_MORE_BLOCKS:
        table_add(table, "does not fit: D is %" PRIu64 " over the limit, and larger than the pick's",
                  rank->decode_cost_blocks - rank->limit);
        break;
    case KVCA_REASON_NOT_ELIGIBLE: /* a pool's alone: every row of a file may be picked */
        break;
    }
}

static bool has_multipliers(const struct decision *decision)
{
    for (size_t row = 0; row < decision->ranks.count; row++) {
        if (decision->ranks.preferred_taint_multiplier[row] != 1.0) {
            return true;
        }
    }
    return false;
}

static void print_legend(const struct decision *decision, bool stands_in)
{
    const kvca_params *params = &decision->policy.params;
    bool weighted = params->decode_active_request_weight > 0;
    bool scaled = has_multipliers(decision);
    printf("\nD: KV blocks booked on the rank, including this request's. N: its active requests.\n");
    if (params->capacity_fraction != KVCA_NO_CAPACITY_FILTER) {
        printf("limit: the largest D that fits, %s x capacity. ", tool_number(params->capacity_fraction).text);
    }
    printf("cost: %sD%s", scaled && weighted ? "(" : "", scaled || weighted ? "" : ".\n");
    if (weighted) {
        printf(" + %s x N%s", tool_number(params->decode_active_request_weight).text, scaled ? ")" : ".\n");
    }
    if (scaled) {
        printf(" x the rank's multiplier.\n");
    }
    if (stands_in) {
        printf("*: the rank reports no capacity; the parameter capacity_blocks stands in.\n");
    }
}

/* Most pools have no multipliers, so the column is shown only if there are some. */
static void print_ranks(const struct decision *decision)
{
    static const struct table_column plain[] = {
        {"row", true},      {"worker", true}, {"dp_rank", true}, {"D", true},    {"N", true},
        {"capacity", true}, {"D/cap", true},  {"limit", true},   {"cost", true}, {"verdict", false},
    };
    static const struct table_column scaled[] = {
        {"row", true},        {"worker", true},   {"dp_rank", true},  {"D", true},
        {"N", true},          {"capacity", true}, {"D/cap", true},    {"limit", true},
        {"multiplier", true}, {"cost", true},     {"verdict", false},
    };
    bool multipliers = has_multipliers(decision);
    struct table table = {
        .columns = multipliers ? scaled : plain,
        .width = multipliers ? sizeof scaled / sizeof scaled[0] : sizeof plain / sizeof plain[0],
    };
    bool stands_in = false;
    for (size_t row = 0; row < decision->ranks.count; row++) {
        const kvca_explanation *rank = &decision->explained[row];
        table_add(&table, "%zu", row);
        table_add(&table, "%" PRIu64, decision->ranks.worker_id[row]);
        table_add(&table, "%" PRIu32, decision->ranks.dp_rank[row]);
        table_add(&table, "%" PRIu64, rank->decode_cost_blocks);
        table_add(&table, "%" PRIu64, rank->active_requests);
        add_capacity(&table, rank);
        add_limit(&table, rank);
        if (multipliers) {
            table_add(&table, "%s", tool_number(decision->ranks.preferred_taint_multiplier[row]).text);
        }
        table_add(&table, "%s", tool_number(rank->cost).text);
        add_verdict(&table, decision, row);
        stands_in = stands_in || rank->capacity_source == KVCA_CAPACITY_PARAMETER;
    }
    table_print(&table, 0);
    table_free(&table);
    print_legend(decision, stands_in);
}

static void print_picked_rank(const struct decision *decision)
{
    size_t row = decision->selection.row;
    printf("\npick     row %zu (worker %" PRIu64 ", dp_rank %" PRIu32 "): ", row, decision->ranks.worker_id[row],
           decision->ranks.dp_rank[row]);
}

/* Whether the cost decided among ranks with equally few requests. */
static bool cost_decided(const struct decision *decision)
{
    for (size_t row = 0; row < decision->ranks.count; row++) {
        if (decision->explained[row].reason == KVCA_REASON_HIGHER_COST) {
            return true;
        }
    }
    return false;
}

/* "of the 6 ranks that fit, 2 are equally good and this one was drawn: it has ", or a shorter form. */
static void print_field(const struct decision *decision)
{
    const kvca_selection *selection = &decision->selection;
    bool filter = decision->policy.params.capacity_fraction != KVCA_NO_CAPACITY_FILTER;
    printf("of the %zu ranks%s, ", selection->fits, filter ? " that fit" : "");
    if (selection->ties > 1) {
        printf("%zu are equally good and this one was drawn: it has ", selection->ties);
    } else {
        printf("it has ");
    }
}

static void print_fit(const struct decision *decision)
{
    const kvca_explanation *best = picked(decision);
    if (decision->selection.fits == 1) {
        printf("it is the only rank that fits%s.\n",
               best->capacity_source == KVCA_CAPACITY_UNKNOWN ? "; its capacity is unknown" : "");
        return;
    }
    print_field(decision);
    if (!decision->policy.params.count_priority) {
        printf("the smallest cost, %s.\n", tool_number(best->cost).text);
        return;
    }
    printf("the fewest active requests, %" PRIu64, best->active_requests);
    if (cost_decided(decision)) {
        printf(", and among those the smallest cost, %s", tool_number(best->cost).text);
    }
    printf(".\n");
}

static uint64_t largest_limit(const struct decision *decision)
{
    uint64_t largest = 0;
    for (size_t row = 0; row < decision->ranks.count; row++) {
        uint64_t limit = decision->explained[row].limit;
        largest = limit > largest ? limit : largest;
    }
    return largest;
}

static void print_fallback(const struct decision *decision)
{
    const kvca_explanation *best = picked(decision);
    size_t ties = decision->selection.ties;
    printf("no rank fits, so it is one with the smallest D, %" PRIu64 ", which is %" PRIu64 " over its limit%s.\n",
           best->decode_cost_blocks, best->decode_cost_blocks - best->limit, ties > 1 ? "; it was drawn" : "");
    if (decision->selection.outcome == KVCA_FALLBACK_NEVER) {
        printf("         The request never fits: it has %" PRIu64 " blocks, and the largest limit is %" PRIu64
               ". Waiting does not help.\n",
               decision->ranks.request_blocks, largest_limit(decision));
    } else {
        printf("         The request will wait there, or push another out, unless the router holds it back.\n");
    }
}

static void print_ties(const struct decision *decision)
{
    size_t ties = decision->selection.ties;
    if (ties == 1) {
        printf("ties     none: no other rank is as good.\n");
        return;
    }
    printf("ties     %zu ranks are equally good (rows", ties);
    for (size_t i = 0; i < ties && i < ROWS_LISTED; i++) {
        printf("%s %zu", i == 0 ? "" : ",", decision->tied[i]);
    }
    printf("%s); the draw had seed %" PRIu64 ".\n", ties > ROWS_LISTED ? ", ..." : "", decision->seed);
}

void decision_print(const struct decision *decision)
{
    print_policy(decision);
    print_ranks(decision);
    print_picked_rank(decision);
    if (decision->selection.outcome == KVCA_FIT) {
        print_fit(decision);
    } else {
        print_fallback(decision);
    }
    print_ties(decision);
}
