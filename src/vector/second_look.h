/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second look of the kernel: the tied rows of the groups that have the smallest key, over all groups, and the draw
 * among them. kernel.h says why.
 */
#ifndef KVCA_SECOND_LOOK_H
#define KVCA_SECOND_LOOK_H

#include "rule/random.h"
#include "vector/first_pass.h"

/* The number of groups between two second looks: their columns are still in the nearest cache then. */
#define CHUNK_GROUPS 16
/* The number of groups whose tied rows are kept for the draw. Those of later groups are found again. */
#define KEPT_GROUPS 256

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

/* The place in its group of the first vector that has any of these rows. */
KERNEL_FN size_t first_vector(uint64_t rows)
{
    return (size_t)__builtin_ctzll(rows) / LANES * LANES;
}

/* The rows without those of the vector at a place. */
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
KERNEL_FN uint64_t rows_with_key(const struct kvca_view *view, const struct plan *plan, size_t row, size_t rows,
                                 lanes key)
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
    uint64_t tied =
        rows == GROUP ? rows_with_key(view, plan, row, GROUP, least) : rows_with_key(view, plan, row, rows, least);
    tied &= fits;
    *key = (struct key){lanes_first(least), 0};
    bool decided = !plan->many && (tied & (tied - 1)) == 0; /* with one group and one row left, no cost is needed */
    return plan->order == BY_COST && !decided ? cheapest(view, plan, row, tied, &key->second) : tied;
}

/* The tied rows: the first, how many, and their key. */
struct choice {
    size_t row;
    size_t ties;
    struct key key;
};

/* Takes rows of a group into the choice. Returns those that tie with it. `tied` may be empty when numbers
 * are too large; attempt() then declines. */
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

#endif
