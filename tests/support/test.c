/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include <inttypes.h>

kvca_ranks ranks_of(const struct rank_set *set)
{
    return (kvca_ranks){
        .size = sizeof(kvca_ranks),
        .count = set->count,
        .worker_id = set->worker_id,
        .dp_rank = set->dp_rank,
        .decode_cost_blocks = set->decode_cost_blocks,
        .active_requests = set->active_requests,
        .total_kv_blocks = set->total_kv_blocks,
        .preferred_taint_multiplier = set->preferred_taint_multiplier,
        .request_blocks = set->request_blocks,
    };
}

void print_rank_set(const kvca_params *params, const struct rank_set *set)
{
    print_message("capacity_fraction %.17g, count_priority %s, decode_active_request_weight %.17g, "
                  "capacity_blocks %" PRIu64 ", request_blocks %" PRIu64 "\n",
                  params->capacity_fraction, params->count_priority ? "true" : "false",
                  params->decode_active_request_weight, params->capacity_blocks, set->request_blocks);
    print_message("%4s %20s %20s %20s %s\n", "row", "decode_cost_blocks", "active_requests", "total_kv_blocks",
                  "preferred_taint_multiplier");
    for (size_t row = 0; row < set->count; row++) {
        print_message("%4zu %20" PRIu64 " %20" PRIu64 " %20" PRIu64 " %.17g\n", row, set->decode_cost_blocks[row],
                      set->active_requests[row], set->total_kv_blocks[row], set->preferred_taint_multiplier[row]);
    }
}

void require_variant(void)
{
    const char *wanted = getenv("KVCA_VARIANT");
    if (wanted && strcmp(kvca_variant(), wanted) != 0) {
        printf("skipped: this processor has no %s\n", wanted);
        exit(77);
    }
}

static unsigned long number_in(const char *variable)
{
    const char *text = getenv(variable);
    unsigned long number = text ? strtoul(text, NULL, 10) : 1;
    return number > 1 ? number : 1;
}

size_t rounds(size_t usual)
{
    size_t share = usual / number_in("KVCA_TEST_SHARE");
    return (share > 0 ? share : 1) * number_in("KVCA_TEST_TIMES");
}

kvca_policy *make_policy(kvca_params params)
{
    kvca_policy *policy = NULL;
    assert_int_equal(kvca_policy_new(&params, &policy), KVCA_OK);
    assert_int_equal(kvca_policy_set_seed(policy, 1), KVCA_OK);
    return policy;
}

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t random_below(uint64_t *state, uint64_t n)
{
    return next_random(state) % n;
}
