/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel: src/rule/rule.c for several rows at once, written for vectors of any length.
 *
 * The trick. Small D and N need one integer, the packed key N x 2^32 + D, which orders ranks as the rule does. One pass
 * over the columns notes of each group of 64 rows which fit, as the bits of a word, and the smallest keys of those, lane by
 * lane. A second look, at the groups alone that have the smallest key of all, finds the tied rows. No branch of the first
 * pass depends on a column's values, so none is predicted wrongly. When the cost matters (multipliers, a large
 * W), the key is N alone, and the second look compares the costs of the rows that are left.
 *
 * When it applies. D, N and the request are below 2^31, and multipliers are accepted. The first pass finds out, and the
 * kernel declines otherwise.
 *
 * Why it is the same. Integers are compared as they are. A limit is compared as the double capacity_fraction x capacity: D
 * is an integer that a double holds exactly, so D <= floor(limit) exactly when D <= limit. Costs are computed by the same
 * operations in the same order. A draw asks the generator for the same number, and counts tied rows in the same order.
 *
 * A vector has LANES rows. lanes_*.h define for one kind of processor:
 *
 *     lanes, reals    an unsigned 64-bit integer, or a double, of each row
 *     mask            yes or no of each row; mask_bits() has the first row in bit 0, and mask_of_bits() is its inverse
 *     pair            yes or no of each row of two vectors, of 32-bit integers
 *     lanes_load(p, rows), reals_load(p, rows)   reads `rows` values and none behind them; the other rows are 0
 *     lanes_min(a, b), lanes_min_where(a, m, b)  the smaller, for values below 2^63; a where m has no row
 *     lanes_least(a), lanes_first(a)             the smallest of all rows, in each row; the first row
 *     lanes_pack(high, low)                      high x 2^32 + low, for values below 2^32
 *     lanes_select(m, a, b)                      a where m has a row, else b
 *     lanes_any_large(a)                         whether any value is 2^31 or above
 *     lanes_bits_of(r)                           a double's bits: doubles >= 0 are ordered as these are
 *     reals_of(a)                                the nearest doubles
 *     pair_above(p, v)                           which 32-bit integers at p are above v, which is not UINT32_MAX
 *     pair_first(p), pair_second(p)              the two masks
 *
 * and the rest as it is named.
 */
#ifndef KVCA_KERNEL_H
#define KVCA_KERNEL_H

#include "rule/random.h"
#include "vector/view.h"

#define GROUP KVCA_GROUP
#define CHUNK_GROUPS                                                                                                 \
    16 /* So many groups are looked at before their best rows are, while the columns are in the nearest cache. */
#define KEPT_GROUPS 256  /* The tied rows of so many groups are kept for the draw. Those of others are found again. */
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
    BY_NOTHING,    /* the filter is off, or no rank reports a capacity: one limit for all */
    BY_CAPACITIES, /* the fraction is 1, and every rank reports a capacity: the first pass finds out whether it does */
    BY_CAPACITY,   /* the fraction is 1 */
    BY_SHARE,
};

/* How rows are looked at. The first four are constants where a plan is made, so each kind has a loop of its own. */
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
    mask unreported; /* BY_CAPACITIES: candidates that report no capacity, lane by lane */
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
    if (plan->fit == BY_CAPACITIES) {
        mask unreported = lanes_equal(capacity, lanes_set(0));
        if (rows < LANES) {
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

/* Which multipliers are not finite and above 0. Only of those that are, the bits less 1 are below infinity's. */
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

/* The candidates among the `rows` of a group, of which there is at least one. */
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

/* What a row is ranked by. The smaller first wins, then the smaller second. */
struct key {
    uint64_t first;
    uint64_t second; /* BY_COST: the cost's bits, else 0 */
};

KERNEL_FN bool is_less(struct key a, struct key b)
{
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

/* The costs of one vector of rows, as integers. */
KERNEL_FN lanes costs_of(const struct kvca_view *view, const struct plan *plan, size_t row, size_t rows)
{
    const kvca_ranks *ranks = view->candidates.ranks;
    lanes booked = lanes_load(ranks->decode_cost_blocks + row, rows);
    reals cost = reals_of(lanes_add(booked, lanes_set(plan->request)));
    if (plan->terms.weight != 0.0) {
        reals requests = reals_of(lanes_load(ranks->active_requests + row, rows));
        cost = reals_add(cost, reals_multiply(reals_set(plan->terms.weight), requests));
    }
    if (ranks->preferred_taint_multiplier) {
        cost = reals_multiply(cost, reals_load(ranks->preferred_taint_multiplier + row, rows));
    }
    return lanes_bits_of(cost);
}

/* The place in its group of the first vector that has any of these rows; and the rows without those of that vector. */
KERNEL_FN size_t first_vector(uint64_t rows)
{
    return (size_t)__builtin_ctzll(rows) / LANES * LANES;
}

KERNEL_FN uint64_t without_vector(uint64_t rows, size_t place)
{
    return rows & ~(((UINT64_C(1) << LANES) - 1) << place);
}

/* Of these rows of a group, the cheapest. */
KERNEL_FN uint64_t cheapest(const struct kvca_view *view, const struct plan *plan, size_t row, uint64_t rows,
                            uint64_t *least_cost)
{
    uint64_t costs[GROUP + LANES];
    uint64_t found = 0;
    lanes least = lanes_set(NO_KEY);
    for (uint64_t left = rows; left != 0;) {
        size_t i = first_vector(left);
        lanes cost = costs_of(view, plan, row + i, rows_in_group(view, row) - i);
        cost = lanes_select(mask_of_bits(rows >> i), cost, lanes_set(NO_KEY));
        lanes_store(costs + i, cost);
        least = lanes_min(least, cost);
        left = without_vector(left, i);
    }
    least = lanes_least(least);
    for (uint64_t left = rows; left != 0;) {
        size_t i = first_vector(left);
        found |= mask_bits(lanes_equal(lanes_load(costs + i, LANES), least)) << i;
        left = without_vector(left, i);
    }
    *least_cost = lanes_first(least);
    return found;
}

/* The rows of a group that have this key, which is in all lanes, whether they fit or not. */
KERNEL_FN uint64_t having(const struct kvca_view *view, const struct plan *plan, size_t row, size_t rows, lanes key)
{
    uint64_t found = 0;
    size_t i = 0;
    for (; i + LANES <= rows; i += LANES) {
        found |= mask_bits(lanes_equal(load_keys(view, plan, row, i, LANES), key)) << i;
    }
    if (i < rows) {
        found |= mask_bits(lanes_equal(load_keys(view, plan, row, i, rows - i), key)) << i;
    }
    return found;
}

/* The second look: the best rows of a group. `fits` are those that fit, one of which has the key `least`. */
KERNEL_FN uint64_t best_of(const struct kvca_view *view, const struct plan *plan, size_t row, uint64_t fits,
                           lanes least, struct key *key)
{
    size_t rows = rows_in_group(view, row);
    uint64_t tied = rows == GROUP ? having(view, plan, row, GROUP, least) : having(view, plan, row, rows, least);
    tied &= fits;
    *key = (struct key){lanes_first(least), 0};
    bool decided = !plan->many && (tied & (tied - 1)) == 0; /* the cost of a single row is compared with none */
    return plan->order == BY_COST && !decided ? cheapest(view, plan, row, tied, &key->second) : tied;
}

/* The tied rows: the first, how many, and their key. */
struct choice {
    size_t row;
    size_t ties;
    struct key key;
};

/* Takes rows of a group into the choice. Returns those that tie with it. Numbers that the kernel declines leave none. */
KERNEL_FN uint64_t take(struct choice *choice, size_t row, struct key key, uint64_t tied)
{
    if (tied == 0) {
        return 0;
    }
    if (choice->ties == 0 || is_less(key, choice->key)) {
        choice->row = row + (size_t)__builtin_ctzll(tied);
        choice->ties = 0;
        choice->key = key;
    } else if (is_less(choice->key, key)) {
        return 0;
    }
    choice->ties += count_bits(tied);
    return tied;
}

/* Looks at the one group that there is. */
KERNEL_FN struct choice scan_group(const struct kvca_view *view, const struct plan *plan, struct tally *tally,
                                   uint64_t *kept)
{
    struct choice choice = {0, 0, {0, 0}};
    struct group group = look_at(view, plan, 0, tally);
    if (group.fits != 0) {
        struct key key;
        *kept = best_of(view, plan, 0, group.fits, lanes_least(group.least), &key);
        take(&choice, 0, key, *kept);
    }
    return choice;
}

/* What is noted of a chunk of groups. */
struct notes {
    size_t groups;
    uint64_t fits[CHUNK_GROUPS];
    lanes least[CHUNK_GROUPS];
};

/* Takes the best rows of a chunk into the choice. `least` is the chunk's smallest key. */
KERNEL_FN void take_chunk(const struct kvca_view *view, const struct plan *plan, size_t row,
                          const struct notes *notes, lanes least, struct choice *choice, uint64_t *kept)
{
    bool may_win = choice->ties == 0 || lanes_first(least) <= choice->key.first;
    for (size_t i = 0; i < notes->groups; i++, row += GROUP) {
        uint64_t tied = 0;
        if (may_win && notes->fits[i] != 0 && mask_bits(lanes_equal(notes->least[i], least)) != 0) {
            struct key key;
            tied = best_of(view, plan, row, notes->fits[i], least, &key);
            tied = take(choice, row, key, tied);
        }
        if (row / GROUP < KEPT_GROUPS) {
            kept[row / GROUP] = tied;
        }
    }
}

/* Looks at all groups. */
KERNEL_FN struct choice scan_groups(const struct kvca_view *view, const struct plan *plan, struct tally *tally,
                                    uint64_t *kept)
{
    struct choice choice = {0, 0, {0, 0}};
    for (size_t chunk = 0; chunk < view->candidates.ranks->count;) {
        struct notes notes;
        size_t row = chunk;
        lanes least = lanes_set(NO_KEY);
        for (notes.groups = 0; notes.groups < CHUNK_GROUPS && row < view->candidates.ranks->count; notes.groups++) {
            struct group group = look_at(view, plan, row, tally);
            notes.fits[notes.groups] = group.fits;
            notes.least[notes.groups] = group.least;
            least = lanes_min(least, group.least);
            row += GROUP;
        }
        take_chunk(view, plan, chunk, &notes, lanes_least(least), &choice, kept);
        chunk = row;
    }
    return choice;
}

KERNEL_FN struct choice scan(const struct kvca_view *view, const struct plan *plan, struct tally *tally,
                             uint64_t *kept)
{
    return plan->many ? scan_groups(view, plan, tally, kept) : scan_group(view, plan, tally, kept);
}

/* The rows of a group that tie with the choice. */
KERNEL_OUT uint64_t find_tied(const struct kvca_view *view, struct plan plan, struct choice choice, size_t row)
{
    struct tally tally = empty_tally();
    struct group group = look_at(view, &plan, row, &tally);
    lanes least = lanes_least(group.least);
    if (group.fits == 0 || lanes_first(least) != choice.key.first) {
        return 0;
    }
    struct key key;
    uint64_t tied = best_of(view, &plan, row, group.fits, least, &key);
    return key.second == choice.key.second ? tied : 0;
}

#ifndef LANES_HAVE_NTH_BIT
/* The place of the set bit that has `n` set bits below it. */
KERNEL_FN size_t nth_bit(uint64_t word, size_t n)
{
    for (; n > 0; n--) {
        word &= word - 1;
    }
    return (size_t)__builtin_ctzll(word);
}
#endif

/* Draws one of the tied rows of many groups. If a host changes columns meanwhile, this still ends. */
KERNEL_FN size_t draw_from_groups(const struct kvca_view *view, const struct plan *plan, const struct choice *choice,
                                  const uint64_t *kept, _Atomic uint64_t *generator)
{
    size_t n = (size_t)kvca_draw(generator, choice->ties);
    for (size_t row = choice->row / GROUP * GROUP; row < view->candidates.ranks->count; row += GROUP) {
        uint64_t tied = row / GROUP < KEPT_GROUPS ? kept[row / GROUP] : find_tied(view, *plan, *choice, row);
        if (n < count_bits(tied)) {
            return row + nth_bit(tied, n);
        }
        n -= count_bits(tied);
    }
    return choice->row;
}

KERNEL_FN size_t draw(const struct kvca_view *view, const struct plan *plan, const struct choice *choice,
                      const uint64_t *kept, _Atomic uint64_t *generator)
{
    if (choice->ties <= 1) {
        return choice->row;
    }
    return plan->many ? draw_from_groups(view, plan, choice, kept, generator)
                      : nth_bit(*kept, (size_t)kvca_draw(generator, choice->ties));
}

/* How many candidates have no known capacity. Where no capacity is looked at, each of them fits for want of one. */
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
    if (plan.fit == BY_CAPACITIES && mask_bits(tally.unreported) != 0) {
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

/* The fallback. Its keys are D, and every candidate has one. */
KERNEL_OUT bool fall_back(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection)
{
    uint64_t kept[KEPT_GROUPS];
    struct plan plan = plan_of(view, BY_BLOCKS, BY_NOTHING, false, true);
    struct tally tally = empty_tally();
    struct choice choice = scan(view, &plan, &tally, kept);
    if (lanes_any_large(tally.bits)) {
        return false;
    }
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
    return capacities[0] != 0 ? BY_CAPACITIES : BY_CAPACITY;
}

/* An attempt by capacities, which finds out that all are reported, or the same by any capacity. */
KERNEL_FN enum result attempt_capacities(const struct kvca_view *view, enum order order, bool many, uint64_t *kept,
                                         _Atomic uint64_t *generator, kvca_selection *selection)
{
    struct plan plan = plan_of(view, order, BY_CAPACITIES, true, many);
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
    case BY_CAPACITIES:
        result = attempt_capacities(view, order, many, kept, generator, selection);
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
    const struct kvca_terms terms = {.packs = true};
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
