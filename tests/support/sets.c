/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sets.h"

#include <float.h>
#include <math.h>

#include "pool/ledger.h"
#include "support/reference.h"

/* Values at which integers, doubles and limits change their behaviour. The first ones are small for the rule. */
static const uint64_t BOUNDARIES[] = {0,
                                      1,
                                      2,
                                      1000,
                                      UINT64_C(1) << 31,
                                      (UINT64_C(1) << 32) - 2,
                                      UINT64_C(1) << 32,
                                      UINT64_C(1) << 40,
                                      UINT64_C(1) << 52,
                                      UINT64_C(1) << 53,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX,
                                      UINT64_MAX - 2048};
#define SMALL_BOUNDARIES 6

static uint64_t boundary_value(uint64_t *random, size_t count)
{
    return BOUNDARIES[random_below(random, count)] + random_below(random, 3) - 1;
}

static double boundary_double(uint64_t *random)
{
    static const double values[] = {DBL_TRUE_MIN, DBL_MIN, 0x1p-53, 0.1,    0.5,    1.0,
                                    1.5,          64.0,    0x1p53,  0x1p64, DBL_MAX};
    return values[random_below(random, COUNT(values))];
}

static double boundary_weight(uint64_t *random)
{
    static const double values[] = {0.3, 500.0, 0x1p19, 0x1p19 + 0x1p-33, 0x1p31};
    return random_below(random, 2) == 0 ? values[random_below(random, COUNT(values))] : boundary_double(random);
}

/* Most sets are a few vectors long. Some end near the end of a group, or anywhere. */
static size_t boundary_count(uint64_t *random)
{
    static const size_t counts[] = {31, 32, 33, 63, 64, 65, 71, 72, 73, 127, 128, 129, 191, 192, 193, MOST_RANKS};
    switch (random_below(random, 16)) {
    case 0:
        return counts[random_below(random, COUNT(counts))];
    case 1:
        return 1 + (size_t)random_below(random, MOST_RANKS);
    default:
        return 1 + (size_t)random_below(random, 18);
    }
}

static kvca_params boundary_params(uint64_t *random)
{
    static const double fractions[] = {DBL_TRUE_MIN, 0x1p-64, 0.1, 0.29, 0.5, 0.9, 1.0, 1.0, KVCA_NO_CAPACITY_FILTER};
    return (kvca_params){
        .size = sizeof(kvca_params),
        .capacity_fraction = fractions[random_below(random, COUNT(fractions))],
        .count_priority = random_below(random, 2) == 0,
        .decode_active_request_weight = random_below(random, 2) == 0 ? 0.0 : boundary_weight(random),
        .capacity_blocks = random_below(random, 2) == 0 ? 0 : boundary_value(random, COUNT(BOUNDARIES)),
    };
}

/* A D with which the request reaches the rank's limit, or comes next to it. */
static uint64_t at_limit(const kvca_params *params, const struct rank_set *set, size_t row, uint64_t *random)
{
    uint64_t limit = reference_limit(params, reference_capacity(params, set, row));
    return limit + random_below(random, 3) - 1 - set->request_blocks;
}

static void fill_row(const kvca_params *params, struct rank_set *set, size_t row, size_t boundaries, uint64_t *random)
{
    bool near_limit = random_below(random, 2) == 0 && !isinf(params->capacity_fraction);
    set->total_kv_blocks[row] = random_below(random, 3) == 0 ? 0 : boundary_value(random, COUNT(BOUNDARIES));
    set->decode_cost_blocks[row] =
        near_limit ? at_limit(params, set, row, random) : boundary_value(random, boundaries);
    set->active_requests[row] =
        random_below(random, 2) == 0 ? random_below(random, 3) : boundary_value(random, boundaries);
    if (boundaries == SMALL_BOUNDARIES && random_below(random, 64) != 0) {
        set->decode_cost_blocks[row] &= UINT32_MAX;
        set->active_requests[row] &= UINT32_MAX;
    }
    set->preferred_taint_multiplier[row] = random_below(random, 2) == 0 ? 1.0 : boundary_double(random);
}

void copy_row(struct rank_set *to, size_t row, const struct rank_set *from, size_t origin)
{
    to->decode_cost_blocks[row] = from->decode_cost_blocks[origin];
    to->active_requests[row] = from->active_requests[origin];
    to->total_kv_blocks[row] = from->total_kv_blocks[origin];
    to->preferred_taint_multiplier[row] = from->preferred_taint_multiplier[origin];
}

void fill_at_boundaries(struct rank_set *set, kvca_params *params, uint64_t *random)
{
    size_t boundaries = random_below(random, 2) == 0 ? SMALL_BOUNDARIES : COUNT(BOUNDARIES);
    *params = boundary_params(random);
    set->count = boundary_count(random);
    set->request_blocks = random_below(random, 2) == 0 ? 0 : boundary_value(random, boundaries);
    for (size_t row = 0; row < set->count; row++) {
        set->worker_id[row] = row;
        set->dp_rank[row] = 0;
        fill_row(params, set, row, boundaries, random);
        if (row > 0 && random_below(random, 8) == 0) {
            copy_row(set, row, set, (size_t)random_below(random, row));
        }
    }
}

kvca_ranks ranks_without(struct rank_set *set, unsigned columns)
{
    kvca_ranks ranks = ranks_of(set);
    if ((columns & NO_IDENTITY) != 0) {
        ranks.worker_id = NULL;
        ranks.dp_rank = NULL;
    }
    if ((columns & NO_CAPACITY) != 0) {
        ranks.total_kv_blocks = NULL;
    }
    if ((columns & NO_MULTIPLIER) != 0) {
        ranks.preferred_taint_multiplier = NULL;
    }
    for (size_t row = 0; row < set->count; row++) {
        set->total_kv_blocks[row] = ranks.total_kv_blocks ? set->total_kv_blocks[row] : 0;
        set->preferred_taint_multiplier[row] =
            ranks.preferred_taint_multiplier ? set->preferred_taint_multiplier[row] : 1.0;
    }
    return ranks;
}

kvca_ranks leave_out(struct rank_set *set, uint64_t *random)
{
    unsigned columns = random_below(random, 2) == 0 ? NO_MULTIPLIER : 0;
    columns |= random_below(random, 8) == 0 ? NO_CAPACITY : 0;
    return ranks_without(set, columns);
}

void rebook_set(kvca_pool *pool, const struct rank_set *set)
{
    for (size_t row = 0; row < set->count; row++) {
        kvca_words(pool, KVCA_PART_CAPACITIES)[row] = set->total_kv_blocks[row];
        kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, 0)[row] = set->decode_cost_blocks[row];
        kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, 0)[row] = set->active_requests[row];
    }
    pool->dirty = KVCA_DIRTY;
    assert_int_equal(kvca_pool_repair(pool, NULL), KVCA_OK);
}

kvca_owner book_set(kvca_pool *pool, const struct rank_set *set)
{
    kvca_owner owner;
    assert_int_equal(kvca_pool_owner_claim(pool, 0, &owner), KVCA_OK);
    for (size_t row = 0; row < set->count; row++) {
        kvca_rank rank = {sizeof rank, set->worker_id[row], set->dp_rank[row], set->total_kv_blocks[row]};
        kvca_put put = {.size = sizeof put};
        assert_int_equal(kvca_pool_put(pool, &rank, &put), KVCA_OK);
        assert_int_equal(put.slot, row);
    }
    rebook_set(pool, set);
    return owner;
}
