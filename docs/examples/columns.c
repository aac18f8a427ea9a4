/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A router that keeps D and N itself and asks kvca for the pick. It loads the policy once, then gives every request a
 * rank. Three ranks fill up until none has room. Then a request ends, and a request that was held is tried again.
 *
 *     columns POLICY
 *
 * It has one thread. With several threads, hold a lock from kvca_select() until the request is booked, or two requests
 * may get the same room. The pool in pool_threads.c picks and books in one step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <kvca/config.h>
#include <kvca/kvca.h>

#define RANKS 3
#define BLOCK_TOKENS 16

/* What the router knows about its ranks, in columns. */
struct ranks {
    uint64_t worker_id[RANKS];
    uint32_t dp_rank[RANKS];
    uint64_t booked_blocks[RANKS];
    uint64_t active_requests[RANKS];
    uint64_t capacity[RANKS]; /* total_kv_blocks as the worker reports it */
};

static void log_unknown_capacity(void *user, const kvca_warning *warning)
{
    (void)user;
    fprintf(stderr, "worker %" PRIu64 ", dp_rank %" PRIu32 ": no known capacity, so it is never found full\n",
            warning->worker_id, warning->dp_rank);
}

/* Start-up. A faulty policy file must stop the router: do not replace it with defaults. */
static kvca_status load_policy(const char *path, kvca_policy **policy)
{
    kvca_params params = {.size = sizeof params};
    kvca_error error = {.size = sizeof error};
    kvca_status status = kvca_config_load_file(path, KVCA_ROLE_DECODE, &params, &error);
    if (status != KVCA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return status;
    }
    status = kvca_policy_new(&params, policy);
    if (status != KVCA_OK) {
        fprintf(stderr, "%s\n", kvca_strerror(status));
        return status;
    }
    kvca_policy_set_warning(*policy, log_unknown_capacity, NULL);
    kvca_policy_set_seed(*policy, 1); /* for output that can be compared; leave it out in a router */
    return KVCA_OK;
}

/* A request that is larger than every rank would wait for ever. (Multiply by capacity_fraction if it is below 1.) */
static bool can_ever_fit(const struct ranks *ranks, uint64_t blocks)
{
    for (size_t row = 0; row < RANKS; row++) {
        if (blocks <= ranks->capacity[row]) {
            return true;
        }
    }
    return false;
}

enum answer { SENT, HELD, REJECTED };

/* The request path. */
static enum answer route(kvca_policy *policy, struct ranks *ranks, uint64_t prompt_tokens)
{
    uint64_t blocks = (prompt_tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    kvca_ranks candidates = {
        .size = sizeof candidates,
        .count = RANKS,
        .worker_id = ranks->worker_id,
        .dp_rank = ranks->dp_rank,
        .decode_cost_blocks = ranks->booked_blocks,
        .active_requests = ranks->active_requests,
        .total_kv_blocks = ranks->capacity,
        .request_blocks = blocks,
    };
    kvca_selection selection = {.size = sizeof selection};
    printf("%4" PRIu64 " blocks: ", blocks);
    if (!can_ever_fit(ranks, blocks)) {
        printf("rejected, larger than any rank\n");
        return REJECTED;
    }
    kvca_status status = kvca_select(policy, &candidates, &selection);
    if (status != KVCA_OK) {
        printf("rejected, %s\n", kvca_strerror(status));
        return REJECTED;
    }
    if (selection.outcome == KVCA_FALLBACK) {
        printf("no rank has room, held at the router\n");
        return HELD;
    }
    size_t row = selection.row;
    ranks->booked_blocks[row] += blocks;
    ranks->active_requests[row] += 1;
    printf("worker %" PRIu64 ", dp_rank %" PRIu32 " (now %" PRIu64 " of %" PRIu64 " blocks)\n", ranks->worker_id[row],
           ranks->dp_rank[row], ranks->booked_blocks[row], ranks->capacity[row]);
    return SENT;
}

/* A request has ended: removes its booking. */
static void release(struct ranks *ranks, size_t row, uint64_t blocks)
{
    ranks->booked_blocks[row] -= blocks;
    ranks->active_requests[row] -= 1;
    printf("a request of %" PRIu64 " blocks ends on worker %" PRIu64 ", dp_rank %" PRIu32 "\n", blocks,
           ranks->worker_id[row], ranks->dp_rank[row]);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s POLICY\n", argv[0]);
        return 2;
    }
    kvca_policy *policy;
    kvca_status status = load_policy(argv[1], &policy);
    if (status == KVCA_NOT_SELECTED) {
        printf("going on with the router's own selector\n"); /* if it has one */
        return 0;
    }
    if (status != KVCA_OK) {
        return 1;
    }
    struct ranks ranks = {
        .worker_id = {7, 7, 8},
        .dp_rank = {0, 1, 0},
        .capacity = {1000, 1000, 500},
    };
    static const uint64_t prompt_tokens[] = {4800, 6400, 3200, 6400, 4800, 1600, 3200, 17000, 6400};
    uint64_t held = 0;
    for (size_t i = 0; i < sizeof prompt_tokens / sizeof prompt_tokens[0]; i++) {
        if (route(policy, &ranks, prompt_tokens[i]) == HELD) {
            held = prompt_tokens[i];
        }
    }
    release(&ranks, 1, 400);
    route(policy, &ranks, held);
    kvca_policy_free(policy);
    return 0;
}
