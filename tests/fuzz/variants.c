/* SPDX-License-Identifier: Apache-2.0 */
#include "variants.h"

#include "vector/vector.h"

#define MOST 3

static const struct kvca_kernel *variants[MOST];
static size_t count;

static void find(void)
{
    variants[count++] = kvca_kernel_in_use;
#if defined(__x86_64__)
    if (kvca_kernel_in_use == &kvca_avx512) { /* a processor with AVX-512 has AVX2, too */
        variants[count++] = &kvca_avx2;
    }
#endif
    if (kvca_kernel_in_use != &kvca_no_kernel) {
        variants[count++] = &kvca_no_kernel;
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
    kvca_kernel_in_use = variants[index % variants_count()];
}
