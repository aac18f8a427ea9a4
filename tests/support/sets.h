/* SPDX-License-Identifier: Apache-2.0 */
/* Rank sets that look for trouble: numbers where integers, doubles and limits change their ways, in many sizes. */
#ifndef KVCA_SETS_H
#define KVCA_SETS_H

#include "support/test.h"

#include <kvca/pool.h>

/*
 * A set and parameters for it, all valid. D is often put at a rank's limit or next to it, many rows are equal, and half
 * of the sets have small numbers alone.
 */
void fill_at_boundaries(struct rank_set *set, kvca_params *params, uint64_t *random);

/* All of a row but its identity. The sets may be the same. */
void copy_row(struct rank_set *to, size_t row, const struct rank_set *from, size_t origin);

/* The same set with columns left out, as hosts do that have none; the set says then what is assumed instead. */
enum { NO_IDENTITY = 1, NO_CAPACITY = 2, NO_MULTIPLIER = 4 };
kvca_ranks ranks_without(struct rank_set *set, unsigned columns);

/* The same, with capacities and multipliers left out now and then. */
kvca_ranks leave_out(struct rank_set *set, uint64_t *random);

/*
 * Makes a pool have the set's D, N and capacities in its first slots, whatever they are: no host could book such numbers in a
 * lifetime. The ledger's truth is what an owner has booked, and a repair works all out from that.
 */
void rebook_set(kvca_pool *pool, const struct rank_set *set);

/* The same for a pool that is new: puts the ranks of the set into it, and returns who booked all. */
kvca_owner book_set(kvca_pool *pool, const struct rank_set *set);

#endif
