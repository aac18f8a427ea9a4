/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the targets of speed with the figures for latency. */
#include "report.h"

#include <stdint.h>

enum against { AGAINST_PLAIN, AGAINST_FLOOR, AGAINST_RANDOM };

/* A ratio that must be at most `most`, at all sizes from `least_ranks` to `most_ranks`. */
struct target {
    const char *text;
    enum scenario scenario;
    enum subject subject;
    enum against against;
    size_t least_ranks;
    size_t most_ranks;
    double most;
};

#define ANY_SIZE 1, SIZE_MAX

/* clang-format off */
static const struct target targets[] = {
    {"kvca_select at 64 ranks <= 1.8 x D", SCENARIO_RANDOM, SUBJECT_SELECT, AGAINST_FLOOR, 64, 64, 1.8},
    {"kvca_select from 1024 ranks <= 1.3 x D", SCENARIO_RANDOM, SUBJECT_SELECT, AGAINST_FLOOR, 1024, SIZE_MAX, 1.3},
    {"with multipliers at 64 ranks <= 2.2 x D", SCENARIO_RANDOM, SUBJECT_SELECT_MULTIPLIERS, AGAINST_FLOOR, 64, 64, 2.2},
    {"with multipliers from 1024 ranks <= 2.2 x D", SCENARIO_RANDOM, SUBJECT_SELECT_MULTIPLIERS, AGAINST_FLOOR, 1024, SIZE_MAX, 2.2},
    {"kvca_pool_place at 64 ranks <= 1.5 x D", SCENARIO_RANDOM, SUBJECT_PLACE, AGAINST_FLOOR, 64, 64, 1.5},
    {"kvca_pool_place from 1024 ranks < D", SCENARIO_RANDOM, SUBJECT_PLACE, AGAINST_FLOOR, 1024, SIZE_MAX, 1.0},
    {"kvca_select never slower than C", SCENARIO_RANDOM, SUBJECT_SELECT, AGAINST_PLAIN, ANY_SIZE, 1.0},
    {"unknown capacities, warnings on, <= 1.5 x random", SCENARIO_UNKNOWN, SUBJECT_SELECT, AGAINST_RANDOM, ANY_SIZE, 1.5},
    {"all tied <= 1.5 x random", SCENARIO_TIED, SUBJECT_SELECT, AGAINST_RANDOM, ANY_SIZE, 1.5},
};
/* clang-format on */

static double ratio(const struct target *target, const struct figures *figures)
{
    switch (target->against) {
    case AGAINST_PLAIN:
        return figures->to_plain;
    case AGAINST_FLOOR:
        return figures->to_floor;
    default:
        return figures->to_random;
    }
}

static void print_target(const struct target *target, const struct plan *plan, const struct results *results)
{
    double worst = 0;
    size_t worst_ranks = 0;
    for (size_t i = 0; i < plan->sizes; i++) {
        const struct figures *figures = &results->of[i][target->scenario][target->subject][MODE_LATENCY];
        bool asked = plan->ranks[i] >= target->least_ranks && plan->ranks[i] <= target->most_ranks;
        if (asked && figures->measured && ratio(target, figures) > worst) {
            worst = ratio(target, figures);
            worst_ranks = plan->ranks[i];
        }
    }
    if (worst_ranks == 0) {
        printf("  -       %s: not measured\n", target->text);
        return;
    }
    printf("  %-7s %s, %s: %.2f at %zu ranks\n", worst <= target->most ? "met" : "MISSED", target->text,
           scenario_name(target->scenario), worst, worst_ranks);
}

/* Prints where C is faster. Returns whether it is anywhere. */
static bool print_slower(const struct plan *plan, const struct results *results, enum scenario scenario,
                         enum subject subject)
{
    bool any = false;
    for (size_t i = 0; i < plan->sizes; i++) {
        const struct figures *figures = &results->of[i][scenario][subject][MODE_LATENCY];
        if (!figures->measured || figures->to_plain <= 1.0) {
            continue;
        }
        if (!any) {
            printf("  %s%s:", scenario_name(scenario), subject == SUBJECT_SELECT ? "" : ", with multipliers");
        }
        printf("%s %.2f at %zu", any ? "," : "", figures->to_plain, plan->ranks[i]);
        any = true;
    }
    if (any) {
        puts("");
    }
    return any;
}

static void report_slower(const struct plan *plan, const struct results *results)
{
    bool any = false;
    puts("\nWhere kvca_select takes longer than C, for latency: how many times as long, and at how many ranks:");
    for (enum scenario scenario = 0; scenario < SCENARIOS; scenario++) {
        any |= print_slower(plan, results, scenario, SUBJECT_SELECT);
        any |= print_slower(plan, results, scenario, SUBJECT_SELECT_MULTIPLIERS);
    }
    if (!any) {
        puts("  nowhere");
    }
}

void report_targets(const struct plan *plan, const struct results *results)
{
    puts("\nTargets, for latency, each with the worst ratio:");
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        print_target(&targets[i], plan, results);
    }
    report_slower(plan, results);
}
