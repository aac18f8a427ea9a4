/* SPDX-License-Identifier: Apache-2.0 */
/* All that the library says of a set of ranks, against the reference and against itself. */
#ifndef KVCA_FUZZ_DECISION_H
#define KVCA_FUZZ_DECISION_H

#include "fuzz.h"

/*
 * Fails unless kvca_select(), kvca_tie_set() and kvca_explain() do by every variant of the rule what the reference says
 * of the set. `ranks` are its columns; one that may be left out may be NULL where the set has the value that then
 * stands in. A multiplier that is not sound must be the answer, and its row told.
 */
void decision_check(const kvca_params *params, const struct rank_set *set, const kvca_ranks *ranks, uint64_t seed);

#endif
