/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVCA_PARAMS_H
#define KVCA_PARAMS_H

#include <kvca/kvca.h>

/* Copies the caller's parameters to this library's size, and checks them: NULL, size and ranges. */
kvca_status kvca_params_take(kvca_params *own, const kvca_params *params);

/* The checks of kvca_ranks_validate() on the columns themselves, without the size and the multipliers. */
static inline kvca_status kvca_columns_validate(const kvca_ranks *ranks)
{
    if (!ranks) {
        return KVCA_ERR_NULL;
    }
    if (ranks->count == 0) {
        return KVCA_ERR_NO_RANKS;
    }
    if (!ranks->decode_cost_blocks) {
        return KVCA_ERR_DECODE_COST_BLOCKS;
    }
    return ranks->active_requests ? KVCA_OK : KVCA_ERR_ACTIVE_REQUESTS;
}

#endif
