/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel for processors with the vectors of lanes_avx2.h. */
#include "vector/view.h"

#if defined(__x86_64__)

#include "vector/lanes_avx2.h"
/* kernel.h is written in it, so it comes after it. */
#include "vector/kernel.h"

KVCA_DEFINE_KERNEL(kvca_avx2, "avx2");

#endif
