/* SPDX-License-Identifier: Apache-2.0 */
/* One scenario at one size: what the subjects need to run, and the loops that are timed. */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvca/kvca.h>

#include "loads.h"
#include "subject.h"

struct trial {
    enum scenario scenario;
    const struct loads *loads;
    kvca_params params;
    kvca_policy *policy;
    struct floor floor;
    struct router_stages stages;
    struct candidate *candidates;
    struct drawer drawer;
    uint64_t order; /* of the sets */
    /* The bookings of a batch, and their sets. */
    size_t batch;
    kvca_booking *bookings;
    size_t *booked_sets;
    uint64_t *all_eligible; /* a bitmap */
    uint64_t warnings;
};

void trial_make(struct trial *trial, enum scenario scenario, const struct loads *loads, uint64_t seed);
void trial_free(struct trial *trial);

/* Whether the subject is timed in this scenario. GROW and RELEASE are timed with PLACE. */
bool trial_has(const struct trial *trial, enum subject subject);

/* Picks from each set once, in their order. Not for pools. */
uint64_t trial_visit(struct trial *trial, enum subject subject);

/* Picks `picks` times. Returns a value that depends on all picks. Not for pools. */
uint64_t trial_run(struct trial *trial, enum subject subject, enum mode mode, size_t picks);

/* Times `batches` batches of placing, growing and releasing, in nanoseconds. It leaves the pools unchanged. */
struct pool_times {
    double place;
    double grow;
    double release;
};
struct pool_times trial_run_pools(struct trial *trial, enum subject place, enum mode mode, size_t batches);

#endif
