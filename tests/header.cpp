// SPDX-License-Identifier: Apache-2.0
// The public headers in a C++ program, linked to the shared library as an installed one would be.
#include <kvca/config.h>
#include <kvca/kvca.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

int main()
{
    kvca_params params = KVCA_PARAMS_DEFAULT;
    params.capacity_fraction = KVCA_NO_CAPACITY_FILTER;
    kvca_policy *policy = nullptr;
    const std::uint64_t blocks[] = {5, 3, 4};
    const std::uint64_t requests[] = {1, 1, 1};
    kvca_ranks ranks = {};
    ranks.count = 3;
    ranks.decode_cost_blocks = blocks;
    ranks.active_requests = requests;
    kvca_selection selection = {};
    bool picked = kvca_policy_new(&params, &policy) == KVCA_OK &&
                  kvca_select(policy, &ranks, &selection) == KVCA_OK && selection.row == 1;
    kvca_policy_free(policy);
    bool same_version = std::strcmp(kvca_version(), KVCA_VERSION) == 0;
    std::printf("%s, version %s\n", picked ? "picked row 1" : "not picked", kvca_version());
    return picked && same_version ? 0 : 1;
}
