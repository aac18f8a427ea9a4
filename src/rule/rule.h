/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule, plainly. This folder says which rank takes a request, and nothing says it a second time: src/vector does
 * the same faster, is held to this by the tests, and leaves unusual input to it: huge numbers, multipliers that are
 * not accepted.
 *
 *     rule.c     the rule
 *     explain.c  what the rule says of one rank, for people
 *     params.c   which parameters and ranks are accepted
 *     random.c   the generator that breaks ties
 */
#ifndef KVCA_RULE_H
#define KVCA_RULE_H

#include <float.h>
#include <stdatomic.h>

#include <kvca/kvca.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "the rule needs IEEE arithmetic: build without -ffast-math, -Ofast and -ffinite-math-only"
#endif
/* A product must not be fused with a sum. No macro tells: build with -ffp-contract=off, as meson.build does. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1 /* 1 concerns floats alone */
#error "the rule needs doubles that are rounded after each operation: on 32-bit x86, build with -msse2 -mfpmath=sse"
#endif

/* The ranks that may be picked: rows whose bits are set in both bitmaps. A bitmap that is NULL has all bits set. */
struct kvca_candidates {
    const kvca_ranks *ranks;
    const uint64_t *placeable; /* the slots of a pool that take requests; NULL when the rows are not a pool's */
    const uint64_t *eligible;  /* the slots that the request allows; only pools set it */
};

/* How well a rank stands: the smaller tier wins, then the smaller first, then the smaller second. Equal ranks tie. */
struct kvca_standing {
    enum kvca_tier { KVCA_TIER_FITS, KVCA_TIER_FALLBACK } tier;
    uint64_t first;
    double second;
};

/*
 * The whole decision except the draw. `selection.row` is the first of the equally best rows. When there is no
 * candidate, `ties` is 0 and the outcome means nothing.
 */
struct kvca_survey {
    kvca_selection selection;
    struct kvca_standing best;
};

/* The capacity of a rank that reports this one, which may be 0; 0 when it is unknown. */
uint64_t kvca_capacity(const kvca_params *params, uint64_t total_kv_blocks);

/* The largest D that fits a rank that reports this capacity. */
uint64_t kvca_limit(const kvca_params *params, uint64_t total_kv_blocks);

/* Whether a row fits. */
bool kvca_fits(const kvca_params *params, const kvca_ranks *ranks, size_t row);

/* D of a row, the request's blocks included. */
uint64_t kvca_decode_cost_blocks(const kvca_ranks *ranks, size_t row);

/* (D + W x N) x preferred_taint_multiplier of a row. */
double kvca_cost(const kvca_params *params, const kvca_ranks *ranks, size_t row);

/* The standing of a row. */
struct kvca_standing kvca_standing_of(const kvca_params *params, const kvca_ranks *ranks, size_t row);

/* Below 0 when a wins, above 0 when b wins, 0 when they tie. */
int kvca_compare_standings(const struct kvca_standing *a, const struct kvca_standing *b);

/* Whether a rank may have this preferred_taint_multiplier: it is finite and above 0. */
bool kvca_is_multiplier(double value);

/* Looks at all candidates. Returns false, and writes nothing, when a candidate's multiplier is not accepted. */
bool kvca_rule_survey(const kvca_params *params, const struct kvca_candidates *candidates,
                      struct kvca_survey *survey);

/* Draws one of the tied rows, uniformly. One tied row needs no draw. */
size_t kvca_rule_draw(const kvca_params *params, const struct kvca_candidates *candidates,
                      const struct kvca_survey *survey, _Atomic uint64_t *generator);

/* Lists the tied rows in rising order, as many as there is room for. */
void kvca_rule_list(const kvca_params *params, const struct kvca_candidates *candidates,
                    const struct kvca_survey *survey, size_t *rows, size_t room);

/* How a selection came out in which no candidate fits: whether one of them could hold the request when empty. */
kvca_outcome kvca_rule_fallback_outcome(const kvca_params *params, const struct kvca_candidates *candidates);

#endif
