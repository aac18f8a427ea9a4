/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/replay_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool/json.h"
#include "tool/table.h"
#include "tool/tool.h"

/* The columns of the table. */
static const struct {
    const char *title;
    enum replay_metric metric;
    int digits; /* after the point */
    bool more_is_better;
} COLUMNS[] = {
    {"over", REPLAY_OVER_CAPACITY, 0, false},    {"avoidable", REPLAY_OVER_CAPACITY_AVOIDABLE, 0, false},
    {"preempted", REPLAY_PREEMPTIONS, 0, false}, {"wait mean s", REPLAY_WAIT_MEAN, 2, false},
    {"wait p99 s", REPLAY_WAIT_P99, 2, false},   {"tpot mean ms", REPLAY_TPOT_MEAN, 2, false},
    {"tpot p99 ms", REPLAY_TPOT_P99, 2, false},  {"e2e mean s", REPLAY_E2E_MEAN, 2, false},
    {"e2e p99 s", REPLAY_E2E_P99, 2, false},     {"tokens/s", REPLAY_OUTPUT_RATE, 0, true},
};
#define COLUMN_COUNT (sizeof COLUMNS / sizeof COLUMNS[0])

/* Without a completed request there are no times. */
static bool is_known(const struct replay_result *results, size_t seeds, enum replay_metric metric)
{
    for (size_t seed = 0; seed < seeds; seed++) {
        if (results[seed].values[REPLAY_DONE] == 0 && !replay_metric_is_count(metric)) {
            return false;
        }
    }
    return true;
}

static double mean_of(const struct replay_result *results, size_t seeds, enum replay_metric metric)
{
    double sum = 0.0;
    for (size_t seed = 0; seed < seeds; seed++) {
        sum += results[seed].values[metric];
    }
    return sum / (double)seeds;
}

/* Values that look the same in print count as equal, so both can be the best. */
static double rounded(double value, int digits)
{
    double scale = pow(10.0, digits);
    return round(value * scale) / scale;
}

static double best_of(const struct replay_result *results, size_t policies, size_t seeds, size_t column)
{
    double best = 0.0;
    for (size_t policy = 0; policy < policies; policy++) {
        double value =
            rounded(mean_of(&results[policy * seeds], seeds, COLUMNS[column].metric), COLUMNS[column].digits);
        bool better = COLUMNS[column].more_is_better ? value > best : value < best;
        best = policy == 0 || better ? value : best;
    }
    return best;
}

static void add_cell(struct table *table, const struct replay_result *results, size_t seeds, size_t column,
                     double best, bool mark)
{
    if (!is_known(results, seeds, COLUMNS[column].metric)) {
        table_add(table, mark ? "- " : "-");
        return;
    }
    double value = rounded(mean_of(results, seeds, COLUMNS[column].metric), COLUMNS[column].digits);
    const char *marked = value == best ? "*" : " ";
    table_add(table, "%.*f%s", COLUMNS[column].digits, value, mark ? marked : "");
}

static void add_row(struct table *table, const struct replay_result *results, size_t seeds, const double *best,
                    bool mark)
{
    table_add(table, "%s", kvca_shown_name(results->policy).text);
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        add_cell(table, results, seeds, column, best[column], mark);
    }
}

/* The table does not show these requests. */
static void print_unfinished(const struct replay_result *results, size_t policies, size_t seeds)
{
    double dropped = results->values[REPLAY_DROPS];
    if (dropped > 0) {
        printf("dropped: %.0f requests without output, or larger than every rank\n", dropped);
    }
    for (size_t policy = 0; policy < policies; policy++) {
        double stuck = mean_of(&results[policy * seeds], seeds, REPLAY_STICKS);
        if (stuck > 0) {
            printf("stuck: %s sent %s requests to ranks that can never hold them; they failed and are not in the "
                   "times\n",
                   kvca_shown_name(results[policy * seeds].policy).text, tool_number(stuck).text);
        }
    }
}

void replay_print_table(const struct replay_result *results, size_t policies, size_t seeds)
{
    struct table_column columns[COLUMN_COUNT + 1] = {{"policy", false}};
    double best[COLUMN_COUNT];
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        columns[column + 1] = (struct table_column){COLUMNS[column].title, true};
        best[column] = best_of(results, policies, seeds, column);
    }
    struct table table = {.columns = columns, .width = COLUMN_COUNT + 1};
    for (size_t policy = 0; policy < policies; policy++) {
        add_row(&table, &results[policy * seeds], seeds, best, policies > 1);
    }
    table_print(&table, 0);
    table_free(&table);
    printf("\nover: bookings past a rank's capacity; avoidable: while another rank had room. wait: arrival to first\n"
           "admission. tpot: time per output token. e2e: arrival to finish.%s\n",
           policies > 1 ? " *: the best of its column." : "");
    if (seeds > 1) {
        printf("Means over %zu seeds; --format csv shows each.\n", seeds);
    }
    print_unfinished(results, policies, seeds);
}

static void print_result(struct json *json, const struct replay_result *result)
{
    json_object(json, NULL);
    json_string(json, "policy", kvca_shown_name(result->policy).text);
    json_integer(json, "seed", result->seed);
    for (int metric = 0; metric < REPLAY_METRICS; metric++) {
        const char *name = replay_metric_name((enum replay_metric)metric);
        if (replay_metric_is_count((enum replay_metric)metric)) {
            json_integer(json, name, (uint64_t)result->values[metric]);
        } else {
            json_number(json, name, result->values[metric]);
        }
    }
    json_end_object(json);
}

void replay_print_json(const struct replay_result *results, size_t count)
{
    struct json json = {0};
    json_array(&json, NULL);
    for (size_t i = 0; i < count; i++) {
        print_result(&json, &results[i]);
    }
    json_end_array(&json);
}

/* Quotes a field of CSV if it must (RFC 4180). */
static void print_field(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        printf("%s", text);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        putchar(*text);
        if (*text == '"') {
            putchar('"');
        }
    }
    putchar('"');
}

void replay_print_csv(const struct replay_result *results, size_t count)
{
    printf("policy,seed");
    for (int metric = 0; metric < REPLAY_METRICS; metric++) {
        printf(",%s", replay_metric_name((enum replay_metric)metric));
    }
    printf("\n");
    for (size_t i = 0; i < count; i++) {
        print_field(results[i].policy);
        printf(",%" PRIu64, results[i].seed);
        for (int metric = 0; metric < REPLAY_METRICS; metric++) {
            printf(",%s", tool_number(results[i].values[metric]).text);
        }
        printf("\n");
    }
}
