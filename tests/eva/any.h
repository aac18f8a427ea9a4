/* SPDX-License-Identifier: Apache-2.0 */
/* Values that may be anything: every call returns another one. */
#ifndef KVCA_EVA_ANY_H
#define KVCA_EVA_ANY_H

#include <kvca/kvca.h>

#include "__fc_builtin.h"

uint64_t any_word(void);
uint32_t any_half_word(void);
bool any_bool(void);

/* From `least` to `most`; each value is analysed separately. */
#define any_of(least, most) Frama_C_interval_split((least), (most))

/* The bytes are written, but nothing is known of them. */
void make_any(void *bytes, size_t count);

/*
 * Any parameters, sound or not, except NaN: Eva does not see that a comparison which holds excludes NaN. test_params.c
 * tests that NaN is refused.
 */
extern int params_case; /* 0: any fraction except infinity; 1: the fraction 1; 2: no filter */
kvca_params any_params(void);

#endif
