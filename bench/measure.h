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

#include "subject.h"

#define MOST_SIZES 16
#define MOST_ROUNDS 1001

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
