/* SPDX-License-Identifier: Apache-2.0 */
/* The set of ranks that were warned about: of fixed size, shared by threads without a lock. */
#ifndef KVCA_WARNED_H
#define KVCA_WARNED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define KVCA_WARNED_RANKS 4096 /* the most ranks that are remembered */
#define KVCA_WARNED_GROUP 8    /* places in a group: a cache line of them */

/* All zero is the empty set. */
struct kvca_warned {
    _Alignas(64) _Atomic uint64_t entries[KVCA_WARNED_RANKS];
    _Atomic uint64_t era;
    _Atomic uint64_t looks; /* of this era: how often remembered ranks were added, */
    _Atomic uint64_t seen;  /* and how many ranks those were */
};

/* Begins to add ranks, one after the other. Returns the era, for kvca_warned_add(). */
uint64_t kvca_warned_begin(struct kvca_warned *warned);

/*
 * Adds a rank. Returns whether it is new, so that it is to be warned about: true once, to one thread, as long as the
 * rank is remembered.
 */
bool kvca_warned_add(struct kvca_warned *warned, uint64_t era, uint64_t worker_id, uint32_t dp_rank);

#endif
