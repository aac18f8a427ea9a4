/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank sets that look for trouble: numbers at which integers, doubles and limits change their behaviour, in many sizes.
 */
#ifndef KVCA_SETS_H
#define KVCA_SETS_H

#include "support/test.h"

#include <kvca/pool.h>

/*
 * A set and parameters for it, all valid. D is often at a rank's limit or next to it, many rows are equal, and half of
 * the sets have only small numbers.
 */
void fill_at_boundaries(struct rank_set *set, kvca_params *params, uint64_t *random);

/* Copies a row without its identity. The sets may be the same. */
void copy_row(struct rank_set *to, size_t row, const struct rank_set *from, size_t origin);

/* The same set without some columns, as from hosts that do not have them. The set then has the default values. */
enum { NO_IDENTITY = 1, NO_CAPACITY = 2, NO_MULTIPLIER = 4 };
kvca_ranks ranks_without(struct rank_set *set, unsigned columns);

/* The same: capacities and multipliers are left out now and then. */
kvca_ranks leave_out(struct rank_set *set, uint64_t *random);

/*
 * Gives the first slots of a pool the set's D, N and capacities, even if no host could book so much in a lifetime. An
 * owner's bookings are the truth of the ledger, and a repair computes all else from them.
 */
void rebook_set(kvca_pool *pool, const struct rank_set *set);

/* The same for a new pool: puts the ranks of the set into it, and returns the owner of all bookings. */
kvca_owner book_set(kvca_pool *pool, const struct rank_set *set);

#endif
