/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One version of the library, as compare.c calls it. version.c is compiled once with the headers and the library of each
 * version, so no structure of the library may be here: they differ from version to version.
 */
#ifndef BENCH_VERSION_H
#define BENCH_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parameters that differ from the defaults in some setting. */
struct version_params {
    double capacity_fraction;
    double decode_active_request_weight;
    bool count_priority;
    bool warnings; /* somebody is told of ranks without a known capacity */
};

/* Sets of ranks: row r of set s is at s * stride + r. */
struct version_sets {
    size_t ranks;
    size_t stride;
    size_t count; /* a power of two */
    const uint64_t *worker_id;
    const uint32_t *dp_rank;
    const uint64_t *decode_cost_blocks;
    const uint64_t *active_requests;
    const uint64_t *total_kv_blocks;
    const double *preferred_taint_multiplier; /* NULL for none */
    const uint64_t *request_blocks;           /* by set */
};

/* What a request tells a pool beside its blocks. */
enum version_request {
    REQUEST_PLAIN,
    REQUEST_MULTIPLIERS,
    REQUEST_ELIGIBLE /* a bitmap of all slots */
};

struct version_pools;

struct version {
    const char *(*number)(void);
    const char *(*variant)(void);

    void *(*policy_new)(const struct version_params *params, uint64_t seed);
    void (*policy_free)(void *policy);
    /* Each pick waits for the one before, and `order` draws its set. Returns the sum of the rows. */
    uint64_t (*select)(void *policy, const struct version_sets *sets, size_t picks, uint64_t order);

    /* Pools with the default parameters and the loads of the first sets. `sets` must have multipliers, and must live as
     * long as the pools. */
    struct version_pools *(*pools_new)(const struct version_sets *sets, size_t pools, uint64_t seed);
    void (*pools_free)(struct version_pools *pools);
    /* A batch of bookings, and their end. Afterwards the pools are as before. Both return the number of bookings, and
     * place() adds the slots to *sum. */
    size_t (*place)(struct version_pools *pools, enum version_request request, uint64_t order, uint64_t *sum);
    size_t (*release)(struct version_pools *pools);
};

/* The one symbol of the shared object. */
#define VERSION_SYMBOL "kvca_bench_version"

#endif
