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

/* For a person: a row for each policy, the mean over its seeds, the best of each column marked. */
void replay_print_table(const struct replay_result *results, size_t policies, size_t seeds);

/* For machines: all metrics of every run. */
void replay_print_json(const struct replay_result *results, size_t count);
void replay_print_csv(const struct replay_result *results, size_t count);

#endif
