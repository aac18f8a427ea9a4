/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a run. */
#ifndef KVCA_REPLAY_METRICS_H
#define KVCA_REPLAY_METRICS_H

#include "replay/run.h"

enum replay_metric {
    REPLAY_REQUESTS,
    REPLAY_DONE,
    REPLAY_DROPS,
    REPLAY_STICKS,
    REPLAY_OVER_CAPACITY,
    REPLAY_OVER_CAPACITY_AVOIDABLE,
    REPLAY_FALLBACKS,
    REPLAY_PREEMPTIONS,
    REPLAY_RECOMPUTED_TOKENS,
    REPLAY_WAIT_MEAN,
    REPLAY_WAIT_P50,
    REPLAY_WAIT_P99,
    REPLAY_TPOT_MEAN,
    REPLAY_TPOT_P99,
    REPLAY_E2E_MEAN,
    REPLAY_E2E_P50,
    REPLAY_E2E_P99,
    REPLAY_OUTPUT_RATE,
    REPLAY_MAKESPAN,
    REPLAY_KV_IMBALANCE,
    REPLAY_BATCH_IMBALANCE,
    REPLAY_PASSES,
    REPLAY_KV_USE, /* the mean share of blocks in use over the makespan */
    REPLAY_METRICS /* how many there are */
};

/* The key of a metric in the output, such as "wait_mean_s". */
const char *replay_metric_name(enum replay_metric metric);

bool replay_metric_is_count(enum replay_metric metric);

/* Computes all metrics of a run. Those of completed requests are 0 if there are none. */
void replay_measure(const struct replay_options *options, const struct replay_trace *trace,
                    const struct replay_run *run, double values[REPLAY_METRICS]);

#endif
