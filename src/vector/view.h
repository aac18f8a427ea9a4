/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel looks at, and what it offers. */
#ifndef KVCA_VIEW_H
#define KVCA_VIEW_H

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
    bool nothing_fits;              /* a pool knows that by its ready keys; the plain rule looks for itself */
};

/* One processor's kernel. Each function declines by returning false: then nothing was written and nothing drawn. */
struct kvca_kernel {
    const char *name;
    bool (*select)(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection);
    bool (*select_ready)(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                         const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection);
};

/* Those of this build. NAME.c defines one by including lanes_NAME.h and kernel.h. */
#if defined(__x86_64__)
extern const struct kvca_kernel kvca_avx2;
extern const struct kvca_kernel kvca_avx512;
#elif defined(__aarch64__)
extern const struct kvca_kernel kvca_neon;
#endif

#endif
