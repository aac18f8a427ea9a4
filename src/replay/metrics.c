/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/metrics.h"

#include <math.h>
#include <stdlib.h>

#include "program/fail.h"

static const char *const NAMES[REPLAY_METRICS] = {
    [REPLAY_REQUESTS] = "requests",
    [REPLAY_DONE] = "completed",
    [REPLAY_DROPS] = "dropped",
    [REPLAY_STICKS] = "stuck",
    [REPLAY_OVER_CAPACITY] = "over_capacity",
    [REPLAY_OVER_CAPACITY_AVOIDABLE] = "over_capacity_avoidable",
    [REPLAY_FALLBACKS] = "fallbacks",
    [REPLAY_PREEMPTIONS] = "preemptions",
    [REPLAY_RECOMPUTED_TOKENS] = "recomputed_tokens",
    [REPLAY_WAIT_MEAN] = "wait_mean_s",
    [REPLAY_WAIT_P50] = "wait_p50_s",
    [REPLAY_WAIT_P99] = "wait_p99_s",
    [REPLAY_TPOT_MEAN] = "tpot_mean_ms",
    [REPLAY_TPOT_P99] = "tpot_p99_ms",
    [REPLAY_E2E_MEAN] = "e2e_mean_s",
    [REPLAY_E2E_P50] = "e2e_p50_s",
    [REPLAY_E2E_P99] = "e2e_p99_s",
    [REPLAY_OUTPUT_RATE] = "output_tokens_per_s",
    [REPLAY_MAKESPAN] = "makespan_s",
    [REPLAY_KV_IMBALANCE] = "kv_imbalance",
    [REPLAY_BATCH_IMBALANCE] = "batch_imbalance",
    [REPLAY_PASSES] = "passes",
    [REPLAY_KV_USE] = "kv_use",
};

const char *replay_metric_name(enum replay_metric metric)
{
    return NAMES[metric];
}

bool replay_metric_is_count(enum replay_metric metric)
{
    return metric <= REPLAY_RECOMPUTED_TOKENS || metric == REPLAY_PASSES;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One number for each completed request, in the order of the trace until sort(). */
struct series {
    double *values;
    size_t count;
};

static double mean(const struct series *series)
{
    double sum = 0.0;
    for (size_t i = 0; i < series->count; i++) {
        sum += series->values[i];
    }
    return series->count > 0 ? sum / (double)series->count : 0.0;
}

/* Of a sorted series, by the nearest rank. */
static double percentile(const struct series *series, double share)
{
    if (series->count == 0) {
        return 0.0;
    }
    size_t rank = (size_t)ceil(share * (double)series->count);
    return series->values[rank > 0 ? rank - 1 : 0];
}

static void sort(struct series *series)
{
    qsort(series->values, series->count, sizeof *series->values, by_value);
}

enum { WAIT, TPOT, E2E, SERIES };

static double value_of(int series, const struct replay_request *request, double arrival,
                       const struct replay_outcome *outcome)
{
    switch (series) {
    case WAIT:
        return outcome->admitted_s - arrival;
    case TPOT:
        return (outcome->finished_s - outcome->admitted_s) / (double)request->output_tokens * 1000.0;
    default:
        return outcome->finished_s - arrival;
    }
}

static void fill(struct series *series, int kind, const struct replay_options *options,
                 const struct replay_trace *trace, const struct replay_run *run)
{
    series->count = 0;
    for (size_t i = 0; i < trace->count; i++) {
        if (run->outcomes[i].end == REPLAY_COMPLETED) {
            double arrival = replay_arrival_s(options, &trace->requests[i]);
            series->values[series->count++] = value_of(kind, &trace->requests[i], arrival, &run->outcomes[i]);
        }
    }
}

static void measure_times(const struct replay_options *options, const struct replay_trace *trace,
                          const struct replay_run *run, double values[REPLAY_METRICS])
{
    struct series series = {.values = program_resize(NULL, (trace->count + 1) * sizeof *series.values)};
    fill(&series, WAIT, options, trace, run);
    values[REPLAY_WAIT_MEAN] = mean(&series);
    sort(&series);
    values[REPLAY_WAIT_P50] = percentile(&series, 0.5);
    values[REPLAY_WAIT_P99] = percentile(&series, 0.99);
    fill(&series, TPOT, options, trace, run);
    values[REPLAY_TPOT_MEAN] = mean(&series);
    sort(&series);
    values[REPLAY_TPOT_P99] = percentile(&series, 0.99);
    fill(&series, E2E, options, trace, run);
    values[REPLAY_E2E_MEAN] = mean(&series);
    sort(&series);
    values[REPLAY_E2E_P50] = percentile(&series, 0.5);
    values[REPLAY_E2E_P99] = percentile(&series, 0.99);
    free(series.values);
}

static double all_blocks(const struct replay_options *options)
{
    double blocks = 0.0;
    for (size_t rank = 0; rank < options->ranks; rank++) {
        blocks += (double)options->capacities[rank];
    }
    return blocks;
}

/* The first arrival is at 0, so the last finish is the makespan. */
static void measure_rate(const struct replay_options *options, const struct replay_trace *trace,
                         const struct replay_run *run, double values[REPLAY_METRICS])
{
    double last = 0.0;
    double tokens = 0.0;
    for (size_t i = 0; i < trace->count; i++) {
        if (run->outcomes[i].end == REPLAY_COMPLETED) {
            last = run->outcomes[i].finished_s > last ? run->outcomes[i].finished_s : last;
            tokens += (double)trace->requests[i].output_tokens;
        }
    }
    values[REPLAY_MAKESPAN] = last;
    values[REPLAY_OUTPUT_RATE] = last > 0.0 ? tokens / last : 0.0;
    values[REPLAY_KV_USE] = last > 0.0 ? run->used_block_seconds / (all_blocks(options) * last) : 0.0;
}

static double count_ends(const struct replay_trace *trace, const struct replay_run *run, enum replay_end end)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++) {
        count += run->outcomes[i].end == end;
    }
    return (double)count;
}

void replay_measure(const struct replay_options *options, const struct replay_trace *trace,
                    const struct replay_run *run, double values[REPLAY_METRICS])
{
    values[REPLAY_REQUESTS] = (double)trace->count;
    values[REPLAY_DONE] = count_ends(trace, run, REPLAY_COMPLETED);
    values[REPLAY_DROPS] = count_ends(trace, run, REPLAY_DROPPED);
    values[REPLAY_STICKS] = count_ends(trace, run, REPLAY_STUCK);
    values[REPLAY_OVER_CAPACITY] = (double)run->over_capacity;
    values[REPLAY_OVER_CAPACITY_AVOIDABLE] = (double)run->over_capacity_avoidable;
    values[REPLAY_FALLBACKS] = (double)run->fallbacks;
    values[REPLAY_PREEMPTIONS] = (double)run->preemptions;
    values[REPLAY_RECOMPUTED_TOKENS] = (double)run->recomputed_tokens;
    values[REPLAY_KV_IMBALANCE] = run->kv_imbalance;
    values[REPLAY_BATCH_IMBALANCE] = run->batch_imbalance;
    values[REPLAY_PASSES] = (double)run->passes;
    measure_times(options, trace, run, values);
    measure_rate(options, trace, run, values);
}
