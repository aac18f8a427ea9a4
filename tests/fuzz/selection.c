/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as parameters and columns, for the rule. */
#include "decision.h"

#include "support/sets.h"
#include "bytes.h"

/* What a row changes of the row before it. Most ranks of a set are alike, so that there are ties and near misses. */
enum { NEW_BLOCKS = 1, NEW_REQUESTS = 2, NEW_CAPACITY = 4, NEW_MULTIPLIER = 8, ANY_VALUE = 16, REPEATED = 32 };

static kvca_params read_params(struct bytes *bytes)
{
    kvca_params params = KVCA_PARAMS_DEFAULT;
    uint64_t form = bytes_below(bytes, 256);
    params.count_priority = (form & 1) == 0;
    if ((form & 2) != 0) {
        params.capacity_fraction = bytes_any_double(bytes);
    }
    if ((form & 4) != 0) {
        params.capacity_fraction = KVCA_NO_CAPACITY_FILTER;
    }
    if ((form & 8) != 0) {
        params.capacity_fraction = (double)(1 + bytes_below(bytes, 100)) / 100;
    }
    if ((form & 16) != 0) {
        params.decode_active_request_weight = bytes_any_double(bytes);
    }
    if ((form & 32) != 0) {
        params.capacity_blocks = bytes_any_integer(bytes);
    }
    return params;
}

static uint64_t read_blocks(struct bytes *bytes, uint64_t form)
{
    return (form & ANY_VALUE) != 0 ? bytes_any_integer(bytes) : bytes_below(bytes, 256);
}

static void change_row(struct rank_set *set, size_t row, struct bytes *bytes, uint64_t form)
{
    if ((form & NEW_BLOCKS) != 0) {
        set->decode_cost_blocks[row] = read_blocks(bytes, form);
    }
    if ((form & NEW_REQUESTS) != 0) {
        set->active_requests[row] = read_blocks(bytes, form);
    }
    if ((form & NEW_CAPACITY) != 0) {
        set->total_kv_blocks[row] = read_blocks(bytes, form);
    }
    if ((form & NEW_MULTIPLIER) != 0) {
        set->preferred_taint_multiplier[row] =
            (form & ANY_VALUE) != 0 ? bytes_any_double(bytes) : 0.5 * (double)(1 + bytes_below(bytes, 4));
    }
}

/* Reads ranks until the input ends, at least one. */
static void read_rows(struct rank_set *set, struct bytes *bytes)
{
    set->preferred_taint_multiplier[0] = 1.0; /* the rest is zeros: the row before the first one */
    do {
        uint64_t form = bytes_below(bytes, 256);
        size_t repeated = (form & REPEATED) != 0 ? (size_t)bytes_below(bytes, MOST_RANKS) : 0;
        size_t row = set->count;
        if (row > 0) {
            copy_row(set, row, set, row - 1);
        }
        change_row(set, row, bytes, form);
        for (set->count++; repeated > 0 && set->count < MOST_RANKS; repeated--) {
            copy_row(set, set->count++, set, row);
        }
    } while (bytes->left > 0 && set->count < MOST_RANKS);
}

static void name_rows(struct rank_set *set, uint64_t seed)
{
    for (size_t row = 0; row < set->count; row++) {
        set->worker_id[row] = row * (seed % 3);
        set->dp_rank[row] = (uint32_t)row;
    }
}

static void check_faulty_params(const kvca_params *params)
{
    kvca_policy *policy = NULL;
    assert_int_equal(kvca_policy_new(params, &policy), kvca_params_validate(params));
    assert_null(policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    struct rank_set set = {.count = 0};
    kvca_params params = read_params(&bytes);
    unsigned left_out = (unsigned)bytes_below(&bytes, 8);
    uint64_t seed = bytes_below(&bytes, 256);
    set.request_blocks = bytes_any_integer(&bytes);
    read_rows(&set, &bytes);
    name_rows(&set, seed);
    kvca_ranks ranks = ranks_without(&set, left_out);
    if (kvca_params_validate(&params) == KVCA_OK) {
        decision_check(&params, &set, &ranks, seed);
    } else {
        check_faulty_params(&params);
    }
    return 0;
}
