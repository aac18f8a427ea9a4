/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second witness for the rule. It is slow and plain, and was written from docs/rule.md without a look at
 * src/rule/rule.c. Its doubles are integers (exact.h).
 */
#ifndef KVCA_REFERENCE_H
#define KVCA_REFERENCE_H

#include "support/test.h"

struct reference {
    bool tied[MOST_RANKS];
    size_t ties; /* 0 if there is no candidate */
    size_t fits;
    size_t unknown_capacity;
    kvca_outcome outcome;
};

/* The capacity that a rank reports, else the parameter, else 0 for unknown. */
uint64_t reference_capacity(const kvca_params *params, const struct rank_set *set, size_t row);

/* The largest D that fits a rank of known capacity while the filter is on. */
uint64_t reference_limit(const kvca_params *params, uint64_t capacity);

/* Applies the rule to the rows that are candidates; NULL means all. */
struct reference reference_select(const kvca_params *params, const struct rank_set *set, const bool *candidates);

/*
 * A fallback again, for a pool: rows that are no candidates now because their D would overflow may hold the request later.
 */
void reference_look_ahead(struct reference *reference, const kvca_params *params, const struct rank_set *set,
                          const bool *later);

/* Whether a selection agrees with the reference: its row is one of the tied rows. */
bool reference_agrees(const struct reference *reference, const kvca_selection *selection);

bool reference_lists(const struct reference *reference, const size_t *rows, size_t count);

#endif
