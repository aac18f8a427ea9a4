/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel: src/rule/rule.c for several rows at once, written for vectors of any length.
 *
 * The trick. One 64-bit key orders ranks as the rule does, where numbers are small: N x 2^32 + D. (Of ranks with the
 * same N, the smaller D has the smaller cost, without multipliers and with W up to 2^19: see kvca_terms_of(). With
 * count_priority off, N is left out, and the key is D when W is 0.) D is the column here, without the request:
 * adding the same blocks to all ranks keeps their order.
 *
 * The first pass over the columns notes two things for each group of 64 rows: a word whose bits say which rows fit,
 * and for each lane the smallest key among those rows. No branch depends on a column's values, so they cost no
 * mispredictions. The second look goes to the groups that have the smallest key of their chunk of groups, and finds
 * the tied rows. When the cost matters (multipliers, a larger W, or bitmaps of candidates), the key is N alone, and
 * the second look compares the costs of the rows that are left.
 *
 * When it applies. D and N of every row, and the request, are below 2^31, and the multiplier of every candidate is
 * finite and above 0. The request is checked first, and the rest by the first pass; the kernel declines otherwise.
 * For the keys that a pool keeps ready, the pool has checked.
 *
 * Why it is the same. A capacity is compared as an integer when the fraction is 1: that the rule rounds it to a
 * double cannot matter, because D with the request is below 2^32. Otherwise D is compared with the double
 * capacity_fraction x capacity: D converts without rounding, and an integer is at most floor(x) if and only if it is
 * at most x. Costs are computed by the same operations in the same order (leaving out + 0 and x 1). They are never
 * below 0 and never NaN, so their bits are ordered as they are. A draw asks the generator for the same number, and
 * counts tied rows in the same order.
 *
 * A vector has LANES rows. lanes_*.h define for one kind of processor:
 *
 *     lanes, reals    an unsigned 64-bit integer, or a double, of each row
 *     mask            yes or no of each row; mask_bits() has the first row in bit 0, and mask_of_bits() is its inverse
 *     pair            yes or no of each row of two vectors, of 32-bit integers
 *     lanes_load(p, rows), reals_load(p, rows)   reads `rows` values, at most LANES, and none behind; other rows are 0
 *     lanes_min(a, b), lanes_min_where(a, m, b)  the smaller, for values below 2^63 (a where m is not set)
 *     lanes_least(a), lanes_first(a)             the smallest of all rows, in each row; the first row
 *     lanes_pack(high, low)                      high x 2^32 + low, for values below 2^32
 *     lanes_select(m, a, b)                      a where m is set, else b
 *     lanes_any_large(a)                         whether any value is 2^31 or above
 *     lanes_bits_of(r)                           a double's bits: doubles >= 0 are ordered as these are
 *     reals_of(a)                                the nearest doubles
 *     pair_above(p, v)                           which 32-bit integers at p are above v, which is not UINT32_MAX
 *     pair_first(p), pair_second(p)              the two masks
 *
 *     KERNEL_FN, KERNEL_OUT                      a function that is always in line, and one that never is
 *
 * and the rest as it is named. This file has the loops that there are, and what a selection makes of one.
 */
#ifndef KVCA_KERNEL_H
#define KVCA_KERNEL_H

#include "vector/second_look.h"

/* How many candidates have no known capacity. BY_NOTHING with the filter on, no capacity is known, and all fit. */
KERNEL_FN size_t unknown_capacity(const struct plan *plan, const struct tally *tally)
{
    if (plan->order != BY_READY && !plan->terms.counts_unknown) {
        return 0;
    }
    return plan->order != BY_READY && plan->fit == BY_NOTHING ? tally->fits : tally->unknown;
}

enum result { DONE, NOTHING_FITS, NOT_REPORTED, DECLINED };

/* One pass and one look, and the draw. Writes the selection when DONE. */
KERNEL_FN enum result attempt(const struct kvca_view *view, struct plan plan, uint64_t *kept,
                              _Atomic uint64_t *generator, kvca_selection *selection)
{
    struct tally tally = empty_tally();
    struct choice choice = scan(view, &plan, &tally, kept);
    if (plan.order != BY_READY && lanes_any_large(tally.bits)) {
        return DECLINED;
    }
    if (plan.order == BY_COST && tally.unsound) {
        return DECLINED;
    }
    if (plan.fit == BY_CAPACITY_OF_ALL && mask_bits(tally.unreported) != 0) {
        return NOT_REPORTED;
    }
    if (choice.ties == 0) {
        return NOTHING_FITS;
    }
    *selection = (kvca_selection){
        .size = sizeof *selection,
        .row = draw(view, &plan, &choice, kept, generator),
        .outcome = KVCA_FIT,
        .fits = tally.fits,
        .ties = choice.ties,
        .unknown_capacity = unknown_capacity(&plan, &tally),
    };
    return DONE;
}

/* The fallback. Its keys are D, and every candidate has one. That they are small is known by now. */
KERNEL_OUT bool fall_back(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    uint64_t kept[KEPT_GROUPS];
    struct plan plan = plan_of(view, BY_BLOCKS, BY_NOTHING, false, true);
    struct tally tally = empty_tally();
    struct choice choice = scan(view, &plan, &tally, kept);
    bool draws = choice.ties > 0 && !view->only_if_fits;
    *selection = (kvca_selection){
        .size = sizeof *selection,
        .row = draws ? draw(view, &plan, &choice, kept, generator) : choice.row,
        .outcome = choice.ties > 0 ? kvca_rule_fallback_outcome(view->params, &view->candidates) : KVCA_FIT,
        .ties = choice.ties,
    };
    return true;
}

KERNEL_FN enum fit fit_of(const struct kvca_view *view)
{
    const uint64_t *capacities = view->candidates.ranks->total_kv_blocks;
    if (!view->terms->filters || !capacities) {
        return BY_NOTHING;
    }
    if (!view->terms->whole) {
        return BY_SHARE;
    }
    return capacities[0] != 0 ? BY_CAPACITY_OF_ALL : BY_CAPACITY;
}

/* An attempt by capacities, which finds out that all are reported, or the same by any capacity. */
KERNEL_FN enum result attempt_capacity_of_all(const struct kvca_view *view, enum order order, bool many,
                                              uint64_t *kept, _Atomic uint64_t *generator, kvca_selection *selection)
{
    struct plan plan = plan_of(view, order, BY_CAPACITY_OF_ALL, true, many);
    enum result result = attempt(view, plan, kept, generator, selection);
    if (result != NOT_REPORTED) {
        return result;
    }
    return attempt(view, plan_of(view, order, BY_CAPACITY, true, many), kept, generator, selection);
}

KERNEL_FN bool conclude(enum result result, const struct kvca_view *view, _Atomic uint64_t *generator,
                        kvca_selection *selection)
{
    return result == NOTHING_FITS ? fall_back(view, generator, selection) : result == DONE;
}

/* Each order and fit is a loop of its own. */
KERNEL_FN bool select_by(const struct kvca_view *view, enum order order, bool many, uint64_t *kept,
                         _Atomic uint64_t *generator, kvca_selection *selection)
{
    enum result result;
    switch (fit_of(view)) {
    case BY_NOTHING:
        result = attempt(view, plan_of(view, order, BY_NOTHING, true, many), kept, generator, selection);
        break;
    case BY_CAPACITY_OF_ALL:
        result = attempt_capacity_of_all(view, order, many, kept, generator, selection);
        break;
    case BY_CAPACITY:
        result = attempt(view, plan_of(view, order, BY_CAPACITY, true, many), kept, generator, selection);
        break;
    default:
        result = attempt(view, plan_of(view, order, BY_SHARE, true, many), kept, generator, selection);
        break;
    }
    return conclude(result, view, generator, selection);
}

KERNEL_OUT bool select_packed(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    uint64_t kept;
    return select_by(view, BY_PACKED, false, &kept, generator, selection);
}

KERNEL_OUT bool select_packed_groups(const struct kvca_view *view, _Atomic uint64_t *generator,
                                     kvca_selection *selection)
{
    uint64_t kept[KEPT_GROUPS];
    return select_by(view, BY_PACKED, true, kept, generator, selection);
}

KERNEL_OUT bool select_costs(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    uint64_t kept;
    return select_by(view, BY_COST, false, &kept, generator, selection);
}

KERNEL_OUT bool select_costs_groups(const struct kvca_view *view, _Atomic uint64_t *generator,
                                    kvca_selection *selection)
{
    uint64_t kept[KEPT_GROUPS];
    return select_by(view, BY_COST, true, kept, generator, selection);
}

/* With bitmaps of candidates there is one loop for all settings: a pool needs it for what it does not keep ready. */
KERNEL_OUT bool select_candidates(const struct kvca_view *view, _Atomic uint64_t *generator,
                                  kvca_selection *selection)
{
    uint64_t kept[KEPT_GROUPS];
    enum fit fit = fit_of(view) == BY_NOTHING ? BY_NOTHING : BY_SHARE;
    bool many = view->candidates.ranks->count > GROUP;
    enum result result = NOTHING_FITS;
    if (!view->nothing_fits) {
        result = many ? attempt(view, plan_of(view, BY_COST, fit, false, true), kept, generator, selection)
                      : attempt(view, plan_of(view, BY_COST, fit, false, false), kept, generator, selection);
    }
    return conclude(result, view, generator, selection);
}

/* kvca_kernel.select */
static KERNEL_TARGET bool select_rows(const struct kvca_view *view, _Atomic uint64_t *generator,
                                      kvca_selection *selection)
{
    const struct kvca_candidates *candidates = &view->candidates;
    bool many = candidates->ranks->count > GROUP;
    if (candidates->ranks->request_blocks > INT32_MAX) {
        return false;
    }
    if (candidates->placeable) {
        return select_candidates(view, generator, selection);
    }
    if (view->terms->packs && !candidates->ranks->preferred_taint_multiplier) {
        return many ? select_packed_groups(view, generator, selection) : select_packed(view, generator, selection);
    }
    return many ? select_costs_groups(view, generator, selection) : select_costs(view, generator, selection);
}

KERNEL_FN bool attempt_ready(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                             const uint64_t *eligible, bool all, bool many, _Atomic uint64_t *generator,
                             kvca_selection *selection)
{
    const struct kvca_terms terms = {0}; /* the keys are ready: no parameter is asked for */
    const kvca_ranks ranks = {.count = count, .request_blocks = request_blocks};
    const struct kvca_view view = {
        .terms = &terms, .candidates = {.ranks = &ranks, .eligible = eligible}, .ready = ready};
    uint64_t kept[KEPT_GROUPS];
    return attempt(&view, plan_of(&view, BY_READY, BY_NOTHING, all, many), kept, generator, selection) == DONE;
}

KERNEL_OUT bool attempt_ready_groups(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                                     _Atomic uint64_t *generator, kvca_selection *selection)
{
    return attempt_ready(ready, count, request_blocks, NULL, true, true, generator, selection);
}

KERNEL_OUT bool attempt_ready_eligible(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                                       const uint64_t *eligible, _Atomic uint64_t *generator,
                                       kvca_selection *selection)
{
    return count > GROUP ? attempt_ready(ready, count, request_blocks, eligible, false, true, generator, selection)
                         : attempt_ready(ready, count, request_blocks, eligible, false, false, generator, selection);
}

/* kvca_kernel.select_ready */
static KERNEL_TARGET bool select_ready(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                                       const uint64_t *eligible, _Atomic uint64_t *generator,
                                       kvca_selection *selection)
{
    if (eligible) {
        return attempt_ready_eligible(ready, count, request_blocks, eligible, generator, selection);
    }
    return count > GROUP ? attempt_ready_groups(ready, count, request_blocks, generator, selection)
                         : attempt_ready(ready, count, request_blocks, NULL, true, false, generator, selection);
}

#define KVCA_DEFINE_KERNEL(variable, its_name)                                                                       \
    const struct kvca_kernel variable = {.name = (its_name), .select = select_rows, .select_ready = select_ready}

#endif
