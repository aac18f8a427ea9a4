/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of the ranks: queues, continuous batching, paged KV blocks, preemption. docs/replay.md has its rules. Two
 * engines give the same results to the last bit. ranks_plain.c steps through every sequence in every pass. ranks_fast.c
 * touches a sequence only when something happens to it. Time, routing and bookings are in run.c, which listens.
 */
#ifndef KVCA_REPLAY_RANKS_H
#define KVCA_REPLAY_RANKS_H

#include "replay/options.h"
#include "replay/trace.h"

/* Is called when something happens to a sequence. `request` is its index in the trace. */
struct replay_listener {
    void *user;
    void (*admitted)(void *user, size_t request, uint64_t context, bool again); /* again: after a preemption */
    void (*opened)(void *user, size_t request);                                 /* a token opened a block */
    void (*preempted)(void *user, size_t request);
    void (*finished)(void *user, size_t request);
};

struct replay_load {
    uint64_t queued;
    uint64_t running;
    uint64_t context_tokens; /* of the running sequences */
    uint64_t used_blocks;
};

struct replay_ranks;

struct replay_engine {
    const char *name;
    /* Makes idle ranks for a trace. All three arguments must outlive them. */
    struct replay_ranks *(*make)(const struct replay_options *options, const struct replay_trace *trace,
                                 const struct replay_listener *listener);
    void (*free)(struct replay_ranks *ranks);
    /* Appends a request to the queue of a rank, which must be able to hold it. */
    void (*enqueue)(struct replay_ranks *ranks, size_t rank, size_t request);
    /* Admits requests from the head of the queue, as the rules allow. */
    void (*admit)(struct replay_ranks *ranks, size_t rank);
    /* Lets each running sequence emit a token, oldest admission first. Then frees those that have finished. */
    void (*emit)(struct replay_ranks *ranks, size_t rank);
    struct replay_load (*load)(const struct replay_ranks *ranks, size_t rank);
};

extern const struct replay_engine replay_plain_engine;
extern const struct replay_engine replay_fast_engine;

/* Whether a rank may admit a sequence with this context. */
static inline bool replay_may_admit(const struct replay_options *options, uint64_t capacity,
                                    const struct replay_load *load, uint64_t context)
{
    uint64_t free_blocks = capacity - load->used_blocks;
    uint64_t needed = replay_blocks(options, context + 1);
    if (load->running >= options->max_num_seqs || needed > free_blocks) {
        return false;
    }
    uint64_t left = free_blocks - replay_blocks(options, context);
    return load->running == 0 || (double)left >= options->watermark * (double)capacity;
}

#endif
