/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/router.h"

#include <stdlib.h>
#include <string.h>

#include "program/fail.h"

/* The pool is large enough and used as documented. So any failure except lack of memory is a bug. */
static void must(kvca_status status)
{
    program_must("kvca replay", status);
}

void replay_router_init(struct replay_router *router, const struct replay_options *options,
                        const struct replay_trace *trace, const struct replay_policy *policy, uint64_t seed)
{
    *router = (struct replay_router){.options = options, .trace = trace, .policy = policy};
    must(kvca_pool_new((uint32_t)options->ranks, 1, &policy->params, &router->pool));
    must(kvca_pool_set_seed(router->pool, seed));
    must(kvca_pool_owner_claim(router->pool, 0, &router->owner));
    for (size_t rank = 0; rank < options->ranks; rank++) {
        kvca_rank put = {.size = sizeof put, .dp_rank = (uint32_t)rank, .total_kv_blocks = options->capacities[rank]};
        must(kvca_pool_put(router->pool, &put,
                           NULL)); /* slots are given in order, so slot and rank are the same number */
    }
    atomic_init(&router->generator, seed);
    router->bookings = program_resize(NULL, trace->count * sizeof *router->bookings);
    router->eligible = program_resize(NULL, (options->ranks + 63) / 64 * sizeof *router->eligible);
    router->buffer_bytes = kvca_pool_snapshot_bytes(router->pool);
    router->buffer = program_resize(NULL, router->buffer_bytes);
}

void replay_router_free(struct replay_router *router)
{
    kvca_pool_free(router->pool);
    free(router->bookings);
    free(router->eligible);
    free(router->buffer);
}

static const kvca_ranks *look(struct replay_router *router)
{
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    must(kvca_pool_snapshot(router->pool, router->buffer, router->buffer_bytes, &snapshot));
    return snapshot.ranks;
}

/* Restricts a request to the rank that replay_policy_pick() picks. */
static void pick_outside(struct replay_router *router, kvca_request *placing)
{
    const kvca_ranks *ranks = look(router);
    size_t rank =
        replay_policy_pick(router->policy, ranks->active_requests, ranks->count, router->routed, &router->generator);
    memset(router->eligible, 0, (ranks->count + 63) / 64 * sizeof *router->eligible);
    router->eligible[rank / 64] = UINT64_C(1) << (rank % 64);
    placing->eligible = router->eligible;
}

/* Counts a booking past the capacity of a rank. It was avoidable if the request fitted on another rank. */
static void count_over_capacity(struct replay_router *router, size_t chosen, uint64_t blocks)
{
    const kvca_ranks *ranks = look(router);
    if (ranks->decode_cost_blocks[chosen] <= router->options->capacities[chosen]) {
        return;
    }
    bool avoidable = false;
    for (size_t rank = 0; rank < ranks->count; rank++) {
        uint64_t with_request = ranks->decode_cost_blocks[rank] + blocks;
        avoidable = avoidable || (rank != chosen && with_request <= router->options->capacities[rank]);
    }
    router->over_capacity++;
    router->over_capacity_avoidable += avoidable;
}

bool replay_router_route(struct replay_router *router, size_t request, size_t *rank)
{
    uint64_t blocks = replay_blocks(router->options, router->trace->requests[request].prompt_tokens);
    kvca_request placing = {.size = sizeof placing, .blocks = blocks};
    kvca_selection selection = {.size = sizeof selection};
    if (router->policy->kind == REPLAY_KVCA) {
        placing.only_if_fits = router->options->hold && router->in_flight > 0;
    } else {
        pick_outside(router, &placing);
    }
    kvca_status status =
        kvca_pool_place(router->pool, router->owner, &placing, &router->bookings[request], &selection);
    if (status == KVCA_NONE_FITS || status == KVCA_NEVER_FITS) {
        return false;
    }
    must(status);
    bool restricted = placing.eligible != NULL;
    router->fallbacks += selection.outcome != KVCA_FIT && !restricted;
    router->routed++;
    router->in_flight++;
    count_over_capacity(router, selection.row, blocks);
    *rank = selection.row;
    return true;
}

void replay_router_grow(struct replay_router *router, size_t request)
{
    must(kvca_pool_grow(router->pool, &router->bookings[request], 1));
}

void replay_router_release(struct replay_router *router, size_t request)
{
    must(kvca_pool_release(router->pool, &router->bookings[request]));
    router->in_flight--;
}

uint64_t replay_router_booked_blocks(struct replay_router *router)
{
    const kvca_ranks *ranks = look(router);
    uint64_t blocks = 0;
    for (size_t rank = 0; rank < ranks->count; rank++) {
        blocks += ranks->decode_cost_blocks[rank] + ranks->active_requests[rank];
    }
    return blocks;
}
