/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a pool, and what is derived for them. The rule reads a key and a room for each slot, 12 bytes instead
 * of D, N and the limit: whoever books works them out once, so that every selection reads less.
 *
 * The pool is dirty before and after each of these.
 */
#ifndef KVCA_SLOTS_H
#define KVCA_SLOTS_H

#include "pool/ledger.h"

/* Works out what follows from the state and the capacity of a slot, and from the parameters. */
void kvca_pool_update_slot(kvca_pool *pool, uint64_t slot);

void kvca_pool_set_state(kvca_pool *pool, uint32_t slot, uint32_t generation, enum kvca_slot_state state);

/* Frees a slot, and clears what belongs to its rank. */
void kvca_pool_free_slot(kvca_pool *pool, uint32_t slot);

/* Frees a slot whose rank drains and has no request left. */
void kvca_pool_free_if_drained(kvca_pool *pool, uint32_t slot);

#endif
