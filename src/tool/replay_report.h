/* SPDX-License-Identifier: Apache-2.0 */
/* The results of several runs, told. */
#ifndef KVCA_TOOL_REPLAY_REPORT_H
#define KVCA_TOOL_REPLAY_REPORT_H

#include "replay/metrics.h"

struct replay_result {
    const char *policy;
    uint64_t seed;
    double values[REPLAY_METRICS];
};

/* A table with the mean over seeds of each policy. The best of each column is marked. */
void replay_print_table(const struct replay_result *results, size_t policies, size_t seeds);

/* All metrics of every run. */
void replay_print_json(const struct replay_result *results, size_t count);
void replay_print_csv(const struct replay_result *results, size_t count);

#endif
