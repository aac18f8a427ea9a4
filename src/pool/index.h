/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a pool, which finds a rank by its identity: a hash table of slots, with open addressing. It follows from
 * the slots, and a repair builds it again.
 */
#ifndef KVCA_INDEX_H
#define KVCA_INDEX_H

#include "pool/ledger.h"

#define KVCA_NO_BUCKET UINT32_MAX

/* The bucket that holds a rank; KVCA_NO_BUCKET when the pool has no such rank. */
uint32_t kvca_pool_find_bucket(kvca_pool *pool, uint64_t worker_id, uint32_t dp_rank);

/* Adds the rank of a slot. There is room. */
void kvca_pool_index_add(kvca_pool *pool, uint32_t slot);

/* Empties a bucket, and moves later entries up so that no search ends too early. */
void kvca_pool_index_remove(kvca_pool *pool, uint32_t bucket);

#endif
