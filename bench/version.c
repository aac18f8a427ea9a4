/* SPDX-License-Identifier: Apache-2.0 */
/* See version.h. It must compile with the headers of every version since 0.1. */
#include "version.h"

#include <stdlib.h>
#include <string.h>

#include <kvca/pool.h>

#include "common.h"

/* From 0.2 on each structure that a caller fills in begins with its size. It stands last in an initialiser. */
#if KVCA_VERSION_MAJOR > 0 || KVCA_VERSION_MINOR >= 2
#define SIZE_OF(type) .size = sizeof(type)
#else
#define SIZE_OF(type)
#endif

#define FEWEST_BOOKINGS 64 /* of a batch: looking at the clock must not count */
#define RANKS_OF_A_BOOKING 64
#define MOST_BOOKINGS_OF_A_POOL 16

#define PAGE 4096
#define CACHE_LINE ((size_t)64)

/* All of it lies in one block that begins with a page, so that the pools of two versions have the same neighbours: how
 * fast a release is depends on where in their pages a booking and a pool are. */
struct version_pools {
    unsigned char *block;
    size_t used; /* bytes of the block */
    const struct version_sets *sets;
    size_t count; /* a power of two */
    kvca_pool **pools;
    kvca_owner *owners;
    size_t batch;
    kvca_booking *bookings;
    size_t *booked_pools;
    uint64_t *all_eligible;
};

static void hear_warning(void *user, const kvca_warning *warning)
{
    (void)user;
    (void)warning;
}

static void *policy_new(const struct version_params *params, uint64_t seed)
{
    kvca_params own = KVCA_PARAMS_DEFAULT;
    kvca_policy *policy;
    own.capacity_fraction = params->capacity_fraction;
    own.decode_active_request_weight = params->decode_active_request_weight;
    own.count_priority = params->count_priority;
    must(kvca_policy_new(&own, &policy));
    must(kvca_policy_set_seed(policy, seed));
    if (params->warnings) {
        must(kvca_policy_set_warning(policy, hear_warning, NULL));
    }
    return policy;
}

static void policy_free(void *policy)
{
    kvca_policy_free(policy);
}

static uint64_t select_batch(void *policy, const struct version_sets *sets, size_t picks, uint64_t order)
{
    const double *multipliers = sets->preferred_taint_multiplier;
    kvca_selection selection = {.row = 0, SIZE_OF(kvca_selection)};
    uint64_t sum = 0;
    for (size_t i = 0; i < picks; i++) {
        size_t set = ((size_t)next_random(&order) + selection.row) & (sets->count - 1);
        size_t first = set * sets->stride;
        kvca_ranks ranks = {.count = sets->ranks,
                            .worker_id = sets->worker_id,
                            .dp_rank = sets->dp_rank,
                            .decode_cost_blocks = sets->decode_cost_blocks + first,
                            .active_requests = sets->active_requests + first,
                            .total_kv_blocks = sets->total_kv_blocks + first,
                            .preferred_taint_multiplier = multipliers ? multipliers + first : NULL,
                            .request_blocks = sets->request_blocks[set],
                            SIZE_OF(kvca_ranks)};
        must(kvca_select(policy, &ranks, &selection));
        sum += selection.row;
    }
    return sum;
}

/* A rank's requests, the first of which has all its blocks, while no other slot may be picked. */
static void book(kvca_pool *pool, kvca_owner owner, size_t slot, uint64_t blocks, uint64_t requests,
                 uint64_t *eligible)
{
    kvca_request request = {.blocks = blocks, .eligible = eligible, SIZE_OF(kvca_request)};
    kvca_booking booking;
    eligible[slot / 64] = UINT64_C(1) << slot % 64;
    for (uint64_t i = 0; i < requests; i++) {
        must(kvca_pool_place(pool, owner, &request, &booking, NULL));
        request.blocks = 0;
    }
    eligible[slot / 64] = 0;
}

/* Rank r has slot r, since a new pool gives its slots away in rising order. A rank is booked on before the next one is
 * put, so that a place has fewer ranks to look at. */
static void fill_pool(const struct version_pools *pools, size_t index, uint64_t *eligible)
{
    const struct version_sets *sets = pools->sets;
    for (size_t rank = 0; rank < sets->ranks; rank++) {
        size_t at = index * sets->stride + rank;
        kvca_rank description = {.worker_id = sets->worker_id[rank],
                                 .dp_rank = sets->dp_rank[rank],
                                 .total_kv_blocks = sets->total_kv_blocks[at],
                                 SIZE_OF(kvca_rank)};
        must(kvca_pool_put(pools->pools[index], &description, NULL));
        book(pools->pools[index], pools->owners[index], rank, sets->decode_cost_blocks[at], sets->active_requests[at],
             eligible);
    }
}

/* One booking a pool, or one for every 64 ranks where that is more, so that loads hardly change. */
static size_t bookings_of(size_t ranks, size_t pools)
{
    size_t of_a_pool = ranks / RANKS_OF_A_BOOKING;
    of_a_pool = of_a_pool < 1 ? 1 : of_a_pool;
    size_t bookings = pools * (of_a_pool < MOST_BOOKINGS_OF_A_POOL ? of_a_pool : MOST_BOOKINGS_OF_A_POOL);
    return bookings < FEWEST_BOOKINGS ? FEWEST_BOOKINGS : bookings;
}

static size_t in_lines(size_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static void *carve(struct version_pools *pools, size_t count, size_t size)
{
    void *memory = pools->block + pools->used;
    pools->used += in_lines(count * size);
    return memory;
}

static void lay_out(struct version_pools *pools, size_t pool_bytes)
{
    const size_t words = (pools->sets->ranks + 63) / 64;
    size_t bytes = pools->count * (pool_bytes + 2 * CACHE_LINE) + in_lines(words * sizeof *pools->all_eligible) +
                   in_lines(pools->batch * sizeof *pools->bookings) +
                   in_lines(pools->batch * sizeof *pools->booked_pools);
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    pools->block = aligned_alloc(PAGE, bytes);
    if (!pools->block) {
        fail("no memory for %zu bytes", bytes);
    }
    memset(pools->block, 0, bytes);
    pools->pools = carve(pools, pools->count, sizeof(kvca_pool *));
    pools->owners = carve(pools, pools->count, sizeof *pools->owners);
    pools->bookings = carve(pools, pools->batch, sizeof *pools->bookings);
    pools->booked_pools = carve(pools, pools->batch, sizeof *pools->booked_pools);
    pools->all_eligible = carve(pools, words, sizeof *pools->all_eligible);
}

static struct version_pools *pools_new(const struct version_sets *sets, size_t count, uint64_t seed)
{
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    uint32_t ranks = (uint32_t)sets->ranks;
    size_t bytes = kvca_pool_bytes(ranks, 1);
    struct version_pools *pools = allocate(1, sizeof *pools);
    pools->sets = sets;
    pools->count = count;
    pools->batch = bookings_of(sets->ranks, count);
    lay_out(pools, bytes);
    for (size_t i = 0; i < count; i++) {
        must(kvca_pool_init(carve(pools, bytes, 1), bytes, ranks, 1, &params, &pools->pools[i]));
        must(kvca_pool_set_seed(pools->pools[i], seed + i));
        must(kvca_pool_owner_claim(pools->pools[i], 0, &pools->owners[i]));
        fill_pool(pools, i, pools->all_eligible);
    }
    memset(pools->all_eligible, 0xff, (sets->ranks + 63) / 64 * sizeof *pools->all_eligible);
    return pools;
}

static void pools_free(struct version_pools *pools)
{
    free(pools->block);
    free(pools);
}

static size_t place_batch(struct version_pools *pools, enum version_request kind, uint64_t order, uint64_t *sum)
{
    const struct version_sets *sets = pools->sets;
    kvca_selection selection = {.row = 0, SIZE_OF(kvca_selection)};
    for (size_t i = 0; i < pools->batch; i++) {
        size_t index = ((size_t)next_random(&order) + selection.row) & (pools->count - 1);
        kvca_request request = {
            .blocks = sets->request_blocks[index],
            .eligible = kind == REQUEST_ELIGIBLE ? pools->all_eligible : NULL,
            .preferred_taint_multiplier =
                kind == REQUEST_MULTIPLIERS ? sets->preferred_taint_multiplier + index * sets->stride : NULL,
            SIZE_OF(kvca_request)};
        must(kvca_pool_place(pools->pools[index], pools->owners[index], &request, &pools->bookings[i], &selection));
        pools->booked_pools[i] = index;
        *sum += selection.row;
    }
    return pools->batch;
}

static size_t release_batch(struct version_pools *pools)
{
    for (size_t i = 0; i < pools->batch; i++) {
        must(kvca_pool_release(pools->pools[pools->booked_pools[i]], &pools->bookings[i]));
    }
    return pools->batch;
}

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const struct version kvca_bench_version;

const struct version kvca_bench_version = {
    .number = kvca_version,
    .variant = kvca_variant,
    .policy_new = policy_new,
    .policy_free = policy_free,
    .select = select_batch,
    .pools_new = pools_new,
    .pools_free = pools_free,
    .place = place_batch,
    .release = release_batch,
};
