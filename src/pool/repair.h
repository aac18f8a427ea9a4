/* SPDX-License-Identifier: Apache-2.0 */
/* The repair of a pool in which a process died. */
#ifndef KVCA_REPAIR_H
#define KVCA_REPAIR_H

#include "pool/ledger.h"

/* Completes or undoes what was interrupted, and rebuilds the derived data. */
void kvca_pool_rebuild(kvca_pool *pool);

/* Every call begins with it. */
static inline void kvca_pool_heal(kvca_pool *pool)
{
    if (pool->dirty != KVCA_CLEAN) {
        kvca_pool_rebuild(pool);
    }
}

#endif
