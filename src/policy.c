/* SPDX-License-Identifier: Apache-2.0 */
/* The policy handle: a selection is the rule (select.c), a draw among its ties, and warnings. */
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "select.h"
#include "warned.h"

/* What threads write lies on cache lines of its own, apart from what all of them read. */
struct kvca_policy {
    kvca_params params;
    kvca_warning_fn warn;
    void *warn_user;
    _Alignas(64) _Atomic uint64_t generator;
    struct kvca_warned warned;
};

kvca_status kvca_policy_new(const kvca_params *params, kvca_policy **policy)
{
    if (!policy) {
        return KVCA_ERR_NULL;
    }
    kvca_status status = kvca_params_validate(params);
    if (status != KVCA_OK) {
        return status;
    }
    kvca_policy *made = aligned_alloc(_Alignof(kvca_policy), sizeof *made);
    if (!made) {
        return KVCA_ERR_NO_MEMORY;
    }
    memset(made, 0, sizeof *made);
    made->params = *params;
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
    return KVCA_OK;
}

/* Warns of the ranks of unknown capacity that are new. */
static void warn(kvca_policy *policy, const struct kvca_view *view)
{
    const kvca_ranks *ranks = view->ranks;
    uint64_t time = kvca_warned_pass(&policy->warned);
    for (size_t row = 0; row < ranks->count; row++) {
        if (!kvca_capacity_is_unknown(view->params, ranks->total_kv_blocks ? ranks->total_kv_blocks[row] : 0)) {
            continue;
        }
        kvca_warning warning = {
            .worker_id = ranks->worker_id ? ranks->worker_id[row] : row,
            .dp_rank = ranks->dp_rank ? ranks->dp_rank[row] : 0,
            .row = row,
        };
        if (kvca_warned_add(&policy->warned, time, warning.worker_id, warning.dp_rank)) {
            policy->warn(policy->warn_user, &warning);
        }
    }
}

/* What kvca_select() and kvca_tie_set() share: everything but what is done with the ties. */
static kvca_status choose(kvca_policy *policy, const kvca_ranks *ranks, struct kvca_view *view,
                          struct kvca_choice *choice)
{
    kvca_status status = kvca_ranks_validate(ranks, NULL);
    if (status != KVCA_OK) {
        return status;
    }
    *view = (struct kvca_view){.params = &policy->params, .ranks = ranks};
    *choice = kvca_view_choose(view);
    if (choice->selection.unknown_capacity > 0 && policy->warn) {
        warn(policy, view);
    }
    return KVCA_OK;
}

kvca_status kvca_select(kvca_policy *policy, const kvca_ranks *ranks, kvca_selection *selection)
{
    struct kvca_view view;
    struct kvca_choice choice;
    if (!policy || !selection) {
        return KVCA_ERR_NULL;
    }
    kvca_status status = choose(policy, ranks, &view, &choice);
    if (status == KVCA_OK) {
        choice.selection.row = kvca_view_draw(&view, &choice, &policy->generator);
        *selection = choice.selection;
    }
    return status;
}

kvca_status kvca_tie_set(kvca_policy *policy, const kvca_ranks *ranks, size_t *rows, size_t room,
                         kvca_selection *selection)
{
    struct kvca_view view;
    struct kvca_choice choice;
    if (!policy || !selection || (!rows && room > 0)) {
        return KVCA_ERR_NULL;
    }
    kvca_status status = choose(policy, ranks, &view, &choice);
    if (status == KVCA_OK) {
        kvca_view_tied(&view, &choice, 0, rows, room);
        *selection = choice.selection;
    }
    return status;
}
