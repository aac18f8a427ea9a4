/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A router's loop. It loads the policy, places a hundred requests on three ranks, prints where they went, and explains
 * the first pick. The same program is here in C++, Python, Rust and Go.
 *
 *     cc -std=c11 router.c -o router $(pkg-config --cflags --libs kvca) && ./router policy.yaml
 *
 * It has one thread. With several threads, hold a lock around the calls that take the pool: see pool_threads.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kvca/config.h>
#include <kvca/pool.h>

#define RANKS 3
#define REQUESTS 100
#define LISTED 10
#define MOST_IN_FLIGHT 16

struct router {
    kvca_pool *pool;
    kvca_owner owner;                       /* one process, one owner */
    kvca_rank ranks[RANKS];                 /* by slot, like the next two */
    uint64_t requests[RANKS];               /* how many each rank got */
    uint64_t blocks[RANKS];                 /* the sum of their blocks */
    kvca_booking in_flight[MOST_IN_FLIGHT]; /* a ring, from request `ended` to request `placed` */
    uint64_t placed;
    uint64_t ended;
    uint64_t waits;
};

/* Made-up traffic: every tenth prompt is a long one. */
static uint64_t request_blocks(uint64_t number)
{
    return number % 10 == 0 ? 600 : 40 + number * 37 % 100;
}

static kvca_status add_rank(struct router *router, const kvca_rank *rank)
{
    kvca_put put = {.size = sizeof put};
    kvca_status status = kvca_pool_put(router->pool, rank, &put);
    if (status != KVCA_OK) {
        return status;
    }
    if (put.unknown_capacity) {
        fprintf(stderr, "worker %" PRIu64 ", dp_rank %" PRIu32 ": no known capacity, so it is never found full\n",
                rank->worker_id, rank->dp_rank);
    }
    router->ranks[put.slot] = *rank;
    return KVCA_OK;
}

/* The caller frees the pool with kvca_pool_free(), also when this fails. */
static kvca_status start(struct router *router, const kvca_params *params)
{
    static const kvca_rank ranks[RANKS] = {
        {.size = sizeof(kvca_rank), .worker_id = 7, .dp_rank = 0, .total_kv_blocks = 1000},
        {.size = sizeof(kvca_rank), .worker_id = 7, .dp_rank = 1, .total_kv_blocks = 1000},
        {.size = sizeof(kvca_rank), .worker_id = 8, .dp_rank = 0, .total_kv_blocks = 500},
    };
    kvca_status status = kvca_pool_new(RANKS, 1, params, &router->pool);
    if (status == KVCA_OK) {
        status = kvca_pool_owner_claim(router->pool, 0, &router->owner);
    }
    if (status == KVCA_OK) {
        status = kvca_pool_set_seed(router->pool, 1); /* for output that can be compared; leave it out in a router */
    }
    for (size_t i = 0; i < RANKS && status == KVCA_OK; i++) {
        status = add_rank(router, &ranks[i]);
    }
    return status;
}

static kvca_status end_oldest(struct router *router)
{
    kvca_status status = kvca_pool_release(router->pool, &router->in_flight[router->ended % MOST_IN_FLIGHT]);
    router->ended++;
    return status == KVCA_STALE ? KVCA_OK : status; /* stale: the booking went when its rank was dropped */
}

/* Waits for requests to end while no rank has room. If none is left to wait for, the request is too large. */
static kvca_status place(struct router *router, uint64_t blocks, kvca_selection *selection)
{
    const kvca_request request = {.size = sizeof request, .blocks = blocks, .only_if_fits = true};
    kvca_booking booking;
    kvca_status status = kvca_pool_place(router->pool, router->owner, &request, &booking, selection);
    while (status == KVCA_NONE_FITS && router->ended < router->placed) {
        router->waits++;
        status = end_oldest(router);
        if (status == KVCA_OK) {
            status = kvca_pool_place(router->pool, router->owner, &request, &booking, selection);
        }
    }
    if (status == KVCA_OK) {
        router->in_flight[router->placed++ % MOST_IN_FLIGHT] = booking;
        router->requests[selection->row]++;
        router->blocks[selection->row] += blocks;
    }
    return status;
}

static const char *verdict(const kvca_explanation *row, bool picked)
{
    static const char *const verdicts[] = {
        [KVCA_REASON_TIED] = "as good as the pick",    [KVCA_REASON_DOES_NOT_FIT] = "does not fit",
        [KVCA_REASON_MORE_REQUESTS] = "more requests", [KVCA_REASON_HIGHER_COST] = "higher cost",
        [KVCA_REASON_MORE_BLOCKS] = "more blocks",
    };
    return picked ? "picked" : verdicts[row->reason];
}

static kvca_status explain_rows(const kvca_policy *policy, const kvca_ranks *ranks, const kvca_selection *selection)
{
    printf("%zu of %zu ranks have room for the first request, %zu are equally good:\n", selection->fits, ranks->count,
           selection->ties);
    for (size_t row = 0; row < ranks->count; row++) {
        kvca_explanation told = {.size = sizeof told};
        kvca_status status = kvca_explain(kvca_policy_params(policy), ranks, selection, row, &told);
        if (status != KVCA_OK) {
            return status;
        }
        printf("  worker %" PRIu64 ", dp_rank %" PRIu32 ": %" PRIu64 " of %" PRIu64 " blocks, %" PRIu64
               " requests: %s\n",
               ranks->worker_id[row], ranks->dp_rank[row], told.decode_cost_blocks, told.limit, told.active_requests,
               verdict(&told, row == selection->row));
    }
    return KVCA_OK;
}

/* Explains `selection`, whose row is a slot, from the ranks as they were before it. */
static kvca_status explain(const kvca_snapshot *before, uint64_t blocks, kvca_selection selection)
{
    const kvca_ranks ranks = {
        .size = sizeof ranks,
        .count = before->ranks->count,
        .worker_id = before->ranks->worker_id,
        .dp_rank = before->ranks->dp_rank,
        .decode_cost_blocks = before->ranks->decode_cost_blocks,
        .active_requests = before->ranks->active_requests,
        .total_kv_blocks = before->ranks->total_kv_blocks,
        .request_blocks = blocks,
    };
    size_t row = 0;
    while (before->slot[row] != selection.row) {
        row++;
    }
    selection.row = row;
    kvca_policy *policy;
    kvca_status status = kvca_policy_new(before->params, &policy);
    if (status == KVCA_OK) {
        status = explain_rows(policy, &ranks, &selection);
        kvca_policy_free(policy);
    }
    return status;
}

/* Places the first request. With several threads, hold the lock from the snapshot to the booking, and no longer. */
static kvca_status place_explained(struct router *router, uint64_t blocks, kvca_selection *selection)
{
    size_t bytes = kvca_pool_snapshot_bytes(router->pool);
    void *buffer = malloc(bytes);
    if (!buffer) {
        return KVCA_ERR_NO_MEMORY;
    }
    kvca_snapshot before = {.size = sizeof before};
    kvca_status status = kvca_pool_snapshot(router->pool, buffer, bytes, &before);
    if (status == KVCA_OK) {
        status = place(router, blocks, selection);
    }
    if (status == KVCA_OK) {
        status = explain(&before, blocks, *selection);
    }
    free(buffer);
    return status;
}

static kvca_status serve(struct router *router)
{
    for (uint64_t number = 0; number < REQUESTS; number++) {
        uint64_t blocks = request_blocks(number);
        kvca_selection selection = {.size = sizeof selection};
        kvca_status status = KVCA_OK;
        if (router->placed - router->ended == MOST_IN_FLIGHT) {
            status = end_oldest(router);
        }
        if (status == KVCA_OK) {
            status = number == 0 ? place_explained(router, blocks, &selection) : place(router, blocks, &selection);
        }
        if (status != KVCA_OK) {
            return status;
        }
        if (number < LISTED) {
            const kvca_rank *rank = &router->ranks[selection.row];
            printf("request %" PRIu64 ", %" PRIu64 " blocks: worker %" PRIu64 ", dp_rank %" PRIu32 "\n", number,
                   blocks, rank->worker_id, rank->dp_rank);
        }
    }
    return KVCA_OK;
}

static kvca_status end_all(struct router *router)
{
    kvca_status status = KVCA_OK;
    while (status == KVCA_OK && router->ended < router->placed) {
        status = end_oldest(router);
    }
    return status;
}

static void report(const struct router *router)
{
    printf("%" PRIu64 " requests placed, %" PRIu64 " waits for room\n", router->placed, router->waits);
    for (size_t slot = 0; slot < RANKS; slot++) {
        printf("  worker %" PRIu64 ", dp_rank %" PRIu32 ": %" PRIu64 " requests, %" PRIu64 " blocks\n",
               router->ranks[slot].worker_id, router->ranks[slot].dp_rank, router->requests[slot],
               router->blocks[slot]);
    }
}

static kvca_status run(struct router *router, const kvca_params *params)
{
    kvca_status status = start(router, params);
    if (status == KVCA_OK) {
        status = serve(router);
    }
    if (status == KVCA_OK) {
        status = end_all(router);
    }
    if (status == KVCA_OK) {
        report(router);
    } else {
        fprintf(stderr, "%s\n", kvca_strerror(status));
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: router POLICY\n");
        return 2;
    }
    kvca_params params = {.size = sizeof params};
    kvca_error error = {.size = sizeof error};
    kvca_status status = kvca_config_load_file(argv[1], KVCA_ROLE_DECODE, &params, &error);
    if (status != KVCA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return status == KVCA_NOT_SELECTED ? 0 : 1; /* the policy leaves the pool to the router's own selector */
    }
    struct router router = {0};
    status = run(&router, &params);
    kvca_pool_free(router.pool);
    return status == KVCA_OK ? 0 : 1;
}
