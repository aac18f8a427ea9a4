/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: one trace, one pool of ranks, one policy, one seed.
 *
 * This folder is for the model of a decode pool: traces, the ranks that serve them, the router in front, and the
 * figures that result. It places requests by the library's own pool, as a host does. It prints nothing, except a
 * message when memory runs out. Options and reports belong to the command.
 */
#ifndef KVCA_REPLAY_RUN_H
#define KVCA_REPLAY_RUN_H

#include "replay/policy.h"
#include "replay/ranks.h"

enum replay_end {
    REPLAY_UNFINISHED,
    REPLAY_COMPLETED,
    REPLAY_DROPPED, /* no rank could ever hold it, or it has no output */
    REPLAY_STUCK,   /* routed to a rank that can never hold it */
};

struct replay_outcome {
    enum replay_end end;
    double admitted_s; /* the first time */
    double finished_s;
};

/* The results of a run. */
struct replay_run {
    struct replay_outcome *outcomes; /* by request */
    uint64_t over_capacity;
    uint64_t over_capacity_avoidable;
    uint64_t fallbacks;
    uint64_t preemptions;
    uint64_t recomputed_tokens;
    uint64_t passes;
    double kv_imbalance; /* means over passes */
    double batch_imbalance;
    double used_block_seconds; /* blocks in use, summed over ranks and time */
    uint64_t left_blocks;      /* booked or in use at the end: 0 */
};

/* The time in a run at which a request arrives. */
static inline double replay_arrival_s(const struct replay_options *options, const struct replay_request *request)
{
    return request->arrival_s / options->speed;
}

/* Free `run` afterwards. */
void replay_run(const struct replay_engine *engine, const struct replay_options *options,
                const struct replay_trace *trace, const struct replay_policy *policy, uint64_t seed,
                struct replay_run *run);

void replay_run_free(struct replay_run *run);

#endif
