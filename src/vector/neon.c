/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel for processors with the vectors of lanes_neon.h. */
#include "vector/view.h"

#if defined(__aarch64__)

#include "vector/lanes_neon.h"
/* kernel.h is written in it, so it comes after it. */
#include "vector/kernel.h"

KVCA_DEFINE_KERNEL(kvca_neon, "neon");

#endif
