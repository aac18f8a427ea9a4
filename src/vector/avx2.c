/* SPDX-License-Identifier: Apache-2.0 */
#include "vector/variant.h"

#if defined(__x86_64__)

/* In this order: each needs the one before it. */
#include "vector/lanes_avx2.h"
#include "vector/rule.h"
#include "vector/scan.h"
#include "vector/pick.h"

KVCA_DEFINE_VARIANT(kvca_avx2, "avx2");

#endif
