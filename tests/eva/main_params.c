/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any parameters, any columns, and the text of any status.
 *
 * eva: -eva-auto-loop-unroll 16 -eva-partition-value params_case
 */
#include "any.h"

#define ROWS 4

static double multipliers[ROWS];
static uint64_t words[ROWS];

static void check_params(void)
{
    kvca_params params = any_params();
    kvca_status status = kvca_params_validate(any_bool() ? &params : NULL);
    double fraction = params.capacity_fraction;
    double weight = params.decode_active_request_weight;
    //@ assert fraction: status == 0 ==> \is_plus_infinity(fraction) || 0.0 < fraction <= 1.0;
    //@ assert weight: status == 0 ==> \is_finite(weight) && weight >= 0.0;
}

static void check_ranks(void)
{
    size_t row = 0;
    make_any(multipliers, sizeof multipliers);
    kvca_ranks ranks = {
        .size = sizeof ranks,
        .count = (size_t)any_of(0, ROWS),
        .decode_cost_blocks = any_bool() ? words : NULL,
        .active_requests = any_bool() ? words : NULL,
        .preferred_taint_multiplier = any_bool() ? multipliers : NULL,
        .request_blocks = any_word(),
    };
    kvca_status status = kvca_ranks_validate(any_bool() ? &ranks : NULL, any_bool() ? &row : NULL);
    //@ assert row: row == 0 || row < ranks.count;
    //@ assert rows: status == 0 ==> ranks.count > 0;
}

int main(void)
{
    check_params();
    check_ranks();
    return kvca_strerror((kvca_status)any_half_word())[0] == kvca_version()[0];
}
