/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kvca_select() is measured against:
 *
 *   A  router_select()   the usual pipeline of a router: workers in a hash map, a load looked up and a row built for
 *                        each rank, a scorer and a picker behind function pointers
 *   B  minimum_select()  only the usual decode cost: the minimum of ready costs, with reservoir draws for ties
 *   C  plain_select()    this rule, as a plain loop over an array of structs
 *   D  struct floor      no rule: reads each needed column once, for its minimum
 *
 * A to C draw from a plain SplitMix64.
 */
#ifndef BENCH_BASELINES_H
#define BENCH_BASELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvca/kvca.h>

/* A and C draw one of the tied rows with this. */
struct drawer {
    uint64_t generator;
    size_t *tied; /* room for every row */
};

/* A: workers and loads of ranks, in hash tables with open addressing. The number of slots is a power of two. */
struct router_worker {
    uint64_t worker_id;
    uint64_t total_kv_blocks;
    uint32_t dp_size; /* number of its ranks; 0 in an empty slot */
};

struct router_load {
    uint64_t worker_id;
    uint32_t dp_rank;
    uint32_t used; /* 0 in an empty slot */
    uint64_t decode_cost_blocks;
    uint64_t active_requests;
};

struct router {
    struct router_worker *workers;
    struct router_load *loads;
    size_t worker_slots;
    size_t load_slots;
};

struct candidate {
    uint64_t worker_id;
    uint32_t dp_rank;
    bool fits;
    uint64_t decode_cost_blocks;
    uint64_t active_requests;
    uint64_t capacity;
    double cost;
};

struct router_stages {
    void (*score)(const kvca_params *params, struct candidate *candidates, size_t count, uint64_t request_blocks);
    void (*pick)(const kvca_params *params, const struct candidate *candidates, size_t count, struct drawer *drawer,
                 kvca_selection *selection);
};

/* The stages that make the pipeline follow this rule. */
struct router_stages router_default_stages(void);

/* The worker's entry, or the empty slot for it. */
struct router_worker *router_worker_at(const struct router *router, uint64_t worker_id);

/* The rank's entry, or the empty slot for it. */
struct router_load *router_load_at(const struct router *router, uint64_t worker_id, uint32_t dp_rank);

/* `candidates` has room for every rank. selection->row is an index into it. */
void router_select(const struct router *router, const struct router_stages *stages, const kvca_params *params,
                   uint64_t request_blocks, struct candidate *candidates, struct drawer *drawer,
                   kvca_selection *selection);

/* B: returns the row. `ties` is how many rows have the smallest cost. */
size_t minimum_select(const double *costs, size_t count, uint64_t *generator, size_t *ties);

/* C: a rank. */
struct row {
    uint64_t decode_cost_blocks;
    uint64_t active_requests;
    uint64_t total_kv_blocks;
    double preferred_taint_multiplier;
};

void plain_select(const kvca_params *params, const struct row *rows, size_t count, uint64_t request_blocks,
                  struct drawer *drawer, kvca_selection *selection);
void plain_select_multipliers(const kvca_params *params, const struct row *rows, size_t count,
                              uint64_t request_blocks, struct drawer *drawer, kvca_selection *selection);

/*
 * D: the sum of the minima of three or four columns of at least one row. Values are below 2^63. The bits of multipliers
 * are used as integers, which have the same order for positive doubles.
 */
struct floor {
    const char *code; /* the instructions it uses */
    uint64_t (*three)(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t count);
    uint64_t (*four)(const uint64_t *a, const uint64_t *b, const uint64_t *c, const double *d, size_t count);
};

/* The fastest one that this machine can run. */
struct floor floor_here(void);

#endif
