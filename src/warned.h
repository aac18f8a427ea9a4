/* SPDX-License-Identifier: Apache-2.0 */
/* The set of ranks that were warned about: of fixed size, shared by threads without a lock. */
#ifndef KVCA_WARNED_H
#define KVCA_WARNED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVCA_WARNED_RANKS 4096 /* the most ranks that are remembered */
#define KVCA_WARNED_GROUP 8    /* places in a group: a cache line of them */

/* All zero is the empty set. */
struct kvca_warned {
    _Alignas(64) _Atomic uint64_t entries[KVCA_WARNED_RANKS];
    _Atomic uint64_t passes; /* the set's clock */
};

/* Begins a pass, in which each rank of a selection is added. Returns its time, for kvca_warned_add(). */
uint64_t kvca_warned_pass(struct kvca_warned *warned);

/*
 * The same where only one row is looked at, drawn at random: some are taken for passes, so that all ranks in use are
 * seen several times before the clock has gone far enough to forget one.
 */
uint64_t kvca_warned_sample(struct kvca_warned *warned, size_t row);

/*
 * Adds a rank. Returns whether it is new, so that it is to be warned about: true once, to one thread, as long as the
 * rank is remembered.
 */
bool kvca_warned_add(struct kvca_warned *warned, uint64_t time, uint64_t worker_id, uint32_t dp_rank);

#endif
