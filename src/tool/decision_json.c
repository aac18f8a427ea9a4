/* SPDX-License-Identifier: Apache-2.0 */
/* A decision as one JSON object. Its keys have the names of kvca.h. */
#include "tool/decision.h"
#include "tool/json.h"

/* Writes null if `there` is false. */
static void optional_integer(struct json *json, const char *key, bool there, uint64_t value)
{
    if (there) {
        json_integer(json, key, value);
    } else {
        json_null(json, key);
    }
}

static void print_policy(struct json *json, const struct decision *decision)
{
    const kvca_params *params = &decision->policy.params;
    json_object(json, "policy");
    json_string(json, "file", decision->policy_path);
    if (decision->policy.instance[0] != '\0') {
        json_string(json, "instance", decision->policy.instance);
    } else {
        json_null(json, "instance");
    }
    json_number(json, "capacity_fraction", params->capacity_fraction); /* null: the filter is off */
    json_bool(json, "count_priority", params->count_priority);
    json_number(json, "decode_active_request_weight", params->decode_active_request_weight);
    optional_integer(json, "capacity_blocks", params->capacity_blocks != 0, params->capacity_blocks);
    json_end_object(json);
}

static void print_rank(struct json *json, const struct decision *decision, size_t row)
{
    static const char *const sources[] = {
        [KVCA_CAPACITY_REPORTED] = "reported",
        [KVCA_CAPACITY_PARAMETER] = "parameter",
        [KVCA_CAPACITY_UNKNOWN] = "unknown",
    };
    static const char *const reasons[] = {
        [KVCA_REASON_TIED] = "tied",
        [KVCA_REASON_DOES_NOT_FIT] = "does_not_fit",
        [KVCA_REASON_MORE_REQUESTS] = "more_requests",
        [KVCA_REASON_HIGHER_COST] = "higher_cost",
        [KVCA_REASON_MORE_BLOCKS] = "more_blocks",
    };
    const kvca_explanation *rank = &decision->explained[row];
    json_object(json, NULL);
    json_integer(json, "row", row);
    json_integer(json, "worker_id", decision->ranks.worker_id[row]);
    json_integer(json, "dp_rank", decision->ranks.dp_rank[row]);
    json_integer(json, "decode_cost_blocks", rank->decode_cost_blocks);
    json_integer(json, "active_requests", rank->active_requests);
    optional_integer(json, "capacity", rank->capacity != 0, rank->capacity);
    json_string(json, "capacity_source", sources[rank->capacity_source]);
    optional_integer(json, "limit", rank->limit != UINT64_MAX, rank->limit);
    json_bool(json, "fits", rank->fits);
    json_number(json, "preferred_taint_multiplier", decision->ranks.preferred_taint_multiplier[row]);
    json_number(json, "cost", rank->cost);
    json_string(json, "reason", row == decision->selection.row ? "picked" : reasons[rank->reason]);
    json_end_object(json);
}

static void print_ranks(struct json *json, const struct decision *decision)
{
    json_array(json, "ranks");
    for (size_t row = 0; row < decision->ranks.count; row++) {
        print_rank(json, decision, row);
    }
    json_end_array(json);
}

static const char *const outcomes[] = {
    [KVCA_FIT] = "fit",
    [KVCA_FALLBACK] = "fallback",
    [KVCA_FALLBACK_NEVER] = "fallback_never",
};

static void print_selection(struct json *json, const struct decision *decision)
{
    const kvca_selection *selection = &decision->selection;
    json_object(json, "selection");
    json_integer(json, "row", selection->row);
    json_integer(json, "worker_id", decision->ranks.worker_id[selection->row]);
    json_integer(json, "dp_rank", decision->ranks.dp_rank[selection->row]);
    json_string(json, "outcome", outcomes[selection->outcome]);
    json_integer(json, "fits", selection->fits);
    json_array(json, "ties");
    for (size_t i = 0; i < selection->ties; i++) {
        json_integer(json, NULL, decision->tied[i]);
    }
    json_end_array(json);
    json_integer(json, "unknown_capacity", selection->unknown_capacity);
    json_integer(json, "seed", decision->seed);
    json_end_object(json);
}

void decision_print_json(const struct decision *decision)
{
    struct json json = {0};
    json_object(&json, NULL);
    print_policy(&json, decision);
    json_integer(&json, "request_blocks", decision->ranks.request_blocks);
    print_ranks(&json, decision);
    print_selection(&json, decision);
    json_end_object(&json);
}
