/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing. Each round times all subjects of a size once. The order changes from round to round, so that disturbances
 * affect all subjects equally. Ratios are taken within a round.
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

/* The loads, and the parameters of the policy. */
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

#define FIRST_SETTING SCENARIO_FRACTION /* from here on the parameters differ; timed at a few sizes */

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
    SUBJECT_PLACE_ELIGIBLE, /* the request has a bitmap of eligible ranks: all */
    SUBJECT_GROW,
    SUBJECT_RELEASE,
    SUBJECTS
};

const char *subject_name(enum subject subject);

enum mode {
    MODE_LATENCY,    /* a pick waits for the last one, as if that had changed the loads */
    MODE_THROUGHPUT, /* picks may overlap */
    MODES
};

const char *mode_name(enum mode mode);

/* The figures of one subject over all rounds. */
struct figures {
    bool measured;
    double median; /* nanoseconds for one pick */
    double low;    /* 10th percentile */
    double high;   /* 90th */
    /* Medians of ratios; 0 if there is nothing to compare with. */
    double to_plain;  /* C */
    double to_floor;  /* D */
    double to_random; /* the same subject on random loads */
};

struct plan {
    size_t sizes;
    size_t ranks[MOST_SIZES];
    size_t rounds;
    double batch; /* at least this many nanoseconds are timed at once */
    uint64_t seed;
};

struct results {
    struct figures of[MOST_SIZES][SCENARIOS][SUBJECTS][MODES];
    uint64_t warnings; /* by the library */
};

/* Checks that all subjects give the same answers on every set. Then times them. */
void measure(const struct plan *plan, size_t size, struct results *results);

#endif
