// SPDX-License-Identifier: Apache-2.0
// The public headers in a C++ program, linked to the shared library as an installed one would be.
#include <kvca/config.h>
#include <kvca/kvca.h>
#include <kvca/pool.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

static bool places_in_a_pool()
{
    kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_pool *pool = nullptr;
    kvca_owner owner = 0;
    kvca_rank rank = {};
    rank.size = sizeof rank;
    rank.worker_id = 7;
    rank.total_kv_blocks = 100;
    kvca_request request = {};
    request.size = sizeof request;
    request.blocks = kvca_blocks_for_tokens(1000, 16);
    request.only_if_fits = true;
    kvca_booking booking = {};
    bool placed = kvca_pool_new(4, 1, &params, &pool) == KVCA_OK &&
                  kvca_pool_owner_claim(pool, 0, &owner) == KVCA_OK &&
                  kvca_pool_put(pool, &rank, nullptr) == KVCA_OK &&
                  kvca_pool_place(pool, owner, &request, &booking, nullptr) == KVCA_OK &&
                  kvca_pool_release(pool, &booking) == KVCA_OK;
    kvca_pool_free(pool);
    return placed;
}

int main()
{
    kvca_params params = KVCA_PARAMS_DEFAULT;
    params.capacity_fraction = KVCA_NO_CAPACITY_FILTER;
    kvca_policy *policy = nullptr;
    const std::uint64_t blocks[] = {5, 3, 4};
    const std::uint64_t requests[] = {1, 1, 1};
    kvca_ranks ranks = {};
    ranks.size = sizeof ranks;
    ranks.count = 3;
    ranks.decode_cost_blocks = blocks;
    ranks.active_requests = requests;
    kvca_selection selection = {};
    selection.size = sizeof selection;
    bool picked = kvca_policy_new(&params, &policy) == KVCA_OK &&
                  kvca_select(policy, &ranks, &selection) == KVCA_OK && selection.row == 1;
    kvca_policy_free(policy);
    bool same_version = std::strcmp(kvca_version(), KVCA_VERSION) == 0;
    std::printf("%s, version %s\n", picked ? "picked row 1" : "not picked", kvca_version());
    return picked && same_version && places_in_a_pool() ? 0 : 1;
}
