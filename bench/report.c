/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <kvca/pool.h>

/* The largest ratio of the 90th to the 10th percentile on a quiet machine, for C and D at sizes that stay in a cache. A
 * neighbour on the same core slows C, which computes. It hardly slows D, which waits for memory. */
#define QUIET_SPREAD 1.25
#define QUIET_RANKS 1024

static void print_time(const struct figures *figures)
{
    if (figures->measured) {
        printf(" %9.1f", figures->median);
    } else {
        printf(" %9s", "-");
    }
}

static void print_ratio(bool measured, double ratio)
{
    if (measured) {
        printf(" %5.2f", ratio);
    } else {
        printf(" %5s", "-");
    }
}

static void print_medians_head(void)
{
    printf("%6s %9s %9s %9s %9s %9s %5s %5s   %9s %9s %9s %5s %5s   %9s %5s\n", "ranks", "A", "B", "C", "D", "select",
           "/C", "/D", "C+m", "D+m", "select+m", "/C+m", "/D+m", "place", "/D");
}

static void print_medians(size_t ranks, const struct figures of[SUBJECTS][MODES], enum mode mode)
{
    static const enum subject plain[] = {SUBJECT_ROUTER, SUBJECT_MINIMUM, SUBJECT_PLAIN, SUBJECT_FLOOR,
                                         SUBJECT_SELECT};
    const struct figures *select = &of[SUBJECT_SELECT][mode];
    const struct figures *multipliers = &of[SUBJECT_SELECT_MULTIPLIERS][mode];
    const struct figures *place = &of[SUBJECT_PLACE][mode];
    printf("%6zu", ranks);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        print_time(&of[plain[i]][mode]);
    }
    print_ratio(select->measured, select->to_plain);
    print_ratio(select->measured, select->to_floor);
    printf("  ");
    print_time(&of[SUBJECT_PLAIN_MULTIPLIERS][mode]);
    print_time(&of[SUBJECT_FLOOR_MULTIPLIERS][mode]);
    print_time(multipliers);
    print_ratio(multipliers->measured, multipliers->to_plain);
    print_ratio(multipliers->measured, multipliers->to_floor);
    printf("  ");
    print_time(place);
    print_ratio(place->measured, place->to_floor);
    puts("");
}

static const enum subject spread_subjects[] = {SUBJECT_PLAIN,
                                               SUBJECT_FLOOR,
                                               SUBJECT_SELECT,
                                               SUBJECT_PLAIN_MULTIPLIERS,
                                               SUBJECT_FLOOR_MULTIPLIERS,
                                               SUBJECT_SELECT_MULTIPLIERS};

#define SPREAD_SUBJECTS (sizeof spread_subjects / sizeof spread_subjects[0])

static void print_spread_head(void)
{
    printf("\n%6s", "ranks");
    for (size_t i = 0; i < SPREAD_SUBJECTS; i++) {
        printf("  %20s", subject_name(spread_subjects[i]));
    }
    puts("   (10th .. 90th percentile)");
}

static void print_spread(size_t ranks, const struct figures of[SUBJECTS][MODES], enum mode mode)
{
    printf("%6zu", ranks);
    for (size_t i = 0; i < SPREAD_SUBJECTS; i++) {
        const struct figures *figures = &of[spread_subjects[i]][mode];
        printf("  %8.1f .. %8.1f", figures->low, figures->high);
    }
    puts("");
}

static void print_table(const struct plan *plan, const struct results *results, enum scenario scenario,
                        enum mode mode)
{
    printf("\n%s, %s: ns for a pick\n", scenario_name(scenario), mode_name(mode));
    print_medians_head();
    for (size_t i = 0; i < plan->sizes; i++) {
        if (results->of[i][scenario][SUBJECT_SELECT][mode].measured) {
            print_medians(plan->ranks[i], results->of[i][scenario], mode);
        }
    }
    print_spread_head();
    for (size_t i = 0; i < plan->sizes; i++) {
        if (results->of[i][scenario][SUBJECT_SELECT][mode].measured) {
            print_spread(plan->ranks[i], results->of[i][scenario], mode);
        }
    }
}

void report_tables(const struct plan *plan, const struct results *results)
{
    puts("\nA: the pipeline of a router. B: the minimum of ready costs. C: the rule, written plainly. D: the floor, "
         "the\n"
         "columns read once. select: kvca_select. +m: with multipliers. place: kvca_pool_place. /C, /D: how many "
         "times\n"
         "as long as C or D, the median over rounds. latency: a pick waits for the last one; throughput: picks "
         "overlap.");
    for (int scenario = 0; scenario < SCENARIOS; scenario++) {
        for (int mode = 0; mode < MODES; mode++) {
            print_table(plan, results, (enum scenario)scenario, (enum mode)mode);
        }
    }
}

static void print_pool_times(size_t ranks, const struct figures of[SUBJECTS][MODES], enum mode mode)
{
    printf("%6zu  %-10s", ranks, mode_name(mode));
    for (int subject = SUBJECT_PLACE; subject <= SUBJECT_RELEASE; subject++) {
        const struct figures *figures = &of[subject][mode];
        printf("  %9.1f (%8.1f .. %8.1f)", figures->median, figures->low, figures->high);
    }
    print_ratio(true, of[SUBJECT_PLACE][mode].to_floor);
    puts("");
}

void report_pools(const struct plan *plan, const struct results *results)
{
    size_t none = kvca_pool_bytes(1024, 0);
    size_t one = kvca_pool_bytes(1024, 1);
    printf("\nThe pool. Memory, of 1024 ranks: %.1f bytes for each rank, and for each owner %.1f for each rank. A "
           "booking: "
           "%zu bytes,\nkept by the host. Times in ns on random loads, median (10th .. 90th percentile), and place / "
           "D.\nplace+e: the request has a bitmap of the ranks that are eligible, all of them.\n",
           (double)none / 1024, (double)(one - none) / 1024, sizeof(kvca_booking));
    printf("%6s  %-10s  %32s  %32s  %32s  %32s %5s\n", "ranks", "", "place", "place+e", "grow", "release", "/D");
    for (size_t i = 0; i < plan->sizes; i++) {
        for (int mode = 0; mode < MODES; mode++) {
            if (results->of[i][SCENARIO_RANDOM][SUBJECT_PLACE][mode].measured) {
                print_pool_times(plan->ranks[i], results->of[i][SCENARIO_RANDOM], (enum mode)mode);
            }
        }
    }
}

static double spread(const struct results *results, size_t size, enum subject subject)
{
    const struct figures *figures = &results->of[size][SCENARIO_RANDOM][subject][MODE_LATENCY];
    return figures->high / figures->low;
}

void report_noise(const struct plan *plan, const struct results *results)
{
    double worst = 0;
    size_t worst_ranks = 0;
    enum subject worst_subject = SUBJECT_FLOOR;
    for (size_t i = 0; i < plan->sizes; i++) {
        bool more = spread(results, i, SUBJECT_PLAIN) > spread(results, i, SUBJECT_FLOOR);
        enum subject subject = more ? SUBJECT_PLAIN : SUBJECT_FLOOR;
        if (plan->ranks[i] <= QUIET_RANKS && spread(results, i, subject) > worst) {
            worst = spread(results, i, subject);
            worst_ranks = plan->ranks[i];
            worst_subject = subject;
        }
    }
    if (worst > QUIET_SPREAD) {
        printf("\nWARNING: the machine was not quiet. At %zu ranks the 90th percentile of %s is %.2f times its 10th, "
               "although each\nround does the same work. From %.2f on, quote figures with their spread. Stop other "
               "work, and keep the run\non one processor (taskset -c 1).\n",
               worst_ranks, subject_name(worst_subject), worst, QUIET_SPREAD);
    }
}

void report_csv(FILE *file, const struct plan *plan, const struct results *results)
{
    fputs("ranks,scenario,subject,mode,median_ns,p10_ns,p90_ns,to_c,to_d,to_random\n", file);
    for (size_t i = 0; i < plan->sizes; i++) {
        for (int j = 0; j < SCENARIOS * SUBJECTS * MODES; j++) {
            int scenario = j / (SUBJECTS * MODES);
            int subject = j / MODES % SUBJECTS;
            int mode = j % MODES;
            const struct figures *figures = &results->of[i][scenario][subject][mode];
            if (figures->measured) {
                fprintf(file, "%zu,%s,%s,%s,%.3f,%.3f,%.3f,%.4f,%.4f,%.4f\n", plan->ranks[i],
                        scenario_name((enum scenario)scenario), subject_name((enum subject)subject),
                        mode_name((enum mode)mode), figures->median, figures->low, figures->high, figures->to_plain,
                        figures->to_floor, figures->to_random);
            }
        }
    }
}
