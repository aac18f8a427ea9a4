/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kvca_select() is measured against:
 *
 *   A  router_select()   the usual pipeline of a router: workers in a hash map, a load looked up for each rank, a row
 *                        built of it, a scorer and a picker behind function pointers
 *   B  minimum_select()  the usual decode cost alone: the minimum of ready costs, ties drawn from a reservoir
 *   C  plain_select()    this rule, written plainly over an array of structs
 *   D  struct floor      no rule at all: each needed column read once, for its minimum
 *
 * A to C draw from a plain SplitMix64.
 */
#ifndef BENCH_BASELINES_H
#define BENCH_BASELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvca/kvca.h>

/* What A and C draw one of the tied rows with. */
struct drawer {
    uint64_t generator;
    size_t *tied; /* room for every row */
};

/* A: a worker and its ranks' loads, by key, in tables with open addressing. A table has a power of two of slots. */
struct router_worker {
    uint64_t worker_id;
    uint64_t total_kv_blocks;
    uint32_t dp_size; /* its ranks; 0 in an empty slot */
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

/* The worker's entry, a new one where it has none. */
struct router_worker *router_worker_at(const struct router *router, uint64_t worker_id);

/* The rank's entry, a new one where it has none. */
struct router_load *router_load_at(const struct router *router, uint64_t worker_id, uint32_t dp_rank);

/* `candidates` has room for every rank; selection->row is an index into it. */
void router_select(const struct router *router, const struct router_stages *stages, const kvca_params *params,
                   uint64_t request_blocks, struct candidate *candidates, struct drawer *drawer,
                   kvca_selection *selection);

/* B: returns the row, and how many rows have the smallest cost. */
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
 * D: the sum of the minima of three columns, or of four, of at least one row each; a multiplier counts as the integer
 * that its bits are, which orders positive doubles alike. Values are below 2^63.
 */
struct floor {
    const char *code; /* the instructions it uses */
    uint64_t (*three)(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t count);
    uint64_t (*four)(const uint64_t *a, const uint64_t *b, const uint64_t *c, const double *d, size_t count);
};

/* The fastest that this machine can run. */
struct floor floor_here(void);

#endif
