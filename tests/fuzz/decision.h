/* SPDX-License-Identifier: Apache-2.0 */
/* Compares all that the library says of a set of ranks with the reference, and with itself. */
#ifndef KVCA_FUZZ_DECISION_H
#define KVCA_FUZZ_DECISION_H

#include "fuzz.h"

/*
 * Fails unless kvca_select(), kvca_tie_set() and kvca_explain() agree with the reference, by every variant of the rule.
 * `ranks` are the columns of the set. An optional column may be NULL if the set has its default value. An unsound
 * multiplier must be the answer, with its row.
 */
void decision_check(const kvca_params *params, const struct rank_set *set, const kvca_ranks *ranks, uint64_t seed);

#endif
