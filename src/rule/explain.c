/* SPDX-License-Identifier: Apache-2.0 */
/* What the rule says of one rank, beside the one that was picked. */
#include "rule/params.h"
#include "rule/rule.h"
#include "size.h"

static kvca_capacity_source capacity_source(const kvca_params *params, uint64_t total_kv_blocks)
{
    if (total_kv_blocks != 0) {
        return KVCA_CAPACITY_REPORTED;
    }
    return params->capacity_blocks != 0 ? KVCA_CAPACITY_PARAMETER : KVCA_CAPACITY_UNKNOWN;
}

/* The first criterion that puts a row behind the picked one. */
static kvca_reason reason(const struct kvca_standing *row, const struct kvca_standing *picked)
{
    if (kvca_compare_standings(row, picked) <= 0) {
        return KVCA_REASON_TIED;
    }
    if (row->tier != picked->tier) {
        return KVCA_REASON_DOES_NOT_FIT;
    }
    if (row->tier == KVCA_TIER_FALLBACK) {
        return KVCA_REASON_MORE_BLOCKS;
    }
    return row->first != picked->first ? KVCA_REASON_MORE_REQUESTS : KVCA_REASON_HIGHER_COST;
}

static bool has_accepted_multiplier(const kvca_ranks *ranks, size_t row)
{
    return !ranks->preferred_taint_multiplier || kvca_is_multiplier(ranks->preferred_taint_multiplier[row]);
}

static kvca_status check_question(const kvca_ranks *ranks, size_t row, size_t picked)
{
    kvca_status status = kvca_columns_validate(ranks);
    if (status != KVCA_OK) {
        return status;
    }
    if (row >= ranks->count || picked >= ranks->count) {
        return KVCA_ERR_ROW;
    }
    bool accepted = has_accepted_multiplier(ranks, row) && has_accepted_multiplier(ranks, picked);
    return accepted ? KVCA_OK : KVCA_ERR_PREFERRED_TAINT_MULTIPLIER;
}

static kvca_explanation explain_row(const kvca_params *params, const kvca_ranks *ranks, size_t picked_row, size_t row)
{
    uint64_t reported = ranks->total_kv_blocks ? ranks->total_kv_blocks[row] : 0;
    struct kvca_standing standing = kvca_standing_of(params, ranks, row);
    struct kvca_standing picked = kvca_standing_of(params, ranks, picked_row);
    return (kvca_explanation){
        .size = sizeof(kvca_explanation),
        .decode_cost_blocks = kvca_decode_cost_blocks(ranks, row),
        .active_requests = ranks->active_requests[row],
        .capacity = kvca_capacity(params, reported),
        .capacity_source = capacity_source(params, reported),
        .limit = kvca_limit(params, reported),
        .fits = standing.tier == KVCA_TIER_FITS,
        .cost = kvca_cost(params, ranks, row),
        .reason = reason(&standing, &picked),
    };
}

kvca_status kvca_explain(const kvca_params *params, const kvca_ranks *ranks, const kvca_selection *selection,
                         size_t row, kvca_explanation *explanation)
{
    kvca_params own_params;
    kvca_ranks own_ranks;
    kvca_selection own_selection;
    if (!params || !ranks || !selection || !explanation) {
        return KVCA_ERR_NULL;
    }
    if (kvca_read_ranks(&own_ranks, ranks) != KVCA_OK || kvca_read_selection(&own_selection, selection) != KVCA_OK ||
        kvca_check_explanation(explanation) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    kvca_status status = kvca_params_take(&own_params, params);
    if (status == KVCA_OK) {
        status = check_question(&own_ranks, row, own_selection.row);
    }
    if (status == KVCA_OK) {
        kvca_explanation told = explain_row(&own_params, &own_ranks, own_selection.row, row);
        kvca_write_explanation(explanation, &told);
    }
    return status;
}
