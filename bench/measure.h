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

#include "options.h"
#include "subject.h"

#define MOST_ROUNDS 1001

/* Of one subject, over the rounds. */
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
