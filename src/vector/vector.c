/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernel runs: the fastest that the processor has, or the one that the environment variable KVCA_VARIANT
 * names. It is chosen when the library is loaded, before a second thread can exist, so that no selection needs to
 * ask.
 */
#include "vector/vector.h"

#include <stdlib.h>
#include <string.h>

static bool declines_select(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    (void)view, (void)generator, (void)selection;
    return false;
}

static bool declines_ready(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                           const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection)
{
    (void)ready, (void)count, (void)request_blocks, (void)eligible, (void)generator, (void)selection;
    return false;
}

const struct kvca_kernel kvca_no_kernel = {"plain", declines_select, declines_ready};

const struct kvca_kernel *kvca_kernel_in_use = &kvca_no_kernel;

/* Takes the kernel if it is the one wanted, or if any is. */
static void offer(const struct kvca_kernel *offered, const char *wanted)
{
    if (!wanted || strcmp(wanted, offered->name) == 0) {
        kvca_kernel_in_use = offered;
    }
}

/* Offers what this processor has, from the slowest to the fastest: the last one that is taken stays. */
__attribute__((constructor)) static void choose_kernel(void)
{
    const char *wanted = getenv("KVCA_VARIANT");
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (has_avx2) {
        offer(&kvca_avx2, wanted);
    }
    if (has_avx512) {
        offer(&kvca_avx512, wanted);
    }
#elif defined(__aarch64__)
    offer(&kvca_neon, wanted);
#else
    offer(&kvca_no_kernel, wanted);
#endif
}

const char *kvca_variant(void)
{
    return kvca_kernel_in_use->name;
}

/*
 * A packed key has no cost, and orders ranks by it all the same. Of ranks with as many requests the one with the
 * smaller D has the smaller cost, because D + W x N stays below 2^52: there different D never round to the same
 * cost.
 */
struct kvca_terms kvca_terms_of(const kvca_params *params)
{
    bool filters = params->capacity_fraction != KVCA_NO_CAPACITY_FILTER;
    return (struct kvca_terms){
        .fraction = params->capacity_fraction,
        .weight = params->decode_active_request_weight,
        .unreported_limit = kvca_limit(params, 0),
        .filters = filters,
        .whole = params->capacity_fraction == 1.0,
        .counts_unknown = filters && params->capacity_blocks == 0,
        .count_priority = params->count_priority,
        .packs = params->decode_active_request_weight <= (params->count_priority ? 0x1p19 : 0.0),
    };
}

bool kvca_select_plainly(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    struct kvca_survey survey;
    if (!kvca_rule_survey(view->params, &view->candidates, &survey)) {
        return false;
    }
    if (survey.selection.fits > 0 || !view->only_if_fits) {
        survey.selection.row = kvca_rule_draw(view->params, &view->candidates, &survey, generator);
    }
    *selection = survey.selection;
    return true;
}

/* Below 2^53 all of a capacity is the capacity itself, and the rule needs no double. */
static bool only_fits(const kvca_params *params, const struct kvca_terms *terms, const kvca_ranks *ranks,
                      uint64_t reported)
{
    bool exact = terms->whole && reported != 0 && reported < (UINT64_C(1) << 53);
    return exact ? kvca_decode_cost_blocks(ranks, 0) <= reported : kvca_fits(params, ranks, 0);
}

bool kvca_select_only(const kvca_params *params, const struct kvca_terms *terms, const kvca_ranks *ranks,
                      kvca_selection *selection)
{
    if (ranks->preferred_taint_multiplier && !kvca_is_multiplier(*ranks->preferred_taint_multiplier)) {
        return false;
    }
    uint64_t reported = ranks->total_kv_blocks ? *ranks->total_kv_blocks : 0;
    bool fits = only_fits(params, terms, ranks, reported);
    *selection = (kvca_selection){
        .size = sizeof *selection,
        .outcome = KVCA_FIT,
        .fits = fits,
        .ties = 1,
        .unknown_capacity = kvca_capacity_is_unknown(terms, reported),
    };
    if (!fits) {
        selection->outcome = kvca_rule_fallback_outcome(params, &(struct kvca_candidates){.ranks = ranks});
    }
    return true;
}
