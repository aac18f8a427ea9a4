/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of the rule: the same body, rule.h, for the vectors of one processor or another. */
#ifndef KVCA_VARIANT_H
#define KVCA_VARIANT_H

#include "rule/select.h"

/* Each function as kvca_view_pick(), kvca_ready_pick() and kvca_view_list(). */
struct kvca_variant {
    const char *name;
    bool (*pick)(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection);
    bool (*pick_ready)(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                       const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection);
    bool (*list)(const struct kvca_view *view, size_t *rows, size_t room, kvca_selection *selection);
};

/* A variant, as a file that includes rule.h defines it. */
#define KVCA_DEFINE_VARIANT(variable, its_name)                                                                      \
    const struct kvca_variant variable = {.name = (its_name), .pick = pick, .pick_ready = pick_ready, .list = list}

extern const struct kvca_variant kvca_plain;
#if defined(__x86_64__)
extern const struct kvca_variant kvca_avx2;
extern const struct kvca_variant kvca_avx512;
#elif defined(__aarch64__)
extern const struct kvca_variant kvca_neon;
#endif

/* The one in use: set once, before main(). */
extern const struct kvca_variant *kvca_variant_in_use;

#endif
