/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens on the ranks: a queue, continuous batching, paged KV blocks, preemption. There are two engines of this,
 * which give the same to the last bit. ranks_plain.c does to each sequence what docs/replay.md says, one after the
 * other; ranks_fast.c touches only the sequences to which something happens. Time, routing and bookings are the run's
 * (run.c), which is told what happens through a listener.
 */
#ifndef KVCA_REPLAY_RANKS_H
#define KVCA_REPLAY_RANKS_H

#include "replay/options.h"
#include "replay/trace.h"

/* Told of each sequence to which something happens, by its index in the trace. */
struct replay_listener {
    void *user;
    void (*admitted)(void *user, size_t request, uint64_t context, bool again); /* again: after a preemption */
    void (*opened)(void *user, size_t request);                                 /* a token opened a block */
    void (*preempted)(void *user, size_t request);
    void (*finished)(void *user, size_t request);
};

/* What is on a rank. */
struct replay_load {
    uint64_t queued;
    uint64_t running;
    uint64_t context_tokens; /* of the running sequences */
    uint64_t used_blocks;
};

struct replay_ranks;

struct replay_engine {
    const char *name;
    /* Makes idle ranks for a trace. Both arguments and the listener must stay. */
    struct replay_ranks *(*make)(const struct replay_options *options, const struct replay_trace *trace,
                                 const struct replay_listener *listener);
    void (*free)(struct replay_ranks *ranks);
    /* Puts a request that the rank can hold at the end of its queue. */
    void (*enqueue)(struct replay_ranks *ranks, size_t rank, size_t request);
    /* Admits what the rules let in, from the head of the queue. */
    void (*admit)(struct replay_ranks *ranks, size_t rank);
    /* Lets each running sequence emit a token, oldest admission first, and then frees what has finished. */
    void (*emit)(struct replay_ranks *ranks, size_t rank);
    struct replay_load (*load)(const struct replay_ranks *ranks, size_t rank);
};

extern const struct replay_engine replay_plain_engine;
extern const struct replay_engine replay_fast_engine;

/* Whether a sequence with this context may be admitted to a rank of capacity C. */
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
