/* SPDX-License-Identifier: Apache-2.0 */
/* A, B and C. They have their own file so that the compiler cannot use what it knows of their callers. */
#include "baselines.h"

#include <float.h>

#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15)

static uint64_t split_mix(uint64_t *state)
{
    uint64_t value = *state += GOLDEN_GAMMA;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

/* A number below n, which is at most 2^32. A remainder would need a division, which is slower. */
static uint64_t draw(uint64_t *generator, uint64_t n)
{
    return ((split_mix(generator) >> 32) * n) >> 32;
}

static inline bool filter_is_on(const kvca_params *params)
{
    return params->capacity_fraction <= 1.0;
}

static inline uint64_t with_request(uint64_t booked, uint64_t request)
{
    uint64_t sum = booked + request;
    return sum < booked ? UINT64_MAX : sum;
}

static inline uint64_t known_capacity(const kvca_params *params, uint64_t reported)
{
    return reported != 0 ? reported : params->capacity_blocks;
}

static inline uint64_t limit(const kvca_params *params, uint64_t capacity)
{
    double product = params->capacity_fraction * (double)capacity;
    return product >= 0x1p64 ? UINT64_MAX : (uint64_t)product;
}

/* The best key so far. The drawer collects the rows that have it. A store for each costs less than a draw for each. */
struct best {
    uint64_t first;
    double second;
    size_t ties;
};

static const struct best no_best = {.first = UINT64_MAX, .second = HUGE_VAL};

static inline void offer(struct best *best, uint64_t first, double second, size_t row, size_t *tied)
{
    if (first > best->first) {
        return;
    }
    if (first < best->first || second < best->second) {
        *best = (struct best){.first = first, .second = second, .ties = 1};
        tied[0] = row;
    } else if (second == best->second) {
        tied[best->ties++] = row;
    }
}

static inline void tell(kvca_selection *selection, const struct best *best, struct drawer *drawer, size_t fits,
                        size_t unknown)
{
    size_t drawn = best->ties > 1 ? (size_t)draw(&drawer->generator, best->ties) : 0;
    *selection = (kvca_selection){
        .size = sizeof(kvca_selection),
        .row = drawer->tied[drawn],
        .outcome = fits > 0 ? KVCA_FIT : KVCA_FALLBACK,
        .fits = fits,
        .ties = best->ties,
        .unknown_capacity = unknown,
    };
}

/* A */

static size_t hash(uint64_t worker_id, uint32_t dp_rank, size_t slots)
{
    uint64_t product = (worker_id ^ ((uint64_t)dp_rank << 32)) * GOLDEN_GAMMA;
    return (size_t)(product ^ (product >> 32)) & (slots - 1);
}

struct router_worker *router_worker_at(const struct router *router, uint64_t worker_id)
{
    size_t slot = hash(worker_id, 0, router->worker_slots);
    while (router->workers[slot].dp_size != 0 && router->workers[slot].worker_id != worker_id) {
        slot = (slot + 1) & (router->worker_slots - 1);
    }
    return &router->workers[slot];
}

struct router_load *router_load_at(const struct router *router, uint64_t worker_id, uint32_t dp_rank)
{
    struct router_load *loads = router->loads;
    size_t slot = hash(worker_id, dp_rank, router->load_slots);
    while (loads[slot].used && (loads[slot].worker_id != worker_id || loads[slot].dp_rank != dp_rank)) {
        slot = (slot + 1) & (router->load_slots - 1);
    }
    return &loads[slot];
}

/* A rank without a load is idle. */
static struct candidate candidate_of(const struct router *router, const struct router_worker *worker,
                                     uint32_t dp_rank)
{
    const struct router_load *load = router_load_at(router, worker->worker_id, dp_rank);
    return (struct candidate){
        .worker_id = worker->worker_id,
        .dp_rank = dp_rank,
        .decode_cost_blocks = load->decode_cost_blocks,
        .active_requests = load->active_requests,
        .capacity = worker->total_kv_blocks,
    };
}

static size_t gather(const struct router *router, struct candidate *candidates)
{
    size_t count = 0;
    for (size_t slot = 0; slot < router->worker_slots; slot++) {
        const struct router_worker *worker = &router->workers[slot];
        for (uint32_t dp_rank = 0; dp_rank < worker->dp_size; dp_rank++) {
            candidates[count++] = candidate_of(router, worker, dp_rank);
        }
    }
    return count;
}

static void score(const kvca_params *params, struct candidate *candidates, size_t count, uint64_t request_blocks)
{
    for (size_t i = 0; i < count; i++) {
        struct candidate *candidate = &candidates[i];
        uint64_t blocks = with_request(candidate->decode_cost_blocks, request_blocks);
        uint64_t capacity = known_capacity(params, candidate->capacity);
        candidate->decode_cost_blocks = blocks;
        candidate->capacity = capacity;
        candidate->fits = !filter_is_on(params) || capacity == 0 || blocks <= limit(params, capacity);
        candidate->cost = (double)blocks + params->decode_active_request_weight * (double)candidate->active_requests;
    }
}

static void pick(const kvca_params *params, const struct candidate *candidates, size_t count, struct drawer *drawer,
                 kvca_selection *selection)
{
    struct best best = no_best;
    size_t fits = 0;
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        unknown += candidates[i].capacity == 0 && filter_is_on(params);
        if (candidates[i].fits) {
            fits++;
            uint64_t requests = params->count_priority ? candidates[i].active_requests : 0;
            offer(&best, requests, candidates[i].cost, i, drawer->tied);
        }
    }
    for (size_t i = 0; fits == 0 && i < count; i++) {
        offer(&best, candidates[i].decode_cost_blocks, 0, i, drawer->tied);
    }
    tell(selection, &best, drawer, fits, unknown);
}

struct router_stages router_default_stages(void)
{
    return (struct router_stages){.score = score, .pick = pick};
}

void router_select(const struct router *router, const struct router_stages *stages, const kvca_params *params,
                   uint64_t request_blocks, struct candidate *candidates, struct drawer *drawer,
                   kvca_selection *selection)
{
    size_t count = gather(router, candidates);
    stages->score(params, candidates, count, request_blocks);
    stages->pick(params, candidates, count, drawer, selection);
}

/* B */

size_t minimum_select(const double *costs, size_t count, uint64_t *generator, size_t *ties)
{
    double least = costs[0];
    size_t row = 0;
    size_t tied = 1;
    for (size_t i = 1; i < count; i++) {
        if (costs[i] < least) {
            least = costs[i];
            row = i;
            tied = 1;
        } else if (costs[i] == least && draw(generator, ++tied) == 0) {
            row = i;
        }
    }
    *ties = tied;
    return row;
}

/* C */

/* Few pools are full. The fallback has its own pass, so it costs other pools nothing. */
static void plain_fallback(const struct row *rows, size_t count, uint64_t request, struct best *best, size_t *tied)
{
    for (size_t i = 0; i < count; i++) {
        offer(best, with_request(rows[i].decode_cost_blocks, request), 0, i, tied);
    }
}

static bool is_sound(const struct row *row)
{
    return row->preferred_taint_multiplier > 0.0 && row->preferred_taint_multiplier <= DBL_MAX;
}

static inline void plain(const kvca_params *params, const struct row *rows, size_t count, bool multipliers,
                         uint64_t request, struct drawer *drawer, kvca_selection *selection)
{
    const double weight = params->decode_active_request_weight;
    const bool count_priority = params->count_priority;
    const bool filtered = filter_is_on(params);
    struct best best = no_best;
    size_t fits = 0;
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        uint64_t blocks = with_request(row->decode_cost_blocks, request);
        uint64_t capacity = known_capacity(params, row->total_kv_blocks);
        if (multipliers && !is_sound(row)) {
            *selection =
                (kvca_selection){.size = sizeof(kvca_selection), .ties = 0}; /* kvca_select answers with an error */
            return;
        }
        if (filtered && capacity == 0) {
            unknown++;
        } else if (filtered && blocks > limit(params, capacity)) {
            continue;
        }
        fits++;
        double cost = (double)blocks + weight * (double)row->active_requests;
        cost = multipliers ? cost * row->preferred_taint_multiplier : cost;
        offer(&best, count_priority ? row->active_requests : 0, cost, i, drawer->tied);
    }
    if (fits == 0) {
        plain_fallback(rows, count, request, &best, drawer->tied);
    }
    tell(selection, &best, drawer, fits, unknown);
}

void plain_select(const kvca_params *params, const struct row *rows, size_t count, uint64_t request_blocks,
                  struct drawer *drawer, kvca_selection *selection)
{
    plain(params, rows, count, false, request_blocks, drawer, selection);
}

void plain_select_multipliers(const kvca_params *params, const struct row *rows, size_t count,
                              uint64_t request_blocks, struct drawer *drawer, kvca_selection *selection)
{
    plain(params, rows, count, true, request_blocks, drawer, selection);
}
