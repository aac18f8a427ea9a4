/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdlib.h>

#include "check.h"
#include "common.h"
#include "trial.h"

#define FEWEST_PICKS 2

/* One thing to time in each round. */
struct entry {
    struct trial *trial;
    enum subject subject;
    enum mode mode;
    size_t repeats; /* picks, or batches of a pool */
};

#define MOST_ENTRIES (SCENARIOS * SUBJECTS * MODES)

/* The nanoseconds of a pick at one size. */
struct samples {
    double of[SCENARIOS][SUBJECTS][MODES][MOST_ROUNDS];
};

/* Is written so that the compiler keeps the picks. */
static volatile uint64_t sink;

static bool is_of_pool(enum subject subject)
{
    return subject >= SUBJECT_PLACE && subject <= SUBJECT_RELEASE;
}

/* The caches hold the data of the last entry, so each set is visited once before the clock starts. */
static void time_picks(const struct entry *entry, struct samples *samples, size_t round)
{
    sink += trial_visit(entry->trial, entry->subject);
    double start = now();
    sink += trial_run(entry->trial, entry->subject, entry->mode, entry->repeats);
    double took = now() - start;
    samples->of[entry->trial->scenario][entry->subject][entry->mode][round] = took / (double)entry->repeats;
}

static void time_pools(const struct entry *entry, struct samples *samples, size_t round)
{
    enum scenario scenario = entry->trial->scenario;
    double bookings = (double)(entry->repeats * entry->trial->batch);
    trial_run_pools(entry->trial, entry->subject, entry->mode, 1);
    struct pool_times times = trial_run_pools(entry->trial, entry->subject, entry->mode, entry->repeats);
    samples->of[scenario][entry->subject][entry->mode][round] = times.place / bookings;
    if (entry->subject == SUBJECT_PLACE) {
        samples->of[scenario][SUBJECT_GROW][entry->mode][round] = times.grow / bookings;
        samples->of[scenario][SUBJECT_RELEASE][entry->mode][round] = times.release / bookings;
    }
}

static void time_entry(const struct entry *entry, struct samples *samples, size_t round)
{
    if (is_of_pool(entry->subject)) {
        time_pools(entry, samples, round);
    } else {
        time_picks(entry, samples, round);
    }
}

/* Finds how many picks or batches last about `batch` nanoseconds, by the faster of two tries. */
static void calibrate(struct entry *entry, double batch)
{
    double fastest = HUGE_VAL;
    for (int try = 0; try < 2; try++) {
        double took;
        if (is_of_pool(entry->subject)) {
            took = trial_run_pools(entry->trial, entry->subject, entry->mode, 1).place;
        } else {
            double start = now();
            sink += trial_visit(entry->trial, entry->subject);
            took = (now() - start) / (double)entry->trial->loads->sets;
        }
        fastest = took < fastest ? took : fastest;
    }
    size_t repeats = (size_t)(batch / fastest) + 1;
    entry->repeats = repeats < FEWEST_PICKS ? FEWEST_PICKS : repeats;
}

/* The entry of place also times grow and release. */
static bool has_entry(const struct trial *trial, enum subject subject)
{
    return trial_has(trial, subject) && subject != SUBJECT_GROW && subject != SUBJECT_RELEASE;
}

static size_t list_entries(struct trial *trials, size_t count, double batch, struct entry *entries)
{
    size_t listed = 0;
    for (size_t i = 0; i < count; i++) {
        for (int subject = 0; subject < SUBJECTS; subject++) {
            for (int mode = 0; mode < MODES && has_entry(&trials[i], (enum subject)subject); mode++) {
                entries[listed] = (struct entry){&trials[i], (enum subject)subject, (enum mode)mode, 0};
                calibrate(&entries[listed++], batch);
            }
        }
    }
    return listed;
}

static double median_ratio(const double *of, const double *to, size_t rounds)
{
    double ratios[MOST_ROUNDS] = {0};
    for (size_t round = 0; round < rounds; round++) {
        ratios[round] = of[round] / to[round];
    }
    sort(ratios, rounds);
    return ratios[rounds / 2];
}

static bool has_multipliers(enum subject subject)
{
    return subject == SUBJECT_FLOOR_MULTIPLIERS || subject == SUBJECT_PLAIN_MULTIPLIERS ||
           subject == SUBJECT_SELECT_MULTIPLIERS;
}

static void compare(const struct samples *samples, enum scenario scenario, enum subject subject, enum mode mode,
                    size_t rounds, struct figures *figures)
{
    bool multipliers = has_multipliers(subject);
    const double *own = samples->of[scenario][subject][mode];
    const double *plain = samples->of[scenario][multipliers ? SUBJECT_PLAIN_MULTIPLIERS : SUBJECT_PLAIN][mode];
    const double *floor = samples->of[scenario][multipliers ? SUBJECT_FLOOR_MULTIPLIERS : SUBJECT_FLOOR][mode];
    figures->to_plain = median_ratio(own, plain, rounds);
    figures->to_floor = median_ratio(own, floor, rounds);
    if (scenario < FIRST_SETTING) {
        figures->to_random = median_ratio(own, samples->of[SCENARIO_RANDOM][subject][mode], rounds);
    }
}

static void sum_up(const struct samples *samples, const struct trial *trial, size_t rounds,
                   struct figures figures[SUBJECTS][MODES])
{
    double sorted[MOST_ROUNDS] = {0};
    for (int subject = 0; subject < SUBJECTS; subject++) {
        for (int mode = 0; mode < MODES && trial_has(trial, (enum subject)subject); mode++) {
            struct figures *own = &figures[subject][mode];
            for (size_t round = 0; round < rounds; round++) {
                sorted[round] = samples->of[trial->scenario][subject][mode][round];
            }
            sort(sorted, rounds);
            *own = (struct figures){
                .measured = true,
                .median = sorted[rounds / 2],
                .low = sorted[rounds / 10],
                .high = sorted[rounds - 1 - rounds / 10],
            };
            compare(samples, trial->scenario, (enum subject)subject, (enum mode)mode, rounds, own);
        }
    }
}

static size_t make_trials(const struct plan *plan, size_t ranks, const struct loads *loads, struct trial *trials)
{
    static const enum profile profiles[SCENARIOS] = {PROFILE_RANDOM,  PROFILE_TIED,   PROFILE_OVER,  PROFILE_IDLE,
                                                     PROFILE_UNKNOWN, PROFILE_RANDOM, PROFILE_RANDOM};
    bool settings = ranks == 8 || ranks == 64 || ranks == 1024;
    size_t count = settings ? SCENARIOS : FIRST_SETTING;
    for (size_t i = 0; i < count; i++) {
        trial_make(&trials[i], (enum scenario)i, &loads[profiles[i]], plan->seed);
        trial_check(&trials[i]);
    }
    return count;
}

void measure(const struct plan *plan, size_t size, struct results *results)
{
    static struct samples samples;
    static struct entry entries[MOST_ENTRIES];
    struct loads loads[PROFILES];
    struct trial trials[SCENARIOS];
    const kvca_params defaults = KVCA_PARAMS_DEFAULT;
    for (int profile = 0; profile < PROFILES; profile++) {
        loads_make(&loads[profile], plan->ranks[size], (enum profile)profile, plan->seed);
    }
    loads_make_pools(&loads[PROFILE_RANDOM], &defaults);
    size_t count = make_trials(plan, plan->ranks[size], loads, trials);
    size_t listed = list_entries(trials, count, plan->batch, entries);
    for (size_t round = 0; round < plan->rounds; round++) {
        for (size_t i = 0; i < listed; i++) {
            time_entry(&entries[(i + round) % listed], &samples, round);
        }
    }
    for (size_t i = 0; i < count; i++) {
        sum_up(&samples, &trials[i], plan->rounds, results->of[size][trials[i].scenario]);
        results->warnings += trials[i].warnings;
        trial_free(&trials[i]);
    }
    for (int profile = 0; profile < PROFILES; profile++) {
        loads_free(&loads[profile]);
    }
}
