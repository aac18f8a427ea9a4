/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay is run with. */
#ifndef KVCA_REPLAY_OPTIONS_H
#define KVCA_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The pool of ranks that a trace is replayed on, and how requests get there. */
struct replay_options {
    size_t ranks;
    const uint64_t *capacities; /* C: KV blocks of each rank */
    uint64_t block_size;        /* B: tokens in a block */
    uint64_t max_num_seqs;      /* the most sequences that run on a rank at once */
    double watermark;           /* the share of C that admission leaves free where something runs */
    double batch_ms;            /* added to a pass for each running sequence */
    double speed;               /* the trace's times are divided by it */
    bool track_output_blocks;   /* bookings grow with the output */
    bool independent;           /* every rank has a clock of its own */
    bool hold;                  /* requests wait at the router rather than take the fallback */
};

/* Blocks that hold this many tokens. */
static inline uint64_t replay_blocks(const struct replay_options *options, uint64_t tokens)
{
    return tokens / options->block_size + (tokens % options->block_size != 0);
}

#endif
