/* SPDX-License-Identifier: Apache-2.0 */
/* The rule, as the rest of the library calls it. rule.h says what it is. */
#ifndef KVCA_SELECT_H
#define KVCA_SELECT_H

#include <stdatomic.h>

#include <kvca/kvca.h>

/* What the rule asks of the parameters, worked out once. Pools keep it: it is laid out alike everywhere. */
struct kvca_terms {
    double fraction;           /* capacity_fraction */
    double weight;             /* W */
    uint64_t unreported_limit; /* the largest D that fits a rank that reports no capacity */
    bool filters;              /* the capacity filter is on */
    bool whole;                /* a rank may be filled: the fraction is 1 */
    bool counts_unknown;       /* a rank that reports no capacity has none that is known */
    bool count_priority;
    bool packs; /* kvca_packed_key() orders ranks as the rule does, without multipliers and where D and N are small */
};

_Static_assert(sizeof(struct kvca_terms) == 32, "else raise KVCA_POOL_LAYOUT");

struct kvca_terms kvca_terms_of(const kvca_params *params);

/* What a pool has besides columns. Bitmaps have a bit for each row. */
struct kvca_slots {
    const uint64_t *limits;    /* kvca_limit() */
    const uint64_t *placeable; /* bitmap: takes requests; NULL where what is ready says it: others have no room */
    const uint64_t *eligible;  /* bitmap: may be picked for this request; NULL for all */
    bool only_if_fits;         /* nothing is drawn where nothing fits */
    bool nothing_fits;         /* that is known already */
};

/* So many rows are a group: in words of their own they are the bits. */
#define KVCA_GROUP 64

/* What a pool keeps of a group of slots so that columns need not be looked at. Pools are made of it. */
struct kvca_ready {
    /* The smallest request that does not fit; UINT32_MAX if that is past it; 0 where none is taken, and where there is
     * no slot. */
    uint32_t room[KVCA_GROUP];
    uint64_t keys[KVCA_GROUP]; /* kvca_packed_key() */
    uint64_t unknown;          /* bitmap: takes requests and is of unknown capacity */
    uint64_t unused[7];        /* so that the next group begins on a cache line, too */
};

_Static_assert(sizeof(struct kvca_ready) == 832, "else raise KVCA_POOL_LAYOUT");

/* What the rule looks at: at least one row. All is valid but multipliers: whoever makes a view sees to that. */
struct kvca_view {
    const struct kvca_terms *terms;
    const kvca_ranks *ranks;
    const struct kvca_slots *slots; /* NULL where the rows are no slots of a pool: all are candidates */
    const struct kvca_ready *ready; /* by group, instead of columns and limits; NULL but inside the rule */
};

/*
 * Picks one of the candidates, as kvca_select() does. The ties are 0 where there is no candidate. Returns false, and
 * then writes nothing, where the multiplier of a candidate is not sound.
 */
bool kvca_view_pick(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection);

/*
 * The same for a single row, which has no rival: all there is to find out is whether it fits. A plain loop takes less
 * time for it than vectors take to begin with.
 */
bool kvca_only_pick(const struct kvca_terms *terms, const kvca_ranks *ranks, kvca_selection *selection);

/*
 * Picks one of all slots, `count` and at least one, that fit and take requests, for a request below UINT32_MAX; of the
 * eligible ones, unless that bitmap is NULL. Returns false, and writes nothing, where nothing fits. What is ready is right
 * for parameters with kvca_terms.packs, where no slot is large, and without multipliers. It comes in registers, not in a
 * struct: by way of memory it would come later, and a place takes little longer than that.
 */
bool kvca_ready_pick(const struct kvca_ready *ready, size_t count, uint64_t request_blocks, const uint64_t *eligible,
                     _Atomic uint64_t *generator, kvca_selection *selection);

/* Lists the tied rows, as kvca_tie_set() does; returns as kvca_view_pick(). */
bool kvca_view_list(const struct kvca_view *view, size_t *rows, size_t room, kvca_selection *selection);

/* The largest D that fits a rank of this capacity, 0 standing for an unknown one. */
uint64_t kvca_limit(const struct kvca_terms *terms, uint64_t total_kv_blocks);

/* Whether the filter would need a capacity and has none, for a rank that reports this one. */
static inline bool kvca_capacity_is_unknown(const struct kvca_terms *terms, uint64_t total_kv_blocks)
{
    return terms->counts_unknown && total_kv_blocks == 0;
}

/* Whether a rank may have this preferred_taint_multiplier. */
bool kvca_is_multiplier(double value);

/* For a pool that keeps keys: whether D and N are too large for one. */
static inline bool kvca_is_large(uint64_t blocks, uint64_t requests)
{
    return (blocks | requests) > UINT32_MAX;
}

/* The key of one that is not. */
static inline uint64_t kvca_packed_key(bool count_priority, uint64_t blocks, uint64_t requests)
{
    return (count_priority ? requests << 32 : 0) | blocks;
}

#endif
