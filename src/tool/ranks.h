/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks files: snapshots of the candidate ranks in YAML or JSON. */
#ifndef KVCA_TOOL_RANKS_H
#define KVCA_TOOL_RANKS_H

#include <kvca/config.h>

#define RANKS_MAX_BYTES ((size_t)16 << 20)

/* A snapshot and the memory of its columns. */
struct ranks_file {
    kvca_ranks ranks;
    uint64_t *worker_id;
    uint32_t *dp_rank;
    uint64_t *decode_cost_blocks;
    uint64_t *active_requests;
    uint64_t *total_kv_blocks;
    double *preferred_taint_multiplier;
};

/* Reads the ranks file that an argument names. Free `file` after KVCA_OK. */
kvca_status ranks_file_load(const char *argument, struct ranks_file *file, kvca_error *error);

/* The same for a text of `size` bytes. Messages call it `name`. */
kvca_status ranks_file_read(const char *text, size_t size, const char *name, struct ranks_file *file,
                            kvca_error *error);

void ranks_file_free(struct ranks_file *file);

#endif
