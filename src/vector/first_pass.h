/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass of the kernel, over one group of rows: which fit, and the smallest keys of those. kernel.h says
 * why, and what lanes are.
 */
#ifndef KVCA_FIRST_PASS_H
#define KVCA_FIRST_PASS_H

#include "vector/view.h"

#define GROUP KVCA_GROUP
#define NO_KEY INT64_MAX /* The key of a row that does not fit. All others are below. */

/* What the keys are. */
enum order {
    BY_PACKED, /* N, unless count_priority is off, and D */
    BY_COST,   /* N, unless count_priority is off; the cost comes second */
    BY_BLOCKS, /* D: the fallback, in which every candidate counts as fitting */
    BY_READY,  /* packed keys that a pool keeps */
};

/* What D is compared with. */
enum fit {
    BY_NOTHING,         /* the filter is off, or no rank reports a capacity: one limit for all */
    BY_CAPACITY_OF_ALL, /* the fraction is 1, and all ranks report a capacity: the first pass finds out */
    BY_CAPACITY,        /* the fraction is 1 */
    BY_SHARE,           /* any fraction, 1 included */
};

/* How rows are looked at. The first four are compile-time constants in line, so each kind has a loop of its own. */
struct plan {
    enum order order;
    enum fit fit;
    bool all;  /* every row is a candidate */
    bool many; /* there may be more than one group */
    uint64_t request;
    struct kvca_terms terms;
};

KERNEL_FN struct plan plan_of(const struct kvca_view *view, enum order order, enum fit fit, bool all, bool many)
{
    return (struct plan){order, fit, all, many, view->candidates.ranks->request_blocks, *view->terms};
}

/* What the first pass learns of all rows. */
struct tally {
    size_t fits;
    size_t unknown;  /* candidates that report no capacity, or slots of unknown capacity */
    bool unsound;    /* a candidate has a multiplier that is not accepted */
    lanes bits;      /* every bit that a D or N has */
    mask unreported; /* BY_CAPACITY_OF_ALL: candidates that report no capacity, lane by lane */
};

KERNEL_FN struct tally empty_tally(void)
{
    return (struct tally){0, 0, false, lanes_set(0), mask_of_bits(0)};
}

/* What the first pass learns of a group. A word has a bit for each row. */
struct group {
    uint64_t candidates;
    uint64_t fits;
    uint64_t unreported; /* they report no capacity */
    uint64_t unsound;    /* their multiplier is not accepted */
    lanes least;         /* the smallest keys of rows that fit, lane by lane */
};

/* Which of some rows fit, candidates or not. */
KERNEL_FN mask fitting(const struct kvca_view *view, const struct plan *plan, size_t row, size_t place, size_t rows,
                       lanes booked, struct group *group, struct tally *tally)
{
    lanes d = lanes_add(booked, lanes_set(plan->request));
    if (plan->fit == BY_NOTHING) {
        return lanes_at_most(d, lanes_set(plan->terms.unreported_limit));
    }
    lanes capacity = lanes_load(view->candidates.ranks->total_kv_blocks + row + place, rows);
    if (plan->fit == BY_CAPACITY_OF_ALL) {
        mask unreported = lanes_equal(capacity, lanes_set(0));
        if (rows < LANES) { /* rows beyond the last are 0, too */
            unreported = mask_and(unreported, mask_of_bits(group->candidates >> place));
        }
        tally->unreported = mask_or(tally->unreported, unreported);
        return lanes_at_most(d, capacity);
    }
    mask unreported = lanes_equal(capacity, lanes_set(0));
    group->unreported |= mask_bits(unreported) << place;
    if (plan->fit == BY_CAPACITY) {
        return lanes_at_most(d, lanes_select(unreported, lanes_set(plan->terms.unreported_limit), capacity));
    }
    reals share = reals_multiply(reals_set(plan->terms.fraction), reals_of(capacity));
    reals limit = reals_select(unreported, reals_set((double)plan->terms.unreported_limit), share);
    return reals_at_most(reals_of(d), limit);
}

/*
 * Which multipliers are not finite and above 0. Bits - 1 wraps for 0, and is not below infinity's bits - 1 for
 * others.
 */
KERNEL_FN mask unsound(const struct kvca_view *view, size_t row, size_t rows)
{
    const uint64_t infinity = UINT64_C(0x7ff0000000000000);
    lanes bits = lanes_bits_of(reals_load(view->candidates.ranks->preferred_taint_multiplier + row, rows));
    return lanes_at_most(lanes_set(infinity - 1), lanes_add(bits, lanes_set(UINT64_MAX)));
}

KERNEL_FN lanes key_of(const struct plan *plan, lanes booked, lanes requests)
{
    if (plan->order == BY_BLOCKS) {
        return booked;
    }
    lanes count = plan->terms.count_priority ? requests : lanes_set(0);
    return plan->order == BY_PACKED ? lanes_pack(count, booked) : count;
}

/* The keys of the rows at this place of the group that begins at `row`. */
KERNEL_FN lanes load_keys(const struct kvca_view *view, const struct plan *plan, size_t row, size_t place,
                          size_t rows)
{
    if (plan->order == BY_READY) {
        return lanes_load(view->ready[row / GROUP].keys + place, rows);
    }
    lanes booked = lanes_load(view->candidates.ranks->decode_cost_blocks + row + place, rows);
    return key_of(plan, booked, lanes_load(view->candidates.ranks->active_requests + row + place, rows));
}

/* Looks at one vector of rows. */
KERNEL_FN void look_at_rows(const struct kvca_view *view, const struct plan *plan, size_t row, size_t place,
                            size_t rows, struct group *group, struct tally *tally)
{
    const kvca_ranks *ranks = view->candidates.ranks;
    lanes booked = lanes_load(ranks->decode_cost_blocks + row + place, rows);
    lanes requests = lanes_load(ranks->active_requests + row + place, rows);
    tally->bits = lanes_or(tally->bits, booked, requests);
    if (plan->order == BY_COST && ranks->preferred_taint_multiplier) {
        group->unsound |= mask_bits(unsound(view, row + place, rows)) << place;
    }
    mask fits = mask_of_bits(UINT64_MAX);
    if (plan->order != BY_BLOCKS) {
        fits = fitting(view, plan, row, place, rows, booked, group, tally);
    }
    if (!plan->all || rows < LANES) {
        fits = mask_and(fits, mask_of_bits(group->candidates >> place));
    }
    group->least = lanes_min_where(group->least, fits, key_of(plan, booked, requests));
    group->fits |= mask_bits(fits) << place;
}

/* Looks at `rows` rows, at most a group of them. */
KERNEL_FN void look_at_columns(const struct kvca_view *view, const struct plan *plan, size_t row, size_t rows,
                               struct group *group, struct tally *tally)
{
    size_t i = 0;
    for (; i + LANES <= rows; i += LANES) {
        look_at_rows(view, plan, row, i, LANES, group, tally);
    }
    if (i < rows) {
        look_at_rows(view, plan, row, i, rows - i, group, tally);
    }
}

/* The same by what a pool keeps ready, two vectors at a time. Every group of it is whole. */
KERNEL_FN void look_at_ready(const struct kvca_view *view, const struct plan *plan, size_t row, size_t rows,
                             struct group *group)
{
    const struct kvca_ready *ready = &view->ready[row / GROUP];
    group->unreported = ready->unknown;
    for (size_t i = 0; i < rows; i += LANES + LANES) {
        pair fits = pair_above(ready->room + i, (uint32_t)plan->request);
        if (!plan->all) {
            fits = pair_and(fits, pair_of_bits(group->candidates >> i));
        }
        group->fits |= pair_bits(fits) << i;
        group->least = lanes_min_where(group->least, pair_first(fits), load_keys(view, plan, row, i, LANES));
        group->least = lanes_min_where(group->least, pair_second(fits), load_keys(view, plan, row, i + LANES, LANES));
    }
}

KERNEL_FN size_t rows_in_group(const struct kvca_view *view, size_t row)
{
    size_t left = view->candidates.ranks->count - row;
    return left < GROUP ? left : GROUP;
}

/* The candidates of a group. `rows`, its number of rows, is at least 1. */
KERNEL_FN uint64_t candidates_in(const struct kvca_view *view, const struct plan *plan, size_t row, size_t rows)
{
    const struct kvca_candidates *candidates = &view->candidates;
    uint64_t word = UINT64_MAX >> (GROUP - rows);
    if (!plan->all && candidates->placeable) {
        word &= candidates->placeable[row / GROUP];
    }
    if (!plan->all && candidates->eligible) {
        word &= candidates->eligible[row / GROUP];
    }
    return word;
}

/* The first pass over the group that begins at `row`. */
KERNEL_FN struct group look_at(const struct kvca_view *view, const struct plan *plan, size_t row, struct tally *tally)
{
    size_t rows = rows_in_group(view, row);
    struct group group = {candidates_in(view, plan, row, rows), 0, 0, 0, lanes_set(NO_KEY)};
    if (plan->order == BY_READY) {
        look_at_ready(view, plan, row, rows, &group);
    } else if (rows == GROUP && plan->order != BY_COST) { /* a constant number of rows needs no loop */
        look_at_columns(view, plan, row, GROUP, &group, tally);
    } else {
        look_at_columns(view, plan, row, rows, &group, tally);
    }
    tally->fits += count_bits(group.fits);
    if (plan->order == BY_READY || plan->fit != BY_NOTHING) {
        tally->unknown += count_bits(group.unreported & group.candidates);
    }
    tally->unsound |= (group.unsound & group.candidates) != 0;
    return group;
}

#endif
