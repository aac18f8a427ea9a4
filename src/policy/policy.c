/* SPDX-License-Identifier: Apache-2.0 */
/* The policy: selections by the rule, and warnings. */
#include <stdlib.h>
#include <string.h>

#include "policy/warned.h"
#include "policy/watch.h"
#include "rule/params.h"
#include "rule/random.h"
#include "rule/rule.h"
#include "vector/vector.h"
#include "size.h"

/* Fields that threads write are on cache lines apart from the fields that all threads read. */
struct kvca_policy {
    kvca_params params;
    struct kvca_terms terms;
    kvca_warning_fn warn;
    void *warn_user;
    _Alignas(64) _Atomic uint64_t generator;
    _Alignas(64) struct kvca_watch watch;
    struct kvca_warned warned;
};

kvca_status kvca_policy_new(const kvca_params *params, kvca_policy **policy)
{
    if (!policy) {
        return KVCA_ERR_NULL;
    }
    kvca_params own;
    kvca_status status = kvca_params_take(&own, params);
    if (status != KVCA_OK) {
        return status;
    }
    kvca_policy *made = aligned_alloc(_Alignof(kvca_policy), sizeof *made);
    if (!made) {
        return KVCA_ERR_NO_MEMORY;
    }
    memset(made, 0, sizeof *made);
    made->params = own;
    made->terms = kvca_terms_of(&own);
    atomic_init(&made->generator, kvca_unpredictable_seed(made));
    *policy = made;
    return KVCA_OK;
}

void kvca_policy_free(kvca_policy *policy)
{
    free(policy);
}

const kvca_params *kvca_policy_params(const kvca_policy *policy)
{
    return policy ? &policy->params : NULL;
}

kvca_status kvca_policy_set_seed(kvca_policy *policy, uint64_t seed)
{
    if (!policy) {
        return KVCA_ERR_NULL;
    }
    atomic_store_explicit(&policy->generator, seed, memory_order_relaxed);
    return KVCA_OK;
}

kvca_status kvca_policy_set_warning(kvca_policy *policy, kvca_warning_fn callback, void *user)
{
    if (!policy) {
        return KVCA_ERR_NULL;
    }
    policy->warn = callback;
    policy->warn_user = user;
    kvca_watch_learn(&policy->watch, 0, 0); /* no selection has 0 ranks: so the next one looks at all */
    return KVCA_OK;
}

/* Warns of a row if its capacity is unknown and its rank was not warned about before. */
static void look_at_row(kvca_policy *policy, const kvca_ranks *ranks, size_t row, uint64_t era)
{
    if (!kvca_capacity_is_unknown(&policy->terms, ranks->total_kv_blocks ? ranks->total_kv_blocks[row] : 0)) {
        return;
    }
    kvca_warning warning = {
        .size = sizeof warning,
        .worker_id = ranks->worker_id ? ranks->worker_id[row] : row,
        .dp_rank = ranks->dp_rank ? ranks->dp_rank[row] : 0,
        .row = row,
    };
    if (kvca_warned_add(&policy->warned, era, warning.worker_id, warning.dp_rank)) {
        policy->warn(policy->warn_user, &warning);
    }
}

/* This and the next function are out of line, so that a selection that does not need them stays fast. */
static __attribute__((noinline)) void look_at_all_rows(kvca_policy *policy, const kvca_ranks *ranks, size_t unknown)
{
    uint64_t era = kvca_warned_begin(&policy->warned);
    for (size_t row = 0; unknown > 0 && row < ranks->count; row++) {
        look_at_row(policy, ranks, row, era);
    }
    kvca_watch_learn(&policy->watch, ranks->count, unknown);
}

static __attribute__((noinline)) void look_at_some_row(kvca_policy *policy, const kvca_ranks *ranks, uint64_t turn)
{
    size_t row = kvca_watch_row(turn, ranks->count);
    look_at_row(policy, ranks, row, kvca_warned_begin(&policy->warned));
}

/* Looks for ranks to warn about: in all rows if the numbers have changed, otherwise sometimes in one row. */
static inline void look_for_unknown(kvca_policy *policy, const kvca_ranks *ranks, size_t unknown)
{
    uint64_t turn;
    if (!kvca_watch_knows(&policy->watch, ranks->count, unknown)) {
        look_at_all_rows(policy, ranks, unknown);
    } else if (unknown > 0 && kvca_watch_samples(&policy->watch, &turn)) {
        look_at_some_row(policy, ranks, turn);
    }
}

/* Ends a selection. `sound` says whether its multipliers were valid. */
static inline kvca_status finish(kvca_policy *policy, const kvca_ranks *ranks, bool sound,
                                 const kvca_selection *selection)
{
    if (!sound) {
        return KVCA_ERR_PREFERRED_TAINT_MULTIPLIER;
    }
    if (policy->warn) {
        look_for_unknown(policy, ranks, selection->unknown_capacity);
    }
    return KVCA_OK;
}

/* Whether one of the structures has another size than in this library. */
static inline bool have_other_sizes(const kvca_ranks *ranks, const kvca_selection *selection)
{
    return ranks->size != sizeof *ranks || selection->size != sizeof *selection;
}

static kvca_status read_sizes(kvca_ranks *own, const kvca_ranks *ranks, const kvca_selection *selection)
{
    kvca_status status = kvca_read_ranks(own, ranks);
    return status == KVCA_OK ? kvca_check_selection(selection) : status;
}

static KVCA_OUT_OF_LINE kvca_status select_other_sizes(kvca_policy *policy, const kvca_ranks *ranks,
                                                       kvca_selection *selection)
{
    kvca_ranks own;
    kvca_selection picked = {.size = sizeof picked};
    kvca_status status = read_sizes(&own, ranks, selection);
    status = status == KVCA_OK ? kvca_select(policy, &own, &picked) : status;
    if (status == KVCA_OK) {
        kvca_write_selection(selection, &picked);
    }
    return status;
}

kvca_status kvca_select(kvca_policy *policy, const kvca_ranks *ranks, kvca_selection *selection)
{
    if (!policy || !ranks || !selection) {
        return KVCA_ERR_NULL;
    }
    if (have_other_sizes(ranks, selection)) {
        return select_other_sizes(policy, ranks, selection);
    }
    kvca_status status = kvca_columns_validate(ranks);
    if (status != KVCA_OK) {
        return status;
    }
    if (ranks->count == 1) {
        return finish(policy, ranks, kvca_select_only(&policy->params, &policy->terms, ranks, selection), selection);
    }
    const struct kvca_view view = {
        .params = &policy->params, .terms = &policy->terms, .candidates = {.ranks = ranks}};
    return finish(policy, ranks, kvca_view_select(&view, &policy->generator, selection), selection);
}

static KVCA_OUT_OF_LINE kvca_status list_other_sizes(kvca_policy *policy, const kvca_ranks *ranks, size_t *rows,
                                                     size_t room, kvca_selection *selection)
{
    kvca_ranks own;
    kvca_selection listed = {.size = sizeof listed};
    kvca_status status = read_sizes(&own, ranks, selection);
    status = status == KVCA_OK ? kvca_tie_set(policy, &own, rows, room, &listed) : status;
    if (status == KVCA_OK) {
        kvca_write_selection(selection, &listed);
    }
    return status;
}

kvca_status kvca_tie_set(kvca_policy *policy, const kvca_ranks *ranks, size_t *rows, size_t room,
                         kvca_selection *selection)
{
    if (!policy || !ranks || !selection || (!rows && room > 0)) {
        return KVCA_ERR_NULL;
    }
    if (have_other_sizes(ranks, selection)) {
        return list_other_sizes(policy, ranks, rows, room, selection);
    }
    kvca_status status = kvca_columns_validate(ranks);
    if (status != KVCA_OK) {
        return status;
    }
    const struct kvca_candidates candidates = {.ranks = ranks};
    struct kvca_survey survey;
    bool sound = kvca_rule_survey(&policy->params, &candidates, &survey);
    if (sound) {
        kvca_rule_list(&policy->params, &candidates, &survey, rows, room);
        *selection = survey.selection;
    }
    return finish(policy, ranks, sound, selection);
}
