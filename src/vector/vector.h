/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule, faster. This folder gives the answers of src/rule, draws included, by looking at several rows at once.
 *
 *     vector.c           hands a selection to the kernel of this processor, and to the plain rule what that declines
 *     kernel.h           the kernel: the whole loop, written in vectors of any length
 *     lanes_*.h, NAME.c  what a vector is on one kind of processor, and the kernel compiled for it
 *
 * The kernel takes what occurs: D, N and the request's blocks below 2^31. It declines everything else.
 */
#ifndef KVCA_VECTOR_H
#define KVCA_VECTOR_H

#include "rule/rule.h"

/* What the kernel asks of the parameters, worked out once. Pools keep it: it is laid out alike everywhere. */
struct kvca_terms {
    double fraction;           /* capacity_fraction */
    double weight;             /* W */
    uint64_t unreported_limit; /* the limit of a rank that reports no capacity */
    bool filters;              /* the capacity filter is on */
    bool whole;                /* the fraction is 1 */
    bool counts_unknown;       /* a rank that reports no capacity is of unknown capacity */
    bool count_priority;
    bool packs; /* without multipliers, kvca_packed_key() orders ranks as the rule does */
};

_Static_assert(sizeof(struct kvca_terms) == 32, "else raise KVCA_POOL_LAYOUT");

struct kvca_terms kvca_terms_of(const kvca_params *params);

/* So many rows are a group: a word has one bit for each of them. */
#define KVCA_GROUP 64

/* What a pool keeps of a group of slots, so that the kernel reads 12 bytes a slot instead of 24. */
struct kvca_ready {
    /* The smallest request that does not fit; UINT32_MAX if that is past it. 0 where the slot takes no request. */
    uint32_t room[KVCA_GROUP];
    uint64_t keys[KVCA_GROUP]; /* kvca_packed_key() */
    uint64_t unknown;          /* bitmap: takes requests and is of unknown capacity */
    uint64_t unused[7];        /* the next group begins on a cache line, too */
};

_Static_assert(sizeof(struct kvca_ready) == 832, "else raise KVCA_POOL_LAYOUT");

/* What a selection looks at. There is at least one row, and the columns that are needed are there. */
struct kvca_view {
    const kvca_params *params;
    const struct kvca_terms *terms; /* kvca_terms_of(params) */
    struct kvca_candidates candidates;
    const struct kvca_ready *ready; /* a pool's, one for each group; NULL elsewhere */
    bool only_if_fits;              /* draw nothing when no candidate fits */
    bool nothing_fits;              /* a pool knows already that none does */
};

/* One processor's kernel. Each function declines by returning false: then nothing was written and nothing drawn. */
struct kvca_kernel {
    const char *name;
    bool (*select)(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection);
    bool (*select_ready)(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                         const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection);
};

/* No kernel: it declines everything, and the plain rule does all. */
extern const struct kvca_kernel kvca_no_kernel;
#if defined(__x86_64__)
extern const struct kvca_kernel kvca_avx2;
extern const struct kvca_kernel kvca_avx512;
#elif defined(__aarch64__)
extern const struct kvca_kernel kvca_neon;
#endif

/* The one in use: set once, before main(). */
extern const struct kvca_kernel *kvca_kernel_in_use;

/* kvca_select() of a single rank. It has no rival: whether it fits is all there is to find out. */
bool kvca_select_only(const kvca_params *params, const struct kvca_terms *terms, const kvca_ranks *ranks,
                      kvca_selection *selection);

/* kvca_view_select() by the plain rule. */
bool kvca_select_plainly(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection);

/*
 * Picks a candidate, as kvca_select() does. `ties` is 0 when there is no candidate. Returns false, and writes nothing,
 * when a candidate's multiplier is not accepted.
 */
static inline bool kvca_view_select(const struct kvca_view *view, _Atomic uint64_t *generator,
                                    kvca_selection *selection)
{
    return kvca_kernel_in_use->select(view, generator, selection) || kvca_select_plainly(view, generator, selection);
}

/*
 * Picks a slot that fits by what a pool keeps ready. Returns false, and writes nothing, when none fits or this processor
 * has no kernel. The parameters have kvca_terms.packs, no slot is large, the request is below 2^31 blocks, and there are
 * no multipliers. The arguments come in registers: a place takes little longer than a struct would take to arrive.
 */
static inline bool kvca_ready_select(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                                     const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection)
{
    return kvca_kernel_in_use->select_ready(ready, count, request_blocks, eligible, generator, selection);
}

/* Whether D and N are too large for the kernel, and so for a packed key. */
static inline bool kvca_is_large(uint64_t blocks, uint64_t requests)
{
    return (blocks | requests) > INT32_MAX;
}

/* N, unless count_priority is off, and then D. */
static inline uint64_t kvca_packed_key(bool count_priority, uint64_t blocks, uint64_t requests)
{
    return (count_priority ? requests << 32 : 0) | blocks;
}

/* Whether the filter would need a capacity and has none, for a rank that reports this one. */
static inline bool kvca_capacity_is_unknown(const struct kvca_terms *terms, uint64_t total_kv_blocks)
{
    return terms->counts_unknown && total_kv_blocks == 0;
}

#endif
