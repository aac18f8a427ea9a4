/* SPDX-License-Identifier: Apache-2.0 */
#include "variant.h"

#if defined(__x86_64__)

/* In this order: each needs the one before it. */
#include "lanes_avx2.h"
#include "rule.h"
#include "scan.h"
#include "pick.h"

KVCA_DEFINE_VARIANT(kvca_avx2, "avx2");

#endif
