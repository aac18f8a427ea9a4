/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing. All subjects of a size are timed once in each round, in an order that turns from round to round, so that
 * what disturbs the machine disturbs them alike. Ratios are taken within rounds.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvca/kvca.h>

#include "loads.h"
#include "options.h"

#define MOST_ROUNDS 1001

/* The parameters of the policy, and the loads that it is timed on. */
enum scenario {
    SCENARIO_RANDOM,
    SCENARIO_TIED,
    SCENARIO_OVER,
    SCENARIO_IDLE,
    SCENARIO_UNKNOWN,
    SCENARIO_FRACTION, /* capacity_fraction 0.9 */
    SCENARIO_USUAL,    /* the usual decode cost: no filter, no count priority */
    SCENARIOS
};

#define FIRST_SETTING SCENARIO_FRACTION /* from here on it is the parameters that differ, at a few sizes */

const char *scenario_name(enum scenario scenario);

enum subject {
    SUBJECT_FLOOR,
    SUBJECT_FLOOR_MULTIPLIERS,
    SUBJECT_MINIMUM,
    SUBJECT_PLAIN,
    SUBJECT_PLAIN_MULTIPLIERS,
    SUBJECT_ROUTER,
    SUBJECT_SELECT,
    SUBJECT_SELECT_MULTIPLIERS,
    SUBJECT_PLACE,
    SUBJECT_PLACE_ELIGIBLE, /* the request names the ranks that it may be placed on: all */
    SUBJECT_GROW,
    SUBJECT_RELEASE,
    SUBJECTS
};

const char *subject_name(enum subject subject);

enum mode {
    MODE_LATENCY,    /* a pick waits for the last one, as where it changed the loads */
    MODE_THROUGHPUT, /* picks may overlap */
    MODES
};

const char *mode_name(enum mode mode);

/* Of one subject, over the rounds. */
struct figures {
    bool measured;
    double median; /* nanoseconds for one pick */
    double low;    /* 10th percentile */
    double high;   /* 90th */
    /* Medians of the ratios; 0 where there is nothing to compare with. */
    double to_plain;  /* C */
    double to_floor;  /* D */
    double to_random; /* the same subject on random loads */
};

struct plan {
    size_t sizes;
    size_t ranks[MOST_SIZES];
    size_t rounds;
    double batch; /* nanoseconds that are timed at once, at least */
    uint64_t seed;
};

struct results {
    struct figures of[MOST_SIZES][SCENARIOS][SUBJECTS][MODES];
    uint64_t warnings; /* that the library gave */
};

/* Checks on every set that all subjects give the same answers, then times them. */
void measure(const struct plan *plan, size_t size, struct results *results);

#endif
