/* SPDX-License-Identifier: Apache-2.0 */
/* Values that may be any: every call gives another. */
#ifndef KVCA_EVA_ANY_H
#define KVCA_EVA_ANY_H

#include <kvca/kvca.h>

#include "__fc_builtin.h"

uint64_t any_word(void);
uint32_t any_half_word(void);
bool any_bool(void);

/* From `least` to `most`, each looked at on its own. */
#define any_of(least, most) Frama_C_interval_split((least), (most))

/* Nothing is known of these bytes but that they are written. */
void make_any(void *bytes, size_t count);

/*
 * Any parameters, sound or not, but for NaN: Eva does not see that a comparison which holds excludes it. That it is
 * refused is tested in test_params.c.
 */
extern int params_case; /* 0 for any fraction but infinity, 1 for the fraction 1, 2 for no filter */
kvca_params any_params(void);

#endif
