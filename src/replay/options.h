/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a replay. */
#ifndef KVCA_REPLAY_OPTIONS_H
#define KVCA_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay_options {
    size_t ranks;
    const uint64_t *capacities; /* C: KV blocks of each rank */
    uint64_t block_size;        /* B: tokens in a block */
    uint64_t max_num_seqs;      /* the most sequences that run on a rank at once */
    double watermark;           /* share of C left free when a rank admits beside others */
    double batch_ms;            /* that each running sequence adds to a pass */
    double speed;               /* the trace's times are divided by it */
    bool track_output_blocks;   /* bookings grow with the output */
    bool independent;           /* each rank has its own clock */
    bool hold;                  /* a request that fits nowhere waits at the router */
};

/* The blocks for this many tokens. */
static inline uint64_t replay_blocks(const struct replay_options *options, uint64_t tokens)
{
    return tokens / options->block_size + (tokens % options->block_size != 0);
}

#endif
