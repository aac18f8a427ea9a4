/* SPDX-License-Identifier: Apache-2.0 */
/* The router of a replay. It has a kvca_pool with a booking for each request in flight. */
#ifndef KVCA_REPLAY_ROUTER_H
#define KVCA_REPLAY_ROUTER_H

#include <kvca/pool.h>

#include "replay/options.h"
#include "replay/policy.h"
#include "replay/trace.h"

struct replay_router {
    const struct replay_options *options;
    const struct replay_trace *trace;
    const struct replay_policy *policy;
    kvca_pool *pool;
    kvca_owner owner;
    kvca_booking *bookings; /* by request */
    uint64_t *eligible;     /* a bitmap of slots, for policies other than REPLAY_KVCA */
    void *buffer;           /* for snapshots */
    size_t buffer_bytes;
    _Atomic uint64_t generator; /* for the same policies; the pool has its own generator */
    uint64_t routed;
    uint64_t in_flight;
    uint64_t over_capacity;
    uint64_t over_capacity_avoidable;
    uint64_t fallbacks;
};

/* The pointers are borrowed until replay_router_free(). */
void replay_router_init(struct replay_router *router, const struct replay_options *options,
                        const struct replay_trace *trace, const struct replay_policy *policy, uint64_t seed);

void replay_router_free(struct replay_router *router);

/* Picks a rank for a request and books it there. Returns false if the request is held. */
bool replay_router_route(struct replay_router *router, size_t request, size_t *rank);

/* A token of the request has opened a block. */
void replay_router_grow(struct replay_router *router, size_t request);

/* The request has ended. */
void replay_router_release(struct replay_router *router, size_t request);

/* All booked blocks: 0 when all requests have ended. */
uint64_t replay_router_booked_blocks(struct replay_router *router);

#endif
