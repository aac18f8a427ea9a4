/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variant of the rule runs: the fastest that the processor has, or what the environment variable KVCA_VARIANT
 * names. It is chosen when the library is loaded, so that no selection need ask, and by threads that do not exist yet.
 */
#include "vector/variant.h"

#include <stdlib.h>
#include <string.h>

const struct kvca_variant *kvca_variant_in_use = &kvca_plain;

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

/* Takes the variant if it is the one wanted, or any is. */
static void offer(const struct kvca_variant *variant, const char *wanted)
{
    if (!wanted || strcmp(wanted, variant->name) == 0) {
        kvca_variant_in_use = variant;
    }
}

/* From the slowest to the fastest, those that this processor has: the last one offered stays. */
__attribute__((constructor)) static void choose_variant(void)
{
    const char *wanted = getenv("KVCA_VARIANT");
    offer(&kvca_plain, wanted);
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (has_avx2()) {
        offer(&kvca_avx2, wanted);
    }
    if (has_avx512()) {
        offer(&kvca_avx512, wanted);
    }
#elif defined(__aarch64__)
    offer(&kvca_neon, wanted);
#endif
}

const char *kvca_variant(void)
{
    return kvca_variant_in_use->name;
}
