/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second witness for the rule: slow, plain, and written from docs/rule.md without a look at src/rule/rule.c. Its doubles
 * are integers (exact.h).
 */
#ifndef KVCA_REFERENCE_H
#define KVCA_REFERENCE_H

#include "support/test.h"

struct reference {
    bool tied[MOST_RANKS];
    size_t ties; /* 0 when there is no candidate */
    size_t fits;
    size_t unknown_capacity;
    kvca_outcome outcome;
};

/* What a rank reports, else the parameter, else 0: unknown. */
uint64_t reference_capacity(const kvca_params *params, const struct rank_set *set, size_t row);

/* The largest D that fits a rank of a capacity that is known, where the filter is on. */
uint64_t reference_limit(const kvca_params *params, uint64_t capacity);

/* Applies the rule to the rows that are candidates; NULL for all. */
struct reference reference_select(const kvca_params *params, const struct rank_set *set, const bool *candidates);

/* Whether a selection is as the reference has it: its row is one of the tied. */
bool reference_agrees(const struct reference *reference, const kvca_selection *selection);

/* Whether these are the tied rows, in order. */
bool reference_lists(const struct reference *reference, const size_t *rows, size_t count);

#endif
