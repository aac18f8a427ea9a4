/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what the caller passes. They are made here, so that the rule can trust its input. */
#include "rule/params.h"
#include "size.h"

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

double kvca_no_capacity_filter(void)
{
    return KVCA_NO_CAPACITY_FILTER;
}

kvca_status kvca_params_init(kvca_params *params, size_t size)
{
    static const kvca_params defaults = KVCA_PARAMS_DEFAULT;
    if (!params) {
        return KVCA_ERR_NULL;
    }
    if (kvca_size_check(&size, KVCA_LEAST_params) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    params->size = size;
    kvca_write_params(params, &defaults);
    return KVCA_OK;
}

static kvca_status check_ranges(const kvca_params *params)
{
    if (!is_fraction(params->capacity_fraction)) {
        return KVCA_ERR_CAPACITY_FRACTION;
    }
    if (!is_weight(params->decode_active_request_weight)) {
        return KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT;
    }
    return KVCA_OK;
}

kvca_status kvca_params_take(kvca_params *own, const kvca_params *params)
{
    if (!params) {
        return KVCA_ERR_NULL;
    }
    return kvca_read_params(own, params) == KVCA_OK ? check_ranges(own) : KVCA_ERR_SIZE;
}

kvca_status kvca_params_validate(const kvca_params *params)
{
    kvca_params own;
    if (params && params->size == sizeof *params) {
        return check_ranges(params); /* without a copy */
    }
    return kvca_params_take(&own, params);
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
    kvca_ranks own;
    if (!ranks) {
        return KVCA_ERR_NULL;
    }
    if (kvca_read_ranks(&own, ranks) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    kvca_status status = kvca_columns_validate(&own);
    if (status != KVCA_OK || !own.preferred_taint_multiplier) {
        return status;
    }
    return validate_multipliers(&own, row);
}
