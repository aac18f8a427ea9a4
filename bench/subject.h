/* SPDX-License-Identifier: Apache-2.0 */
/* What is timed, in which scenario and how, and what tables call it. */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

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

#endif
