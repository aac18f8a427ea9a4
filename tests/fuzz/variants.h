/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of the rule. Each input is tried with all of them; the library itself uses only one in a process. */
#ifndef KVCA_FUZZ_VARIANTS_H
#define KVCA_FUZZ_VARIANTS_H

#include <stddef.h>

/* How many there are on this processor (and, if KVCA_VARIANT is set, up to that one). */
size_t variants_count(void);

/* From now on the library uses variant `index`. 0 is the fastest, which the library had chosen. */
void variants_use(size_t index);

#endif
