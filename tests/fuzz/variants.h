/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of the rule, all of which an input is to be tried with: the library itself uses one in a process. */
#ifndef KVCA_FUZZ_VARIANTS_H
#define KVCA_FUZZ_VARIANTS_H

#include <stddef.h>

/* How many there are, of those that this processor has (and KVCA_VARIANT, if it is set, leaves). */
size_t variants_count(void);

/* From now on the library uses variant `index`, from 0: the fastest, which is the one that it had chosen. */
void variants_use(size_t index);

#endif
