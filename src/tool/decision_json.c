/* SPDX-License-Identifier: Apache-2.0 */
/* A decision for machines: one object, its keys named as in kvca.h. */
#include <math.h>

#include "decision.h"
#include "json.h"
#include "tool.h"

/* JSON has no infinity: null stands for a cost past the largest double, and for the filter that is off. */
static json_object *number(double value)
{
    return isinf(value) ? NULL : json_object_new_double_s(value, tool_number(value).text);
}

static json_object *integer(uint64_t value)
{
    return json_object_new_uint64(value);
}

static json_object *policy_object(const struct decision *decision)
{
    const kvca_params *params = &decision->policy.params;
    json_object *object = json_object_new_object();
    const char *instance = decision->policy.instance;
    json_add(object, "file", json_object_new_string(decision->policy_path));
    json_add(object, "instance", instance[0] != '\0' ? json_object_new_string(instance) : NULL);
    json_add(object, "capacity_fraction", number(params->capacity_fraction));
    json_add(object, "count_priority", json_object_new_boolean(params->count_priority));
    json_add(object, "decode_active_request_weight", number(params->decode_active_request_weight));
    json_add(object, "capacity_blocks", params->capacity_blocks ? integer(params->capacity_blocks) : NULL);
    return object;
}

static json_object *rank_object(const struct decision *decision, size_t row)
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
    json_object *object = json_object_new_object();
    json_add(object, "row", integer(row));
    json_add(object, "worker_id", integer(decision->ranks.worker_id[row]));
    json_add(object, "dp_rank", integer(decision->ranks.dp_rank[row]));
    json_add(object, "decode_cost_blocks", integer(rank->decode_cost_blocks));
    json_add(object, "active_requests", integer(rank->active_requests));
    json_add(object, "capacity", rank->capacity ? integer(rank->capacity) : NULL);
    json_add(object, "capacity_source", json_object_new_string(sources[rank->capacity_source]));
    json_add(object, "limit", rank->limit == UINT64_MAX ? NULL : integer(rank->limit));
    json_add(object, "fits", json_object_new_boolean(rank->fits));
    json_add(object, "preferred_taint_multiplier", number(decision->ranks.preferred_taint_multiplier[row]));
    json_add(object, "cost", number(rank->cost));
    bool picked = row == decision->selection.row;
    json_add(object, "reason", json_object_new_string(picked ? "picked" : reasons[rank->reason]));
    return object;
}

static json_object *selection_object(const struct decision *decision)
{
    const kvca_selection *selection = &decision->selection;
    json_object *object = json_object_new_object();
    json_object *tied = json_object_new_array();
    for (size_t i = 0; i < selection->ties; i++) {
        json_append(tied, integer(decision->tied[i]));
    }
    json_add(object, "row", integer(selection->row));
    json_add(object, "worker_id", integer(decision->ranks.worker_id[selection->row]));
    json_add(object, "dp_rank", integer(decision->ranks.dp_rank[selection->row]));
    json_add(object, "outcome", json_object_new_string(selection->outcome == KVCA_FIT ? "fit" : "fallback"));
    json_add(object, "fits", integer(selection->fits));
    json_add(object, "ties", tied);
    json_add(object, "unknown_capacity", integer(selection->unknown_capacity));
    json_add(object, "seed", integer(decision->seed));
    return object;
}

void decision_print_json(const struct decision *decision)
{
    json_object *object = json_object_new_object();
    json_object *ranks = json_object_new_array();
    for (size_t row = 0; row < decision->ranks.count; row++) {
        json_append(ranks, rank_object(decision, row));
    }
    json_add(object, "policy", policy_object(decision));
    json_add(object, "request_blocks", integer(decision->ranks.request_blocks));
    json_add(object, "ranks", ranks);
    json_add(object, "selection", selection_object(decision));
    json_print(object);
}
