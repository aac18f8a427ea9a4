/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule, which stands in rule.h, for one row at a time, in plain C: the scan that every other one must agree with,
 * and what explains a row. It serves processors without vectors.
 */
#include "rule/select.h"

#include "size.h"
#include "vector/lanes_plain.h"
#include "rule/params.h"
#include "vector/rule.h"
#include "vector/variant.h"

/* What a group comes to: the rows that tie, as bits, and their key. */
struct best {
    uint64_t tied;
    struct key key;
};

/* What the rule says of a slot of a pool: its room is the smallest request that does not fit. */
LANES_FN struct verdict judge_slot(const struct kvca_view *view, const struct way *way, size_t row, size_t place)
{
    return (struct verdict){
        .fits = way->request + 1 <= view->ready[row / GROUP].room[place],
        .sound = true,
        .first_key = load_first_key(view, way, row, place, 1),
    };
}

/* The best rows of the group at `row`; what is counted goes into the choice. */
LANES_FN struct best best_of_group(const struct kvca_view *view, const struct way *way, size_t row,
                                   struct choice *choice, struct seen *seen)
{
    struct best best = {.key = {UINT64_MAX, UINT64_MAX}};
    size_t rows = rows_in_group(view, row);
    uint64_t candidates = candidates_of(view, way, row, rows);
    if (way->order == BY_READY) {
        choice->selection.unknown_capacity += count_bits(view->ready[row / GROUP].unknown & candidates);
    }
    /* cppcheck-suppress knownConditionTrueFalse ; a row is below the count */
    for (size_t i = 0; i < rows; i++) {
        struct verdict verdict =
            way->order == BY_READY ? judge_slot(view, way, row, i) : judge(view, way, row + i, 1);
        bool candidate = way->all || (candidates >> i & 1) != 0;
        choice->selection.fits += candidate & verdict.fits;
        choice->selection.unknown_capacity += candidate & verdict.unreported & way->terms.counts_unknown;
        choice->is_sound = choice->is_sound && (!candidate || verdict.sound);
        see(seen, way, true, &verdict);
        if (!candidate || !verdict.fits || verdict.first_key > best.key.first) {
            continue; /* which spares it the cost */
        }
        struct key key = {.first = verdict.first_key};
        if (way->order == BY_COST) {
            key.second = lanes_bits_of(cost_of(view, way, row + i, 1));
        }
        if (is_less(key, best.key)) {
            best = (struct best){.key = key};
        }
        best.tied |= (uint64_t)is_equal(key, best.key) << i;
    }
    return best;
}

LANES_FN struct choice scan(const struct kvca_view *view, const struct way *way, uint64_t *kept)
{
    struct choice choice = {.is_sound = true};
    struct seen seen = seen_nothing();
    size_t row = 0;
    do {
        struct best best = best_of_group(view, way, row, &choice, &seen);
        uint64_t tied = best.tied != 0 ? take(&choice, row, best.key, best.tied) : 0;
        if (row / GROUP < KEPT_GROUPS) {
            kept[row / GROUP] = tied;
        }
        row += GROUP;
    } while (way->many && row < view->ranks->count);
    check_way(&choice, way, &seen);
    return choice;
}

LANES_FN uint64_t find_tied(const struct kvca_view *view, const struct way *way, const struct choice *choice,
                            size_t row)
{
    struct choice counted = {0};
    struct seen seen = seen_nothing();
    struct best best = best_of_group(view, way, row, &counted, &seen);
    return is_equal(best.key, choice->key) ? best.tied : 0;
}

#include "vector/pick.h"

KVCA_DEFINE_VARIANT(kvca_plain, "plain");

bool kvca_is_multiplier(double value)
{
    return is_sound(value);
}

uint64_t kvca_limit(const struct kvca_terms *terms, uint64_t total_kv_blocks)
{
    if (!terms->filters || total_kv_blocks == 0) {
        return terms->unreported_limit;
    }
    return share_of(terms->fraction, total_kv_blocks);
}

/*
 * Packed keys order ranks by (N, cost) though the cost is not in them: of ranks with as many requests the one with the
 * smaller D has the smaller cost, since W x N + D is less than 2^52, from where on different D may round to the same.
 */
struct kvca_terms kvca_terms_of(const kvca_params *params)
{
    bool filters = params->capacity_fraction <= 1.0;
    bool limits_unreported = filters && params->capacity_blocks != 0;
    return (struct kvca_terms){
        .fraction = params->capacity_fraction,
        .weight = params->decode_active_request_weight,
        .unreported_limit =
            limits_unreported ? share_of(params->capacity_fraction, params->capacity_blocks) : UINT64_MAX,
        .filters = filters,
        .whole = params->capacity_fraction == 1.0,
        .counts_unknown = filters && params->capacity_blocks == 0,
        .count_priority = params->count_priority,
        .packs = params->decode_active_request_weight <= (params->count_priority ? 0x1p19 : 0.0),
    };
}

static bool has_sound_multiplier(const kvca_ranks *ranks, size_t row)
{
    return !ranks->preferred_taint_multiplier || kvca_is_multiplier(ranks->preferred_taint_multiplier[row]);
}

bool kvca_only_pick(const struct kvca_terms *terms, const kvca_ranks *ranks, kvca_selection *selection)
{
    const struct way way = {.request = ranks->request_blocks};
    uint64_t reported = ranks->total_kv_blocks ? ranks->total_kv_blocks[0] : 0;
    bool fits = decode_cost_blocks(&way, ranks->decode_cost_blocks[0]) <= kvca_limit(terms, reported);
    if (!has_sound_multiplier(ranks, 0)) {
        return false;
    }
    *selection = (kvca_selection){
        .row = 0,
        .outcome = fits ? KVCA_FIT : KVCA_FALLBACK,
        .fits = fits,
        .ties = 1,
        .unknown_capacity = kvca_capacity_is_unknown(terms, reported),
    };
    return true;
}

bool kvca_view_pick(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    return kvca_variant_in_use->pick(view, generator, selection);
}

bool kvca_ready_pick(const struct kvca_ready *ready, size_t count, uint64_t request_blocks, const uint64_t *eligible,
                     _Atomic uint64_t *generator, kvca_selection *selection)
{
    return kvca_variant_in_use->pick_ready(ready, count, request_blocks, eligible, generator, selection);
}

bool kvca_view_list(const struct kvca_view *view, size_t *rows, size_t room, kvca_selection *selection)
{
    return kvca_variant_in_use->list(view, rows, room, selection);
}

/* One row as it is explained, and its keys. */
struct row_facts {
    kvca_explanation explanation;
    struct key fit_key;
    struct key fallback_key;
};

static kvca_capacity_source capacity_source(const kvca_params *params, uint64_t reported)
{
    if (reported != 0) {
        return KVCA_CAPACITY_REPORTED;
    }
    return params->capacity_blocks != 0 ? KVCA_CAPACITY_PARAMETER : KVCA_CAPACITY_UNKNOWN;
}

static struct row_facts facts_of(const struct kvca_view *view, const kvca_params *params, size_t row)
{
    const struct way by_cost = way_of(view, BY_COST, BY_ONE_LIMIT, false, false);
    const struct way by_blocks = way_of(view, BY_BLOCKS, BY_ONE_LIMIT, false, false);
    uint64_t reported = view->ranks->total_kv_blocks ? view->ranks->total_kv_blocks[row] : 0;
    uint64_t d = decode_cost_blocks(&by_cost, view->ranks->decode_cost_blocks[row]);
    uint64_t limit = kvca_limit(view->terms, reported);
    double cost = cost_of(view, &by_cost, row, 1);
    return (struct row_facts){
        .explanation = {.decode_cost_blocks = d,
                        .active_requests = view->ranks->active_requests[row],
                        .capacity = reported != 0 ? reported : params->capacity_blocks,
                        .capacity_source = capacity_source(params, reported),
                        .limit = limit,
                        .fits = d <= limit,
                        .cost = cost},
        .fit_key = {load_first_key(view, &by_cost, row, 0, 1), lanes_bits_of(cost)},
        .fallback_key = {load_first_key(view, &by_blocks, row, 0, 1), 0},
    };
}

/* The first criterion that puts a row behind the picked one. */
static kvca_reason reason(const struct row_facts *row, const struct row_facts *picked, kvca_outcome outcome)
{
    if (outcome == KVCA_FALLBACK) {
        return is_less(picked->fallback_key, row->fallback_key) ? KVCA_REASON_MORE_BLOCKS : KVCA_REASON_TIED;
    }
    if (!row->explanation.fits) {
        return KVCA_REASON_DOES_NOT_FIT;
    }
    if (!is_less(picked->fit_key, row->fit_key)) {
        return KVCA_REASON_TIED;
    }
    return picked->fit_key.first < row->fit_key.first ? KVCA_REASON_MORE_REQUESTS : KVCA_REASON_HIGHER_COST;
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
    bool sound = has_sound_multiplier(ranks, row) && has_sound_multiplier(ranks, picked);
    return sound ? KVCA_OK : KVCA_ERR_PREFERRED_TAINT_MULTIPLIER;
}

kvca_status kvca_explain(const kvca_policy *policy, const kvca_ranks *ranks, const kvca_selection *selection,
                         size_t row, kvca_explanation *explanation)
{
    kvca_ranks own_ranks;
    kvca_selection own_selection;
    if (!policy || !ranks || !selection || !explanation) {
        return KVCA_ERR_NULL;
    }
    if (kvca_read_ranks(&own_ranks, ranks) != KVCA_OK || kvca_read_selection(&own_selection, selection) != KVCA_OK ||
        kvca_check_explanation(explanation) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    kvca_status status = check_question(&own_ranks, row, own_selection.row);
    if (status != KVCA_OK) {
        return status;
    }
    const kvca_params *params = kvca_policy_params(policy);
    const struct kvca_terms terms = kvca_terms_of(params);
    const struct kvca_view view = {.terms = &terms, .ranks = &own_ranks};
    struct row_facts facts = facts_of(&view, params, row);
    struct row_facts picked = facts_of(&view, params, own_selection.row);
    facts.explanation.reason = reason(&facts, &picked, own_selection.outcome);
    kvca_write_explanation(explanation, &facts.explanation);
    return KVCA_OK;
}
