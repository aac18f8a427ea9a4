/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule, faster. This folder gives the answers of src/rule, draws included, by looking at several rows at once.
 *
 *     vector.c           hands a selection to the kernel of this processor, and to the plain rule what that declines
 *     view.h             what a kernel looks at, and what it offers
 *     kernel.h           the kernel, written in vectors of any length, with its parts first_pass.h and second_look.h
 *     lanes_*.h, NAME.c  what a vector is on one kind of processor, and the kernel compiled for it
 *
 * The kernel takes what occurs: D, N and the request's blocks below 2^31. It declines everything else.
 */
#ifndef KVCA_VECTOR_H
#define KVCA_VECTOR_H

#include "vector/view.h"

/* What the kernel asks of the parameters. */
struct kvca_terms kvca_terms_of(const kvca_params *params);

/* No kernel: it declines everything, and the plain rule does all. */
extern const struct kvca_kernel kvca_no_kernel;

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
 * Picks a slot that fits by what a pool keeps ready. Returns false, and writes nothing, when none fits or this
 * processor has no kernel. The parameters have kvca_terms.packs, no slot is large, the request is below 2^31 blocks,
 * and there are no multipliers. The arguments come in registers: a place takes little longer than a struct would
 * take to arrive.
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
