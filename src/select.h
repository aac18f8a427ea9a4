/* SPDX-License-Identifier: Apache-2.0 */
/* The rule, as the rest of the library calls it. select.c says what it is. */
#ifndef KVCA_SELECT_H
#define KVCA_SELECT_H

#include <stdatomic.h>

#include <kvca/kvca.h>

/* What the rule looks at. The parameters and columns are valid: whoever makes a view has checked them. */
struct kvca_view {
    const kvca_params *params;
    const kvca_ranks *ranks;
    const uint64_t *limits;        /* kvca_limit() of each row, where it is at hand; else NULL */
    const uint64_t *candidates[2]; /* bitmaps of the rows to look at: those in both; NULL for all */
};

/* What a row is ranked by: the smaller `first` wins, then the smaller `second`. Rows with equal keys tie. */
struct kvca_key {
    uint64_t first;
    double second;
};

/* The best rows: how they come out, and the key that all of them have. */
struct kvca_choice {
    kvca_selection selection; /* its row is the first of the tied rows */
    struct kvca_key key;
};

/* Applies the rule to all candidates. Its ties are 0 when there are none. */
struct kvca_choice kvca_view_choose(const struct kvca_view *view);

/*
 * Writes tied rows of `choice`, which was made from the same view, to `rows`: the first `skip` are passed over, then
 * up to `room` are written. Returns how many were.
 */
size_t kvca_view_tied(const struct kvca_view *view, const struct kvca_choice *choice, size_t skip, size_t *rows,
                      size_t room);

/* Draws one of the tied rows; there is at least one. */
size_t kvca_view_draw(const struct kvca_view *view, const struct kvca_choice *choice, _Atomic uint64_t *generator);

/* Whether the row is one to look at. */
bool kvca_view_is_candidate(const struct kvca_view *view, size_t row);

/* The largest D that fits a rank of this capacity, 0 standing for an unknown one. */
uint64_t kvca_limit(const kvca_params *params, uint64_t total_kv_blocks);

/* Whether the filter would need a capacity and has none, for a rank that reports this one. */
bool kvca_capacity_is_unknown(const kvca_params *params, uint64_t total_kv_blocks);

#endif
