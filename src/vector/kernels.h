/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that this build has. NAME.c defines one by including lanes_NAME.h and kernel.h. */
#ifndef KVCA_KERNELS_H
#define KVCA_KERNELS_H

#include "vector/vector.h"

/* Each function as in vector.h, and declines by returning false: then nothing was written and nothing drawn. */
struct kvca_kernel {
    const char *name;
    bool (*select)(const struct kvca_view *view, _Atomic uint64_t *generator, kvca_selection *selection);
    bool (*select_ready)(const struct kvca_ready *ready, size_t count, uint64_t request_blocks,
                         const uint64_t *eligible, _Atomic uint64_t *generator, kvca_selection *selection);
};

/* No kernel: it declines everything, and the plain rule does all. */
extern const struct kvca_kernel kvca_no_kernel;
#if defined(__x86_64__)
extern const struct kvca_kernel kvca_avx2;
extern const struct kvca_kernel kvca_avx512;
#elif defined(__aarch64__)
extern const struct kvca_kernel kvca_neon;
#endif

/* The one in use: set once, before main(). */
extern const struct kvca_kernel *kvca_kernel_in_use;

#endif
