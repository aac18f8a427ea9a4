/* SPDX-License-Identifier: Apache-2.0 */
/* A selection of a scan: the draw, the fallback, and the way in which rows are looked at. The end is what variants do. */
#ifndef KVCA_PICK_H
#define KVCA_PICK_H

#include "rule/random.h"
#include "vector/rule.h"

LANES_FN uint64_t tied_in(const struct kvca_view *view, const struct way *way, const struct choice *choice,
                          const uint64_t *kept, size_t row)
{
    return row / GROUP < KEPT_GROUPS ? kept[row / GROUP] : find_tied(view, way, choice, row);
}

#ifndef LANES_HAVE_NTH_BIT
/* The place of a set bit that has `n` below it. */
LANES_FN size_t nth_bit(uint64_t word, size_t n)
{
    for (; n > 0; n--) {
        word &= word - 1;
    }
    return (size_t)__builtin_ctzll(word);
}
#endif

/* Draws one of the tied rows of many groups. Should a host change columns meanwhile, it ends at the last row. */
LANES_OUT size_t draw(const struct kvca_view *view, struct way way, struct choice choice, const uint64_t *kept,
                      _Atomic uint64_t *generator)
{
    size_t n = (size_t)kvca_draw(generator, choice.selection.ties);
    for (size_t row = choice.selection.row / GROUP * GROUP; row < view->ranks->count; row += GROUP) {
        uint64_t tied = tied_in(view, &way, &choice, kept, row);
        if (n < count_bits(tied)) {
            return row + nth_bit(tied, n);
        }
        n -= count_bits(tied);
    }
    return choice.selection.row;
}

LANES_FN void finish(const struct kvca_view *view, const struct way *way, struct choice *choice, const uint64_t *kept,
                     _Atomic uint64_t *generator, kvca_selection *selection)
{
    if (choice->selection.ties > 1 && way->many) {
        choice->selection.row = draw(view, *way, *choice, kept, generator);
    } else if (choice->selection.ties > 1) {
        choice->selection.row = nth_bit(*kept, (size_t)kvca_draw(generator, choice->selection.ties));
    }
    *selection = choice->selection;
}

/* What comes first where nothing fits, and so no capacity is unknown. */
LANES_FN struct choice fall_back(const struct kvca_view *view, const struct way *way, uint64_t *kept)
{
    struct choice choice = scan(view, way, kept);
    choice.selection.outcome = KVCA_FALLBACK;
    choice.selection.fits = 0;
    choice.selection.unknown_capacity = 0;
    return choice;
}

/* Who takes only what fits is told of the first of the tied rows, and no number is drawn. */
LANES_OUT void pick_fallback(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    uint64_t kept[KEPT_GROUPS];
    const struct way way = way_of(view, BY_BLOCKS, BY_ONE_LIMIT, false, true);
    struct choice choice = fall_back(view, &way, kept);
    if (view->slots && view->slots->only_if_fits) {
        *selection = choice.selection;
    } else {
        finish(view, &way, &choice, kept, generator, selection);
    }
}

/* What comes of an attempt to pick. */
enum result { PICKED, NOTHING_FITS, NOT_SOUND, NOT_SMALL, NOT_REPORTED };

LANES_FN enum result pick_by(const struct kvca_view *view, struct way way, uint64_t *kept,
                             _Atomic uint64_t *generator, kvca_selection *selection)
{
    struct choice choice = scan(view, &way, kept);
    if (choice.is_large || choice.is_unreported) {
        return choice.is_large ? NOT_SMALL : NOT_REPORTED;
    }
    if (!choice.is_sound) {
        return NOT_SOUND;
    }
    if (choice.selection.fits == 0) {
        return NOTHING_FITS;
    }
    finish(view, &way, &choice, kept, generator, selection);
    return PICKED;
}

/*
 * The ways to pick, each a function of its own, so that it is free of what it does not need; and for up to 64 rows
 * another one, which has no groups to keep apart.
 */
#define DEFINE_PICK(name, order, fit, small)                                                                         \
    LANES_OUT enum result pick_many_##name(const struct kvca_view *view, _Atomic uint64_t *generator,                \
                                           kvca_selection *selection)                                                \
    {                                                                                                                \
        uint64_t kept[KEPT_GROUPS];                                                                                  \
        return pick_by(view, way_of(view, (order), (fit), (small), true), kept, generator, selection);               \
    }                                                                                                                \
    LANES_OUT enum result pick_##name(const struct kvca_view *view, _Atomic uint64_t *generator,                     \
                                      kvca_selection *selection)                                                     \
    {                                                                                                                \
        uint64_t kept;                                                                                               \
        if (view->ranks->count > GROUP) {                                                                            \
            return pick_many_##name(view, generator, selection);                                                     \
        }                                                                                                            \
        return pick_by(view, way_of(view, (order), (fit), (small), false), &kept, generator, selection);             \
    }
DEFINE_PICK(packed_one_limit, BY_PACKED, BY_ONE_LIMIT, true)
DEFINE_PICK(packed_capacity, BY_PACKED, BY_CAPACITY, true)
DEFINE_PICK(packed_any, BY_PACKED, BY_ANY, true)
DEFINE_PICK(packed_share, BY_PACKED, BY_SHARE, true)
DEFINE_PICK(cost_one_limit, BY_COST, BY_ONE_LIMIT, true)
DEFINE_PICK(cost_capacity, BY_COST, BY_CAPACITY, true)
DEFINE_PICK(cost_any, BY_COST, BY_ANY, true)
DEFINE_PICK(cost_share, BY_COST, BY_SHARE, true)
DEFINE_PICK(general, BY_COST, fit_of(view, false), false)

static LANES_TARGET enum result pick_packed(const struct kvca_view *view, enum fit fit, _Atomic uint64_t *generator,
                                            kvca_selection *selection)
{
    switch (fit) {
    case BY_ONE_LIMIT:
        return pick_packed_one_limit(view, generator, selection);
    case BY_CAPACITY:
        return pick_packed_capacity(view, generator, selection);
    case BY_ANY:
        return pick_packed_any(view, generator, selection);
    default:
        return pick_packed_share(view, generator, selection);
    }
}

static LANES_TARGET enum result pick_cost(const struct kvca_view *view, enum fit fit, _Atomic uint64_t *generator,
                                          kvca_selection *selection)
{
    switch (fit) {
    case BY_ONE_LIMIT:
        return pick_cost_one_limit(view, generator, selection);
    case BY_CAPACITY:
        return pick_cost_capacity(view, generator, selection);
    case BY_ANY:
        return pick_cost_any(view, generator, selection);
    default:
        return pick_cost_share(view, generator, selection);
    }
}

/* As if all numbers were small: in practice they are. */
static LANES_TARGET enum result pick_small(const struct kvca_view *view, enum fit fit, _Atomic uint64_t *generator,
                                           kvca_selection *selection)
{
    return view->terms->packs && !view->ranks->preferred_taint_multiplier
               ? pick_packed(view, fit, generator, selection)
               : pick_cost(view, fit, generator, selection);
}

/* kvca_view_pick() */
static LANES_TARGET bool pick(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    enum result result = NOT_SMALL;
    if (view->slots && view->slots->nothing_fits) {
        result = NOTHING_FITS;
    } else if (!view->slots && view->ranks->request_blocks <= UINT32_MAX) {
        result = pick_small(view, fit_of(view, true), generator, selection);
    }
    if (result == NOT_REPORTED) {
        result = pick_small(view, BY_ANY, generator, selection);
    }
    if (result == NOT_SMALL) {
        result = pick_general(view, generator, selection);
    }
    if (result == NOTHING_FITS) {
        pick_fallback(view, generator, selection);
    }
    return result != NOT_SOUND;
}

LANES_FN bool pick_by_keys(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                           const struct kvca_slots *slots, bool many, _Atomic uint64_t *generator,
                           kvca_selection *selection)
{
    const struct kvca_terms terms = {.packs = true};
    const kvca_ranks ranks = {.count = count, .request_blocks = request_blocks};
    const struct kvca_view view = {.terms = &terms, .ranks = &ranks, .slots = slots, .ready = ready};
    uint64_t kept[KEPT_GROUPS];
    return pick_by(&view, way_of(&view, BY_READY, BY_LIMITS, false, many), kept, generator, selection) == PICKED;
}

LANES_OUT bool pick_many_ready(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                               _Atomic uint64_t *generator, kvca_selection *selection)
{
    return pick_by_keys(ready, count, request_blocks, NULL, true, generator, selection);
}

LANES_OUT bool pick_eligible_ready(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                                   const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection)
{
    const struct kvca_slots slots = {.eligible = eligible};
    return count > GROUP ? pick_by_keys(ready, count, request_blocks, &slots, true, generator, selection)
                         : pick_by_keys(ready, count, request_blocks, &slots, false, generator, selection);
}

/* kvca_ready_pick() */
static LANES_TARGET bool pick_ready(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                                    const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection)
{
    if (eligible) {
        return pick_eligible_ready(ready, count, request_blocks, eligible, generator, selection);
    }
    return count > GROUP ? pick_many_ready(ready, count, request_blocks, generator, selection)
                         : pick_by_keys(ready, count, request_blocks, NULL, false, generator, selection);
}

/* kvca_view_list() */
static LANES_TARGET bool list(const struct kvca_view *view, size_t *rows, size_t room, kvca_selection *selection)
{
    uint64_t kept[KEPT_GROUPS];
    struct way way = way_of(view, BY_COST, fit_of(view, false), false, true);
    struct choice choice = scan(view, &way, kept);
    if (!choice.is_sound) {
        return false;
    }
    if (choice.selection.fits == 0) {
        way = way_of(view, BY_BLOCKS, BY_ONE_LIMIT, false, true);
        choice = fall_back(view, &way, kept);
    }
    size_t written = 0;
    for (size_t row = choice.selection.row / GROUP * GROUP; row < view->ranks->count && written < room;
         row += GROUP) {
        for (uint64_t tied = tied_in(view, &way, &choice, kept, row); tied != 0 && written < room; tied &= tied - 1) {
            rows[written++] = row + (size_t)__builtin_ctzll(tied);
        }
    }
    *selection = choice.selection;
    return true;
}

#endif
