/* SPDX-License-Identifier: Apache-2.0 */
#include "variants.h"

#include "vector/variant.h"

#define MOST 3

static const struct kvca_variant *variants[MOST];
static size_t count;

static void find(void)
{
    variants[count++] = kvca_variant_in_use;
#if defined(__x86_64__)
    if (kvca_variant_in_use == &kvca_avx512) { /* a processor with AVX-512 has AVX2, too */
        variants[count++] = &kvca_avx2;
    }
#endif
    if (kvca_variant_in_use != &kvca_plain) {
        variants[count++] = &kvca_plain;
    }
}

size_t variants_count(void)
{
    if (count == 0) {
        find();
    }
    return count;
}

void variants_use(size_t index)
{
    kvca_variant_in_use = variants[index % variants_count()];
}
