/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data for all timings: sets of ranks, each in the layout of every subject. There are many sets in a random order,
 * so a branch predictor cannot learn them.
 */
#ifndef BENCH_LOADS_H
#define BENCH_LOADS_H

#include <kvca/pool.h>

#include "baselines.h"

enum profile {
    PROFILE_RANDOM,  /* a busy pool: some ranks are full, some are alike */
    PROFILE_TIED,    /* all ranks alike, with room */
    PROFILE_OVER,    /* every rank past its capacity */
    PROFILE_IDLE,    /* nothing booked */
    PROFILE_UNKNOWN, /* like random, but no capacity is known */
    PROFILES
};

const char *profile_name(enum profile profile);

struct loads {
    enum profile profile;
    size_t ranks;  /* in a set */
    size_t stride; /* rows from one set to the next, in whole cache lines */
    size_t sets;   /* a power of two */
    /* The same ranks in every set. */
    uint64_t *worker_id;
    uint32_t *dp_rank;
    /* By set and rank. */
    uint64_t *decode_cost_blocks;
    uint64_t *active_requests;
    uint64_t *total_kv_blocks;
    double *preferred_taint_multiplier;
    struct row *rows;
    double *usual_costs; /* D + W x N */
    /* By set. */
    uint64_t *request_blocks;
    struct router *routers;
    /* For the first `pools` sets: a power of two, or 0. The pools are in one block, pool_bytes apart. */
    size_t pools;
    size_t pool_bytes;
    unsigned char *pool_memory;
    kvca_owner *owners;
};

/* W of loads.usual_costs. */
#define USUAL_WEIGHT 500.0

void loads_make(struct loads *loads, size_t ranks, enum profile profile, uint64_t seed);
void loads_make_pools(struct loads *loads, const kvca_params *params);
void loads_free(struct loads *loads);

/* Large pools are copies of the first one, because it takes long to book their loads. */
bool loads_pool_is_copy(const struct loads *loads, size_t set);

/* A set for kvca_select(), with or without the column of multipliers. */
static inline kvca_ranks loads_columns(const struct loads *loads, size_t set, bool multipliers)
{
    size_t first = set * loads->stride;
    return (kvca_ranks){
        .size = sizeof(kvca_ranks),
        .count = loads->ranks,
        .worker_id = loads->worker_id,
        .dp_rank = loads->dp_rank,
        .decode_cost_blocks = loads->decode_cost_blocks + first,
        .active_requests = loads->active_requests + first,
        .total_kv_blocks = loads->total_kv_blocks + first,
        .preferred_taint_multiplier = multipliers ? loads->preferred_taint_multiplier + first : NULL,
        .request_blocks = loads->request_blocks[set],
    };
}

static inline kvca_pool *loads_pool(const struct loads *loads, size_t set)
{
    return (kvca_pool *)(void *)(loads->pool_memory + set * loads->pool_bytes);
}

#endif
