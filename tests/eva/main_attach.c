/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of any bytes. Whatever it holds, nothing past its end is read, and what is accepted as a pool fits into it.
 *
 * eva: -eva-auto-loop-unroll 32 -eva-alloc-builtin fresh -eva-domains equality,symbolic-locations
 */
#include <stdlib.h>

#include <kvca/pool.h>

#include "any.h"
#include "pool/ledger.h"

/* Around the size of a head, and of pools with 1 rank and 1 owner and with 64 and 8. */
static const size_t sizes[] = {1, 8, 399, 400, 401, 2111, 2112, 13568, 16384};

int main(void)
{
    const size_t bytes = sizes[any_of(0, sizeof sizes / sizeof *sizes - 1)];
    void *block = malloc(bytes);
    kvca_pool *pool = NULL;
    if (!block) {
        return 1;
    }
    make_any(block, bytes);
    kvca_status status = kvca_pool_attach(any_bool() ? block : NULL, bytes, any_bool() ? &pool : NULL);
    //@ assert small: bytes < sizeof(struct kvca_pool) ==> status != 0;
    if (status == KVCA_OK) {
        //@ assert fits: pool->bytes <= bytes;
        //@ assert ranks: pool->max_ranks <= 1048576;
        kvca_pool_max_ranks(pool);
        kvca_pool_max_owners(pool);
        kvca_pool_snapshot_bytes(pool);
    }
    kvca_pool_bytes(any_half_word(), any_half_word());
    kvca_blocks_for_tokens(any_word(), any_word());
    free(block);
    return 0;
}
