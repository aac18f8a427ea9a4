/* SPDX-License-Identifier: Apache-2.0 */
#include "loads.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

#define ROWS_IN_A_LINE 8
#define WORKER_RANKS 8 /* dp_size: the ranks of a worker share its capacity and its multiplier */

/* The rows of all sets together, except at the largest sizes. They are too many for a branch predictor to learn. They
 * are few enough for the level 2 cache of most machines, where a router's data would be. The bytes of all pools are
 * bounded for the same reasons. */
#define ALL_ROWS 16384
#define POOLS_BYTES 65536
#define FEWEST_SETS 4

/* From this many ranks on, pools are copies: no predictor learns even one of them. */
#define RANKS_OF_COPIED_POOLS 4096

static const char *const profile_names[PROFILES] = {"random", "all tied", "all over", "idle", "unknown"};

const char *profile_name(enum profile profile)
{
    return profile_names[profile];
}

/* The largest power of two that is at most `number`. */
static size_t power_below(size_t number)
{
    size_t power = 1;
    while (power <= number / 2) {
        power *= 2;
    }
    return power;
}

static uint64_t between(uint64_t *random, uint64_t low, uint64_t high)
{
    return low + next_random(random) % (high - low + 1);
}

static void make_ranks(struct loads *loads, uint64_t *random)
{
    for (size_t rank = 0; rank < loads->ranks; rank++) {
        bool next_worker = rank % WORKER_RANKS == 0;
        loads->worker_id[rank] =
            next_worker ? next_random(random) << 31 | next_random(random) : loads->worker_id[rank - 1];
        loads->dp_rank[rank] = (uint32_t)(rank % WORKER_RANKS);
    }
}

/* The values that all ranks of a worker share. */
static void make_worker(const struct loads *loads, struct row *row, uint64_t *random)
{
    static const uint64_t capacities[] = {40000, 50000, 60000, 80000};
    static const double multipliers[] = {1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1.5, 2.0};
    row->total_kv_blocks = capacities[next_random(random) % 4];
    row->preferred_taint_multiplier = multipliers[next_random(random) % 8];
    if (loads->profile == PROFILE_TIED) {
        row->total_kv_blocks = 60000;
    } else if (loads->profile == PROFILE_UNKNOWN) {
        row->total_kv_blocks = 0;
    }
}

/* The bookings of a rank. On about one rank in 14 a request does not fit. */
static void make_load(const struct loads *loads, struct row *row, uint64_t *random)
{
    row->active_requests = between(random, 5, 60);
    row->decode_cost_blocks = row->active_requests * between(random, 300, 1150);
    if (loads->profile == PROFILE_TIED) {
        row->active_requests = 30;
        row->decode_cost_blocks = 20000;
    } else if (loads->profile == PROFILE_OVER) {
        row->decode_cost_blocks += row->total_kv_blocks;
    } else if (loads->profile == PROFILE_IDLE) {
        row->active_requests = 0;
        row->decode_cost_blocks = 0;
    }
}

static void make_rows(const struct loads *loads, size_t set, uint64_t *random)
{
    struct row *rows = &loads->rows[set * loads->stride];
    for (size_t rank = 0; rank < loads->ranks; rank++) {
        rows[rank] = rank % WORKER_RANKS == 0 ? rows[rank] : rows[rank - 1];
        if (rank % WORKER_RANKS == 0) {
            make_worker(loads, &rows[rank], random);
        }
        make_load(loads, &rows[rank], random);
        /* One rank in ten has the same load as another. */
        if (rank > 0 && between(random, 1, 10) == 1) {
            const struct row *other = &rows[next_random(random) % rank];
            rows[rank].active_requests = other->active_requests;
            rows[rank].decode_cost_blocks = other->decode_cost_blocks;
        }
    }
}

static void lay_out_columns(const struct loads *loads, size_t set)
{
    for (size_t rank = 0; rank < loads->ranks; rank++) {
        size_t at = set * loads->stride + rank;
        const struct row *row = &loads->rows[at];
        loads->decode_cost_blocks[at] = row->decode_cost_blocks;
        loads->active_requests[at] = row->active_requests;
        loads->total_kv_blocks[at] = row->total_kv_blocks;
        loads->preferred_taint_multiplier[at] = row->preferred_taint_multiplier;
        loads->usual_costs[at] = (double)(row->decode_cost_blocks + loads->request_blocks[set]) +
                                 USUAL_WEIGHT * (double)row->active_requests;
    }
}

static void fill_router(const struct loads *loads, size_t set)
{
    const struct router *router = &loads->routers[set];
    for (size_t rank = 0; rank < loads->ranks; rank++) {
        const struct row *row = &loads->rows[set * loads->stride + rank];
        struct router_worker *worker = router_worker_at(router, loads->worker_id[rank]);
        worker->worker_id = loads->worker_id[rank];
        worker->total_kv_blocks = row->total_kv_blocks;
        worker->dp_size++;
        struct router_load *load = router_load_at(router, loads->worker_id[rank], loads->dp_rank[rank]);
        *load = (struct router_load){
            .worker_id = loads->worker_id[rank],
            .dp_rank = loads->dp_rank[rank],
            .used = 1,
            .decode_cost_blocks = row->decode_cost_blocks,
            .active_requests = row->active_requests,
        };
    }
}

/* The smallest power of two that leaves at least half of the slots empty. */
static size_t slots_for(size_t entries)
{
    size_t slots = 2 * power_below(entries);
    return slots < 2 * entries ? 2 * slots : slots;
}

/* The tables of all routers are in two blocks of memory. */
static void make_routers(struct loads *loads)
{
    size_t worker_slots = slots_for((loads->ranks + WORKER_RANKS - 1) / WORKER_RANKS);
    size_t load_slots = slots_for(loads->ranks);
    loads->routers = allocate(loads->sets, sizeof *loads->routers);
    struct router_worker *workers = allocate(loads->sets * worker_slots, sizeof *workers);
    struct router_load *entries = allocate(loads->sets * load_slots, sizeof *entries);
    for (size_t set = 0; set < loads->sets; set++) {
        loads->routers[set] = (struct router){
            .workers = workers + set * worker_slots,
            .loads = entries + set * load_slots,
            .worker_slots = worker_slots,
            .load_slots = load_slots,
        };
        fill_router(loads, set);
    }
}

void loads_make(struct loads *loads, size_t ranks, enum profile profile, uint64_t seed)
{
    size_t stride = (ranks + ROWS_IN_A_LINE - 1) / ROWS_IN_A_LINE * ROWS_IN_A_LINE;
    size_t sets = stride * FEWEST_SETS > ALL_ROWS ? FEWEST_SETS : power_below(ALL_ROWS / stride);
    size_t all = sets * stride;
    *loads = (struct loads){
        .profile = profile,
        .ranks = ranks,
        .stride = stride,
        .sets = sets,
        .worker_id = allocate(ranks, sizeof *loads->worker_id),
        .dp_rank = allocate(ranks, sizeof *loads->dp_rank),
        .decode_cost_blocks = allocate(all, sizeof *loads->decode_cost_blocks),
        .active_requests = allocate(all, sizeof *loads->active_requests),
        .total_kv_blocks = allocate(all, sizeof *loads->total_kv_blocks),
        .preferred_taint_multiplier = allocate(all, sizeof *loads->preferred_taint_multiplier),
        .rows = allocate(all, sizeof *loads->rows),
        .usual_costs = allocate(all, sizeof *loads->usual_costs),
        .request_blocks = allocate(sets, sizeof *loads->request_blocks),
    };
    uint64_t random = seed + ranks;
    make_ranks(loads, &random);
    for (size_t set = 0; set < sets; set++) {
        loads->request_blocks[set] = between(&random, 100, 1500);
        make_rows(loads, set, &random);
        lay_out_columns(loads, set);
    }
    make_routers(loads);
}

/* Books the load of a rank. Only kvca_pool_place() books, so only this slot is eligible. */
static void book(const struct loads *loads, size_t set, uint32_t slot, uint64_t *eligible)
{
    const struct row *row = &loads->rows[set * loads->stride + slot];
    kvca_request request = {.size = sizeof request, .eligible = eligible};
    kvca_booking booking;
    eligible[slot / 64] = UINT64_C(1) << slot % 64;
    for (uint64_t i = 0; i < row->active_requests; i++) {
        request.blocks = i == 0 ? row->decode_cost_blocks : 0;
        must(kvca_pool_place(loads_pool(loads, set), loads->owners[set], &request, &booking, NULL));
    }
    eligible[slot / 64] = 0;
}

/* Books on each rank before it puts the next, so that kvca_pool_place() looks at fewer ranks. */
static void make_pool(const struct loads *loads, size_t set, const kvca_params *params)
{
    kvca_pool *pool;
    must(kvca_pool_init(loads_pool(loads, set), loads->pool_bytes, (uint32_t)loads->ranks, 1, params, &pool));
    must(kvca_pool_set_seed(pool, set));
    must(kvca_pool_owner_claim(pool, 0, &loads->owners[set]));
    uint64_t *eligible = allocate((loads->ranks + 63) / 64, sizeof *eligible);
    for (size_t rank = 0; rank < loads->ranks; rank++) {
        kvca_put put = {.size = sizeof put};
        kvca_rank description = {
            .size = sizeof description,
            .worker_id = loads->worker_id[rank],
            .dp_rank = loads->dp_rank[rank],
            .total_kv_blocks = loads->total_kv_blocks[set * loads->stride + rank],
        };
        must(kvca_pool_put(pool, &description, &put));
        if (put.slot != rank) {
            fail("rank %zu of a new pool has slot %u", rank, (unsigned)put.slot);
        }
        book(loads, set, put.slot, eligible);
    }
    free(eligible);
}

bool loads_pool_is_copy(const struct loads *loads, size_t set)
{
    return set > 0 && loads->ranks >= RANKS_OF_COPIED_POOLS;
}

static void copy_pool(const struct loads *loads, size_t set)
{
    kvca_pool *pool;
    memcpy(loads_pool(loads, set), loads_pool(loads, 0), loads->pool_bytes);
    must(kvca_pool_attach(loads_pool(loads, set), loads->pool_bytes, &pool));
    loads->owners[set] = loads->owners[0];
}

void loads_make_pools(struct loads *loads, const kvca_params *params)
{
    loads->pool_bytes = kvca_pool_bytes((uint32_t)loads->ranks, 1);
    size_t pools = loads->pool_bytes * FEWEST_SETS > POOLS_BYTES ? FEWEST_SETS : POOLS_BYTES / loads->pool_bytes;
    loads->pools = power_below(pools < loads->sets ? pools : loads->sets);
    loads->pool_memory = allocate(loads->pools, loads->pool_bytes);
    loads->owners = allocate(loads->pools, sizeof *loads->owners);
    for (size_t set = 0; set < loads->pools; set++) {
        if (loads_pool_is_copy(loads, set)) {
            copy_pool(loads, set);
        } else {
            make_pool(loads, set, params);
        }
    }
}

void loads_free(struct loads *loads)
{
    free(loads->routers[0].workers);
    free(loads->routers[0].loads);
    free(loads->routers);
    free(loads->worker_id);
    free(loads->dp_rank);
    free(loads->decode_cost_blocks);
    free(loads->active_requests);
    free(loads->total_kv_blocks);
    free(loads->preferred_taint_multiplier);
    free(loads->rows);
    free(loads->usual_costs);
    free(loads->request_blocks);
    free(loads->pool_memory);
    free(loads->owners);
}
