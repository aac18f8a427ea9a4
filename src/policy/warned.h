/* SPDX-License-Identifier: Apache-2.0 */
/* The set of ranks that were warned about. Its size is fixed, and threads share it without a lock. */
#ifndef KVCA_WARNED_H
#define KVCA_WARNED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define KVCA_WARNED_RANKS 4096 /* the most ranks that it remembers */
#define KVCA_WARNED_GROUP 8    /* places in a group: one cache line */

/* All zero is the empty set. */
struct kvca_warned {
    _Alignas(64) _Atomic uint64_t entries[KVCA_WARNED_RANKS];
    _Atomic uint64_t era;
    _Atomic uint64_t looks; /* how often remembered ranks were added in this era */
    _Atomic uint64_t seen;  /* how many ranks these were */
};

/* Begins a pass that adds ranks one after the other. Returns the era to pass to kvca_warned_add(). */
uint64_t kvca_warned_begin(struct kvca_warned *warned);

/*
 * Adds a rank. Returns whether it is new, so that a warning must be given. As long as the rank is remembered, only
 * one call of one thread returns true for it.
 */
bool kvca_warned_add(struct kvca_warned *warned, uint64_t era, uint64_t worker_id, uint32_t dp_rank);

#endif
