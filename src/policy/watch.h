/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a selection looks for ranks that must be warned about. To look at each rank of unknown capacity would take far
 * longer than to select. So a selection looks at all ranks only if the number of ranks, or of those of unknown
 * capacity, differs from that of the selection before. Other selections sometimes look at one row, drawn at random.
 * So a rank is found in whatever order a host shows its ranks.
 */
#ifndef KVCA_WATCH_H
#define KVCA_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rule/random.h"

/* One selection in 2^4 samples a row. */
#define KVCA_WATCH_BITS 4

/*
 * All zero means that nothing is known. Threads write without a lock. If one overwrites the count of another, a
 * sample is taken once more.
 */
struct kvca_watch {
    _Atomic uint64_t
        numbers; /* of the last selection: ranks in the upper half, and those of unknown capacity in the lower */
    _Atomic uint64_t selections;
};

static inline bool kvca_watch_knows(struct kvca_watch *watch, uint64_t count, uint64_t unknown)
{
    return atomic_load_explicit(&watch->numbers, memory_order_relaxed) == (count << 32 ^ unknown);
}

static inline void kvca_watch_learn(struct kvca_watch *watch, uint64_t count, uint64_t unknown)
{
    atomic_store_explicit(&watch->numbers, count << 32 ^ unknown, memory_order_relaxed);
}

/* Whether this selection must look at a row. kvca_watch_row() finds the row from `turn`, which is always written. */
static inline bool kvca_watch_samples(struct kvca_watch *watch, uint64_t *turn)
{
    uint64_t selections = atomic_load_explicit(&watch->selections, memory_order_relaxed);
    atomic_store_explicit(&watch->selections, selections + 1, memory_order_relaxed);
    /* Multiples of the golden ratio: one selection in sixteen, but not in step with any order that repeats. */
    *turn = selections * UINT64_C(0x9e3779b97f4a7c15);
    return *turn >> (64 - KVCA_WATCH_BITS) == 0;
}

static inline size_t kvca_watch_row(uint64_t turn, size_t count)
{
    return (size_t)(kvca_mix(turn) % count);
}

#endif
