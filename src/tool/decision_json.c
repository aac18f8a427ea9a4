/* SPDX-License-Identifier: Apache-2.0 */
/* A decision for machines: one object, its keys named as in kvca.h. */
#include <json-c/json.h>
#include <math.h>

#include "decision.h"
#include "tool.h"

static void must(int failed)
{
    if (failed) {
        tool_out_of_memory();
    }
}

static void add(json_object *object, const char *key, json_object *value)
{
    must(json_object_object_add(object, key, value));
}

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
    add(object, "file", json_object_new_string(decision->policy_path));
    add(object, "instance", instance[0] != '\0' ? json_object_new_string(instance) : NULL);
    add(object, "capacity_fraction", number(params->capacity_fraction));
    add(object, "count_priority", json_object_new_boolean(params->count_priority));
    add(object, "decode_active_request_weight", number(params->decode_active_request_weight));
    add(object, "capacity_blocks", params->capacity_blocks ? integer(params->capacity_blocks) : NULL);
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
    add(object, "row", integer(row));
    add(object, "worker_id", integer(decision->ranks.worker_id[row]));
    add(object, "dp_rank", integer(decision->ranks.dp_rank[row]));
    add(object, "decode_cost_blocks", integer(rank->decode_cost_blocks));
    add(object, "active_requests", integer(rank->active_requests));
    add(object, "capacity", rank->capacity ? integer(rank->capacity) : NULL);
    add(object, "capacity_source", json_object_new_string(sources[rank->capacity_source]));
    add(object, "limit", rank->limit == UINT64_MAX ? NULL : integer(rank->limit));
    add(object, "fits", json_object_new_boolean(rank->fits));
    add(object, "preferred_taint_multiplier", number(decision->ranks.preferred_taint_multiplier[row]));
    add(object, "cost", number(rank->cost));
    bool picked = row == decision->selection.row;
    add(object, "reason", json_object_new_string(picked ? "picked" : reasons[rank->reason]));
    return object;
}

static json_object *selection_object(const struct decision *decision)
{
    const kvca_selection *selection = &decision->selection;
    json_object *object = json_object_new_object();
    json_object *tied = json_object_new_array();
    for (size_t i = 0; i < selection->ties; i++) {
        must(json_object_array_add(tied, integer(decision->tied[i])));
    }
    add(object, "row", integer(selection->row));
    add(object, "worker_id", integer(decision->ranks.worker_id[selection->row]));
    add(object, "dp_rank", integer(decision->ranks.dp_rank[selection->row]));
    add(object, "outcome", json_object_new_string(selection->outcome == KVCA_FIT ? "fit" : "fallback"));
    add(object, "fits", integer(selection->fits));
    add(object, "ties", tied);
    add(object, "unknown_capacity", integer(selection->unknown_capacity));
    add(object, "seed", integer(decision->seed));
    return object;
}

void decision_print_json(const struct decision *decision)
{
    json_object *object = json_object_new_object();
    json_object *ranks = json_object_new_array();
    for (size_t row = 0; row < decision->ranks.count; row++) {
        must(json_object_array_add(ranks, rank_object(decision, row)));
    }
    add(object, "policy", policy_object(decision));
    add(object, "request_blocks", integer(decision->ranks.request_blocks));
    add(object, "ranks", ranks);
    add(object, "selection", selection_object(decision));
    puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                    JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
}
