/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan of all rows by vectors, 64 rows at a time: a group, whose rows are the bits of a word. What makes it fast:
 *
 *   - Each column is read once, and no branch on the way depends on what is in it, so that none is guessed wrong.
 *   - Of a group it is only noted which first keys were the smallest, lane by lane. When the smallest of all is known,
 *     the groups that have it, one as a rule, are looked at again: for the rows and, in BY_COST, for their costs.
 *   - Where numbers are small, and in practice they are, D and N make one integer (BY_PACKED), and limits need no
 *     floating point (BY_CAPACITY). Whether they were small is seen at the end, and then all is done once more in the
 *     general way.
 */
#ifndef KVCA_SCAN_H
#define KVCA_SCAN_H

#include "vector/rule.h"

/* So many groups are looked at before their best rows are: while their columns still are in the nearest cache. */
#define CHUNK_GROUPS 16

/* A group as it was looked at: words have a bit for each row. */
struct group {
    uint64_t candidates;
    uint64_t fits;
    uint64_t unreported;
    uint64_t sound;
    lanes least; /* the smallest first keys of the rows that fit */
};

LANES_FN void add_verdict(const struct way *way, struct group *group, const struct verdict *verdict, size_t place,
                          bool masked)
{
    mask up = verdict->fits;
    if (masked) {
        up = mask_and(up, mask_of_bits(group->candidates >> place));
    }
    group->fits |= mask_bits(up) << place;
    group->unreported |= mask_bits(verdict->unreported) << place;
    if (way->order == BY_COST) {
        group->sound |= mask_bits(verdict->sound) << place;
    }
    group->least = lanes_min_where(group->least, up, verdict->first_key);
}

/* Looks at a vector, at this place of its group. */
LANES_FN void look_at_rows(const struct kvca_view *view, const struct way *way, size_t row, size_t place, size_t rows,
                           struct group *group, struct seen *seen)
{
    struct verdict verdict = judge(view, way, row, rows);
    mask known = mask_of_bits(rows < LANES ? group->candidates >> place : UINT64_MAX);
    see(seen, way, known, &verdict);
    add_verdict(way, group, &verdict, place, !way->all || rows < LANES);
}

/* Looks at the rows of a group, of which there are `rows`. Where that is constant the loop has no counter. */
LANES_FN void look_at_all(const struct kvca_view *view, const struct way *way, size_t row, size_t rows,
                          struct group *group, struct seen *seen)
{
    size_t i = 0;
    for (; i + LANES <= rows; i += LANES) {
        look_at_rows(view, way, row + i, i, LANES, group, seen);
    }
    if (i < rows) {
        look_at_rows(view, way, row + i, i, rows - i, group, seen);
    }
}

/* The same for a pool's slots, two vectors of them at once: none is shorter. Memory is read from end to end. */
LANES_FN void look_at_slots(const struct kvca_view *view, const struct way *way, size_t row, size_t rows,
                            struct group *group)
{
    const struct kvca_ready *ready = &view->ready[row / GROUP];
    for (size_t i = 0; i < rows; i += LANES + LANES) {
        pair fits = pair_above(ready->room + i, (uint32_t)way->request);
        if (!way->all) {
            fits = pair_and(fits, pair_of_bits(group->candidates >> i));
        }
        group->fits |= pair_bits(fits) << i;
        group->least = lanes_min_where(group->least, pair_first(fits), load_first_key(view, way, row, i, LANES));
        group->least =
            lanes_min_where(group->least, pair_second(fits), load_first_key(view, way, row, i + LANES, LANES));
    }
}

LANES_FN struct group look_at(const struct kvca_view *view, const struct way *way, size_t row, struct seen *seen)
{
    size_t rows = rows_in_group(view, row);
    struct group group = {.candidates = candidates_of(view, way, row, rows), .least = lanes_set(UINT64_MAX)};
    if (way->order == BY_READY) {
        look_at_slots(view, way, row, rows, &group);
        return group;
    }
    if (rows == GROUP && way->order != BY_COST) { /* whose loop is too large to be unrolled */
        look_at_all(view, way, row, GROUP, &group, seen);
    } else {
        look_at_all(view, way, row, rows, &group, seen);
    }
    return group;
}

/* The place of the first vector that has any of these rows, and the rows without those in it. */
LANES_FN size_t first_vector(uint64_t rows)
{
    return (size_t)__builtin_ctzll(rows) / LANES * LANES;
}

LANES_FN uint64_t without_vector(uint64_t rows, size_t place)
{
    return rows & ~(((UINT64_C(1) << LANES) - 1) << place);
}

/* The costs of a vector of rows, as integers; takes those of `rows`, the bits of the group, into the least ones. */
LANES_FN lanes costs_of(const struct kvca_view *view, const struct way *way, size_t row, size_t place, uint64_t rows,
                        lanes *least)
{
    lanes cost = lanes_bits_of(cost_of(view, way, row + place, rows_in_group(view, row) - place));
    *least = lanes_min_where(*least, mask_of_bits(rows >> place), cost);
    return cost;
}

/* As cheapest(), for rows of several vectors. */
LANES_FN uint64_t cheapest_of_vectors(const struct kvca_view *view, const struct way *way, size_t row, uint64_t rows,
                                      uint64_t *least_cost)
{
    uint64_t costs[GROUP];
    uint64_t tied = 0;
    lanes least = lanes_set(UINT64_MAX);
    for (uint64_t left = rows; left != 0;) {
        size_t i = first_vector(left);
        lanes_store(costs + i, costs_of(view, way, row, i, rows, &least));
        left = without_vector(left, i);
    }
    least = lanes_least(least);
    *least_cost = lanes_first(least);
    for (uint64_t left = rows; left != 0;) {
        size_t i = first_vector(left);
        tied |= mask_bits(lanes_equal(lanes_load(costs + i, LANES), least)) << i;
        left = without_vector(left, i);
    }
    return tied & rows;
}

/* Of `rows`, those with the smallest cost, which it tells. Few groups have more than one vector to look at. */
LANES_FN uint64_t cheapest(const struct kvca_view *view, const struct way *way, size_t row, uint64_t rows,
                           uint64_t *least_cost)
{
    size_t i = first_vector(rows);
    if (without_vector(rows, i) != 0) {
        return cheapest_of_vectors(view, way, row, rows, least_cost);
    }
    lanes least = lanes_set(UINT64_MAX);
    lanes cost = costs_of(view, way, row, i, rows, &least);
    least = lanes_least(least);
    *least_cost = lanes_first(least);
    return mask_bits(lanes_equal(cost, least)) << i & rows;
}

/* Those rows of a group that have this first key, which stands in all lanes. */
LANES_FN uint64_t having(const struct kvca_view *view, const struct way *way, size_t row, size_t rows, lanes key)
{
    uint64_t found = 0;
    size_t i = 0;
    for (; i + LANES <= rows; i += LANES) {
        found |= mask_bits(lanes_equal(load_first_key(view, way, row, i, LANES), key)) << i;
    }
    if (i < rows) {
        found |= mask_bits(lanes_equal(load_first_key(view, way, row, i, rows - i), key)) << i;
    }
    return found;
}

/* The best rows of a group, of those that fit, one of which has the first key given, in all lanes; and their key. */
LANES_FN uint64_t best_of(const struct kvca_view *view, const struct way *way, size_t row, uint64_t fits, lanes first,
                          struct key *key)
{
    size_t rows = rows_in_group(view, row);
    uint64_t tied = rows == GROUP ? having(view, way, row, GROUP, first) : having(view, way, row, rows, first);
    tied &= fits;
    *key = (struct key){.first = lanes_first(first)};
    bool decided = !way->many && (tied & (tied - 1)) == 0; /* the only row of all: it matters not what it costs */
    return way->order == BY_COST && !decided ? cheapest(view, way, row, tied, &key->second) : tied;
}

LANES_FN bool is_among(lanes key, lanes keys)
{
    return mask_bits(lanes_equal(keys, key)) != 0;
}

/* What is noted of the groups of a chunk. */
struct notes {
    size_t groups;
    uint64_t fits[CHUNK_GROUPS];
    lanes least[CHUNK_GROUPS];
};

LANES_FN void take_chunk(const struct kvca_view *view, const struct way *way, size_t row, const struct notes *notes,
                         lanes least, struct choice *choice, uint64_t *kept)
{
    bool may_win = choice->selection.ties == 0 || lanes_first(least) <= choice->key.first;
    for (size_t i = 0; i < notes->groups; i++, row += GROUP) {
        uint64_t tied = 0;
        if (may_win && notes->fits[i] != 0 && is_among(least, notes->least[i])) {
            struct key key;
            tied = best_of(view, way, row, notes->fits[i], least, &key);
            tied = take(choice, row, key, tied);
        }
        if (row / GROUP < KEPT_GROUPS) {
            kept[row / GROUP] = tied;
        }
    }
}

LANES_FN uint64_t unknown_in(const struct kvca_view *view, const struct way *way, size_t row,
                             const struct group *group)
{
    if (way->order == BY_READY) {
        return view->ready[row / GROUP].unknown & group->candidates;
    }
    return way->terms.counts_unknown ? group->unreported & group->candidates : 0;
}

/* Adds what is counted of a group. */
LANES_FN void count_group(const struct kvca_view *view, const struct way *way, size_t row, const struct group *group,
                          struct choice *choice)
{
    choice->selection.fits += count_bits(group->fits);
    choice->selection.unknown_capacity += count_bits(unknown_in(view, way, row, group));
    choice->is_sound &= way->order != BY_COST || (group->candidates & ~group->sound) == 0;
}

/* Looks at all rows, of which there is but one group. */
LANES_FN struct choice scan_group(const struct kvca_view *view, const struct way *way, uint64_t *kept)
{
    struct choice choice = {.is_sound = true};
    struct seen seen = seen_nothing();
    struct group group = look_at(view, way, 0, &seen);
    count_group(view, way, 0, &group, &choice);
    check_way(&choice, way, &seen);
    kept[0] = 0;
    if (group.fits != 0) {
        kept[0] = best_of(view, way, 0, group.fits, lanes_least(group.least), &choice.key);
        choice.selection.row = (size_t)__builtin_ctzll(kept[0]);
        choice.selection.ties = count_bits(kept[0]);
    }
    return choice;
}

/* Looks at all rows. */
LANES_FN struct choice scan_groups(const struct kvca_view *view, const struct way *way, uint64_t *kept)
{
    struct choice choice = {.is_sound = true};
    struct seen seen = seen_nothing();
    for (size_t chunk = 0; chunk < view->ranks->count;) {
        struct notes notes;
        size_t row = chunk;
        lanes least = lanes_set(UINT64_MAX);
        for (notes.groups = 0; notes.groups < CHUNK_GROUPS && row < view->ranks->count; notes.groups++) {
            struct group group = look_at(view, way, row, &seen);
            notes.fits[notes.groups] = group.fits;
            notes.least[notes.groups] = group.least;
            least = lanes_min_where(least, mask_of_bits(UINT64_MAX), group.least);
            count_group(view, way, row, &group, &choice);
            row += GROUP;
        }
        take_chunk(view, way, chunk, &notes, lanes_least(least), &choice, kept);
        chunk = row;
    }
    check_way(&choice, way, &seen);
    return choice;
}

LANES_FN struct choice scan(const struct kvca_view *view, const struct way *way, uint64_t *kept)
{
    return way->many ? scan_groups(view, way, kept) : scan_group(view, way, kept);
}

/* Which rows of a group tie with the choice, looked at again. */
LANES_FN uint64_t find_tied(const struct kvca_view *view, const struct way *way, const struct choice *choice,
                            size_t row)
{
    struct seen seen = seen_nothing();
    struct group group = look_at(view, way, row, &seen);
    lanes least = lanes_least(group.least);
    if (group.fits == 0 || lanes_first(least) != choice->key.first) {
        return 0;
    }
    struct key key;
    uint64_t tied = best_of(view, way, row, group.fits, least, &key);
    return is_equal(key, choice->key) ? tied : 0;
}

#endif
