/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place with any request, from any state that the pool may be in (pool.h).
 *
 * eva: -eva-auto-loop-unroll 128 -eva-alloc-builtin fresh -eva-slevel-function main:1000
 * eva: -eva-partition-value params_case,call_case -eva-split-limit 1000
 * eva: -eva-split-return-function kvca_pool_new:0,fill_params:0,fill_head:0,any_pool:0
 * eva: -eva-split-return-function choose:0,choose_by_columns:0,kvca_pool_place:0
 */
#include "pool.h"

int main(void)
{
    static uint64_t eligible[1];
    static double multipliers[RANKS];
    kvca_booking booking;
    kvca_selection selection = {.size = sizeof selection};
    kvca_pool *pool = any_pool(false);
    if (!pool) {
        return 1;
    }
    make_any(eligible, sizeof eligible);
    make_any(multipliers, sizeof multipliers);
    call_case = any_of(0, 11);
    pool->slots = (uint64_t)(call_case / 4);
    const kvca_request request = {
        .size = sizeof request,
        .blocks = any_word(),
        .eligible = call_case % 2 != 0 ? eligible : NULL,
        .preferred_taint_multiplier = call_case / 2 % 2 != 0 ? multipliers : NULL,
        .only_if_fits = any_bool(),
    };
    if (kvca_pool_place(pool, any_word(), &request, &booking, &selection) == KVCA_OK) {
        //@ assert row: selection.row < RANKS;
        //@ assert booked: booking.slot < RANKS;
    }
    check_pool(pool);
    call_case = params_case = 0; /* from here on all cases are analysed together */
    check_gaps(pool, false);
    return 0;
}
