/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks come and go for months. The set may not grow, and a rank in use must not be warned about again. So the set
 * forgets ranks, but only those that no selection has shown lately. Its clock counts how often the ranks in use are
 * seen. An era lasts until they were seen 64 times each, on average. This holds for any number of ranks, and for any
 * portions in which a host shows them. A rank that was unseen for an era and the beginning of another may be
 * forgotten when its place is needed.
 *
 * An entry is a 64-bit word, so that one compare-and-swap replaces it as a whole:
 *
 *     fingerprint of the rank (40 bits) | era in which it was last seen (24 bits)
 *
 * 0 is a free entry. Other bits of a rank's hash select two groups of places, and the rank is in one of the two. In a
 * pool of 1000 ranks, two are mistaken for one another with a probability below 2^-28. Then one warning is missing.
 */
#include "policy/warned.h"

#include <stddef.h>

#include "rule/random.h"

#define GROUPS (KVCA_WARNED_RANKS / KVCA_WARNED_GROUP)
#define PLACES ((size_t)2 * KVCA_WARNED_GROUP)
#define LOOKS_PER_ERA 64 /* at each rank, on average */
#define ERAS_IN_USE 2
#define ERA_BITS 24
#define ERA_MASK ((UINT64_C(1) << ERA_BITS) - 1)

/* A thread that was delayed may find entries of later eras than its own. They are at most this many eras ahead. */
#define ERAS_AHEAD 1024

#define OLDER_THAN_ALL UINT64_MAX

/* A rank as the set sees it. */
struct mark {
    uint64_t fingerprint;
    size_t groups[2];
};

static struct mark mark_of(uint64_t worker_id, uint32_t dp_rank)
{
    uint64_t hash = kvca_hash_rank(worker_id, dp_rank);
    uint64_t bits = hash & ~ERA_MASK;
    return (struct mark){
        .fingerprint = bits != 0 ? bits : ~ERA_MASK, /* 0 means a free entry */
        .groups = {hash % GROUPS, hash / GROUPS % GROUPS},
    };
}

static _Atomic uint64_t *place_of(struct kvca_warned *warned, const struct mark *mark, size_t place)
{
    size_t group = mark->groups[place / KVCA_WARNED_GROUP];
    return &warned->entries[group * KVCA_WARNED_GROUP + place % KVCA_WARNED_GROUP];
}

/* How many eras ago the entry was last seen. */
static uint64_t age(uint64_t entry, uint64_t era)
{
    if (entry == 0) {
        return OLDER_THAN_ALL;
    }
    uint64_t eras = (era - entry) & ERA_MASK;
    return eras > ERA_MASK - ERAS_AHEAD ? 0 : eras;
}

/* Counts without a lock. If one thread overwrites the count of another, the era only ends a little later. */
static void count(_Atomic uint64_t *counter)
{
    uint64_t counted = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, counted + 1, memory_order_relaxed);
}

/* Marks a found rank as seen in this era. It is no fault if another thread marked or replaced it meanwhile. */
static void refresh(struct kvca_warned *warned, _Atomic uint64_t *entry, uint64_t seen, uint64_t era)
{
    if (age(seen, era) != 0) {
        count(&warned->seen);
        uint64_t fresh = (seen & ~ERA_MASK) | (era & ERA_MASK);
        atomic_compare_exchange_strong_explicit(entry, &seen, fresh, memory_order_relaxed, memory_order_relaxed);
    }
}

/* A search in the places of a rank. If it is not found, `entry` is the oldest entry, and the first of several. */
struct finding {
    _Atomic uint64_t *entry;
    uint64_t seen;
    bool found;
};

static struct finding find(struct kvca_warned *warned, const struct mark *mark, uint64_t era)
{
    struct finding oldest = {.entry = NULL};
    for (size_t i = 0; i < PLACES; i++) {
        _Atomic uint64_t *entry = place_of(warned, mark, i);
        uint64_t seen = atomic_load_explicit(entry, memory_order_relaxed);
        if ((seen & ~ERA_MASK) == mark->fingerprint) {
            return (struct finding){.entry = entry, .seen = seen, .found = true};
        }
        if (!oldest.entry || age(seen, era) > age(oldest.seen, era)) {
            oldest = (struct finding){.entry = entry, .seen = seen};
        }
    }
    return oldest;
}

uint64_t kvca_warned_begin(struct kvca_warned *warned)
{
    uint64_t era = atomic_load_explicit(&warned->era, memory_order_relaxed);
    uint64_t seen = atomic_load_explicit(&warned->seen, memory_order_relaxed);
    if (atomic_load_explicit(&warned->looks, memory_order_relaxed) / LOOKS_PER_ERA <= seen) {
        return era;
    }
    if (atomic_compare_exchange_strong_explicit(&warned->era, &era, era + 1, memory_order_relaxed,
                                                memory_order_relaxed)) {
        atomic_store_explicit(&warned->looks, 0, memory_order_relaxed);
        atomic_store_explicit(&warned->seen, 0, memory_order_relaxed);
        era++;
    }
    return era;
}

bool kvca_warned_add(struct kvca_warned *warned, uint64_t era, uint64_t worker_id, uint32_t dp_rank)
{
    struct mark mark = mark_of(worker_id, dp_rank);
    for (;;) {
        struct finding finding = find(warned, &mark, era);
        if (finding.found) {
            count(&warned->looks);
            refresh(warned, finding.entry, finding.seen, era);
            return false;
        }
        if (age(finding.seen, era) < ERAS_IN_USE) {
            return false; /* all its places are in use: one warning too few is better than a flooded log */
        }
        if (atomic_compare_exchange_strong_explicit(finding.entry, &finding.seen, mark.fingerprint | (era & ERA_MASK),
                                                    memory_order_relaxed, memory_order_relaxed)) {
            count(&warned->seen);
            return true;
        }
        /* Another thread took the place, perhaps for the same rank. Look again. */
    }
}
