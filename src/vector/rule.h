/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule: which rank takes the request.
 *
 * 1. The capacity of a rank is what it reports, else the parameter capacity_blocks, else unknown.
 * 2. A rank fits when D <= capacity_fraction x capacity. One of unknown capacity always fits; with the filter off
 *    all do.
 * 3. Of the ranks that fit, the fewest active requests come first (with count_priority), then the smallest
 *    (D + W x N) x preferred_taint_multiplier.
 * 4. When none fits, the smallest D comes first, and nothing else counts.
 * 5. One rank is drawn uniformly from those that come first together.
 *
 * docs/rule.md tells it at length. D is the blocks booked on a rank with this request, N its active requests, W the
 * parameter decode_active_request_weight. The tie set is the same on every machine because every value compared is
 * an integer, or a double that was rounded once after each operation.
 *
 * The rule is written for a vector of rows, and so are the files that it belongs to: a file that includes this one
 * includes before it the lanes_*.h that says what a vector is. select.c has one row in plain C; rule_*.c have the
 * vectors of one processor or another. All do these same steps on every row. After this file comes a scan of all rows
 * (that of select.c or scan.h), and then pick.h, which makes a selection of it.
 */
#ifndef KVCA_RULE_H
#define KVCA_RULE_H

#include <float.h>

#include "rule/select.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "the rule needs IEEE arithmetic: build without -ffast-math, -Ofast and -ffinite-math-only"
#endif
/* Nor may a product be fused with a sum. Compilers do not tell: build with -ffp-contract=off, as meson.build does. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1 /* 1 is about floats alone */
#error "the rule needs doubles that are rounded after each operation: on 32-bit x86, build with -msse2 -mfpmath=sse"
#endif

#define GROUP KVCA_GROUP

/* What rows are ordered by. */
enum order {
    BY_COST,   /* N or nothing, then the cost */
    BY_PACKED, /* N or nothing, and D, in one integer */
    BY_READY,  /* the same, as the pool keeps it */
    BY_BLOCKS, /* D: the fallback */
};

/* What the largest D that fits is made of. */
enum fit {
    BY_ONE_LIMIT, /* the same for all: the filter is off, or no rank reports a capacity */
    BY_CAPACITY,  /* all of what a rank reports, and every one reports: that is found out on the way */
    BY_ANY,       /* all of what a rank reports, if it does */
    BY_SHARE,     /* a share of it */
    BY_LIMITS,    /* the limits are given */
};

/* How a scan looks at rows. What is constant where it is called costs nothing in its loop. */
struct way {
    enum order order;
    enum fit fit;
    bool small;       /* D and N are taken to be below 2^32: whether they are is found out on the way */
    bool all;         /* no bitmap says which rows are candidates */
    bool many;        /* there may be more than one group of rows */
    uint64_t request; /* the request's blocks */
    struct kvca_terms terms;
};

/*
 * Where D is small, all of a capacity is the capacity itself: its double is another number only from 2^53 on, and not
 * below that. That a rank reports none is looked for once the first one does not.
 */
LANES_FN enum fit fit_of(const struct kvca_view *view, bool small)
{
    if (!view->terms->filters || !view->ranks->total_kv_blocks) {
        return BY_ONE_LIMIT;
    }
    if (view->slots) {
        return BY_LIMITS;
    }
    if (!small || !view->terms->whole) {
        return BY_SHARE;
    }
    return view->ranks->total_kv_blocks[0] != 0 ? BY_CAPACITY : BY_ANY;
}

/* A pool is never looked at as small: it knows, and keeps keys then. */
LANES_FN struct way way_of(const struct kvca_view *view, enum order order, enum fit fit, bool small, bool many)
{
    return (struct way){
        .order = order,
        .fit = fit,
        .small = small,
        .many = many,
        .all = small || !view->slots,
        .request = view->ranks->request_blocks,
        .terms = *view->terms,
    };
}

/* D: with the request, and never past the largest integer. What is small does not come near it. */
LANES_FN lanes decode_cost_blocks(const struct way *way, lanes booked)
{
    lanes request = lanes_set(way->request);
    return way->small ? lanes_add(booked, request) : lanes_add_saturating(booked, request);
}

/* The largest D that fits a rank of this capacity, a share of which may be filled. */
LANES_FN lanes share_of(double fraction, lanes capacity)
{
    return lanes_floor(reals_multiply(reals_set(fraction), reals_of(capacity)));
}

/* (D + W x N) x multiplier, for finite numbers >= 0. A W of 0 adds 0, and that changes nothing. */
LANES_FN reals cost_of(const struct kvca_view *view, const struct way *way, size_t row, size_t rows)
{
    const kvca_ranks *ranks = view->ranks;
    reals cost = reals_of(decode_cost_blocks(way, lanes_load(ranks->decode_cost_blocks + row, rows)));
    if (way->terms.weight != 0.0) {
        reals requests = reals_of(lanes_load(ranks->active_requests + row, rows));
        cost = reals_add(cost, reals_multiply(reals_set(way->terms.weight), requests));
    }
    if (ranks->preferred_taint_multiplier) {
        cost = reals_multiply(cost, reals_load(ranks->preferred_taint_multiplier + row, rows));
    }
    return cost;
}

/* Finite and above 0. Only of such the bits, less 1, are below those of the largest double. */
LANES_FN mask is_sound(reals multiplier)
{
    const uint64_t largest = UINT64_C(0x7fefffffffffffff);
    lanes less_one = lanes_add(lanes_bits_of(multiplier), lanes_set(UINT64_MAX));
    return lanes_at_most(less_one, lanes_set(largest - 1));
}

/* What the rule says of a vector of rows; of the last one, which may be shorter, `rows` count. */
struct verdict {
    mask fits;
    mask unreported; /* report no capacity */
    mask sound;      /* have a sound multiplier */
    lanes booked;
    lanes requests;
    lanes capacity;
    lanes first_key;
};

/* The limits, where capacities are looked at one by one. */
LANES_FN lanes limits_of(const struct kvca_view *view, const struct way *way, size_t row, size_t rows,
                         const struct verdict *verdict)
{
    if (way->fit == BY_LIMITS) {
        return lanes_load(view->slots->limits + row, rows);
    }
    lanes own = way->fit == BY_ANY ? verdict->capacity : share_of(way->terms.fraction, verdict->capacity);
    return lanes_select(verdict->unreported, lanes_set(way->terms.unreported_limit), own);
}

/* Which rows fit; and which report no capacity. */
LANES_FN mask fitting(const struct kvca_view *view, const struct way *way, size_t row, size_t rows,
                      struct verdict *verdict)
{
    lanes limit = lanes_set(way->terms.unreported_limit);
    if (way->fit == BY_CAPACITY) {
        verdict->unreported = mask_of_bits(0);
        limit = verdict->capacity;
    } else if (way->fit != BY_ONE_LIMIT) {
        verdict->unreported = lanes_equal(verdict->capacity, lanes_set(0));
        limit = limits_of(view, way, row, rows, verdict);
    }
    return lanes_at_most(decode_cost_blocks(way, verdict->booked), limit);
}

/* What rows are ordered by first. In BY_COST the cost comes second. */
LANES_FN lanes first_key(const struct way *way, lanes booked, lanes requests)
{
    if (way->order == BY_BLOCKS) {
        return decode_cost_blocks(way, booked);
    }
    if (!way->terms.count_priority) {
        requests = lanes_set(0);
    }
    return way->order == BY_PACKED ? lanes_pack(requests, booked) : requests;
}

/* Of the vector at this place of the group that begins at `row`. */
LANES_FN lanes load_first_key(const struct kvca_view *view, const struct way *way, size_t row, size_t place,
                              size_t rows)
{
    if (way->order == BY_READY) {
        return lanes_load(view->ready[row / GROUP].keys + place, rows);
    }
    lanes booked = lanes_load(view->ranks->decode_cost_blocks + row + place, rows);
    return first_key(way, booked, lanes_load(view->ranks->active_requests + row + place, rows));
}

LANES_FN struct verdict judge(const struct kvca_view *view, const struct way *way, size_t row, size_t rows)
{
    const kvca_ranks *ranks = view->ranks;
    const mask all = mask_of_bits(UINT64_MAX);
    struct verdict verdict = {.fits = all, .unreported = all, .sound = all, .capacity = lanes_set(0)};
    verdict.booked = lanes_load(ranks->decode_cost_blocks + row, rows);
    verdict.requests = lanes_load(ranks->active_requests + row, rows);
    verdict.first_key = first_key(way, verdict.booked, verdict.requests);
    if (way->order != BY_BLOCKS) {
        if (way->fit != BY_ONE_LIMIT) {
            verdict.capacity = lanes_load(ranks->total_kv_blocks + row, rows);
        }
        verdict.fits = fitting(view, way, row, rows, &verdict);
    }
    if (way->order == BY_COST && ranks->preferred_taint_multiplier) {
        verdict.sound = is_sound(reals_load(ranks->preferred_taint_multiplier + row, rows));
    }
    return verdict;
}

/* What shows, when all rows were looked at, whether the way was one that they could be looked at. */
struct seen {
    lanes bits;           /* every bit that a D or N has */
    lanes least_capacity; /* in BY_CAPACITY */
};

LANES_FN struct seen seen_nothing(void)
{
    return (struct seen){.bits = lanes_set(0), .least_capacity = lanes_set(UINT64_MAX)};
}

LANES_FN void see(struct seen *seen, const struct way *way, mask rows, const struct verdict *verdict)
{
    if (way->small) {
        seen->bits = lanes_or(seen->bits, verdict->booked, verdict->requests);
    }
    if (way->fit == BY_CAPACITY) {
        seen->least_capacity = lanes_min_where(seen->least_capacity, rows, verdict->capacity);
    }
}

/* What a row is ranked by: the smaller `first` wins, then the smaller `second`. Rows with equal keys tie. */
struct key {
    uint64_t first;
    uint64_t second;
};

LANES_FN bool is_less(struct key a, struct key b)
{
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

LANES_FN bool is_equal(struct key a, struct key b)
{
    return a.first == b.first && a.second == b.second;
}

/* The best rows of all: how they come out, and the key that they have. */
struct choice {
    kvca_selection selection; /* its row is the first of the tied rows */
    struct key key;
    bool is_large;      /* numbers were too large for the way */
    bool is_unreported; /* a rank reports no capacity, which the way did not expect */
    bool is_sound;      /* the multipliers of all candidates are */
};

/* Ties are told in words, a bit for each row of a group; those of so many groups are kept, the others found again. */
#define KEPT_GROUPS 256

/* How many rows the group that begins at `row` has: 64, but for the last. */
LANES_FN size_t rows_in_group(const struct kvca_view *view, size_t row)
{
    return view->ranks->count - row < GROUP ? view->ranks->count - row : GROUP;
}

/* Of the `rows` of a group, at most 64. */
LANES_FN uint64_t candidates_of(const struct kvca_view *view, const struct way *way, size_t row, size_t rows)
{
    uint64_t candidates = UINT64_MAX >> (GROUP - rows);
    if (way->all) {
        return candidates;
    }
    if (view->slots->placeable) {
        candidates &= view->slots->placeable[row / GROUP];
    }
    if (view->slots->eligible) {
        candidates &= view->slots->eligible[row / GROUP];
    }
    return candidates;
}

LANES_FN void check_way(struct choice *choice, const struct way *way, const struct seen *seen)
{
    choice->is_large = way->small && lanes_any_large(seen->bits);
    choice->is_unreported = way->fit == BY_CAPACITY && lanes_first(lanes_least(seen->least_capacity)) == 0;
}

/* Takes rows that tie into the choice; returns them if they tie with it. */
LANES_FN uint64_t take(struct choice *choice, size_t row, struct key key, uint64_t tied)
{
    if (choice->selection.ties == 0 || is_less(key, choice->key)) {
        choice->key = key;
        choice->selection.row = row + (size_t)__builtin_ctzll(tied);
        choice->selection.ties = 0;
    } else if (is_less(choice->key, key)) {
        return 0;
    }
    choice->selection.ties += count_bits(tied);
    return tied;
}

#endif
