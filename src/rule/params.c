/* SPDX-License-Identifier: Apache-2.0 */
/* What is accepted: checked here, at the edge, so that the rule can trust what it is given. */
#include "rule/params.h"

#include <float.h>

#include "rule/rule.h"

static bool is_fraction(double value)
{
    return (value > 0.0 && value <= 1.0) || value == KVCA_NO_CAPACITY_FILTER;
}

static bool is_weight(double value)
{
    return value >= 0.0 && value <= DBL_MAX;
}

kvca_status kvca_params_validate(const kvca_params *params)
{
    if (!params) {
        return KVCA_ERR_NULL;
    }
    if (!is_fraction(params->capacity_fraction)) {
        return KVCA_ERR_CAPACITY_FRACTION;
    }
    if (!is_weight(params->decode_active_request_weight)) {
        return KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT;
    }
    return KVCA_OK;
}

static kvca_status validate_multipliers(const kvca_ranks *ranks, size_t *faulty)
{
    for (size_t row = 0; row < ranks->count; row++) {
        if (!kvca_is_multiplier(ranks->preferred_taint_multiplier[row])) {
            if (faulty) {
                *faulty = row;
            }
            return KVCA_ERR_PREFERRED_TAINT_MULTIPLIER;
        }
    }
    return KVCA_OK;
}

kvca_status kvca_ranks_validate(const kvca_ranks *ranks, size_t *row)
{
    kvca_status status = kvca_columns_validate(ranks);
    if (status != KVCA_OK || !ranks->preferred_taint_multiplier) {
        return status;
    }
    return validate_multipliers(ranks, row);
}
