/* SPDX-License-Identifier: Apache-2.0 */
#include "variant.h"

#if defined(__aarch64__)

/* In this order: each needs the one before it. */
#include "lanes_neon.h"
#include "rule.h"
#include "scan.h"
#include "pick.h"

KVCA_DEFINE_VARIANT(kvca_neon, "neon");

#endif
