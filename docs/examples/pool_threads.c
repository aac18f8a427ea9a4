/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pool, many threads. The host locks a mutex around every call. Each thread sends requests as fast as it can, so
 * two often arrive together. No request is booked on a rank without room while another rank has room.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <kvca/pool.h>

#define RANKS 4
#define THREADS 4
#define REQUESTS 10000 /* of each thread */
#define HELD_AT_ONCE 8 /* by each thread */
#define BLOCK_TOKENS 16

struct router {
    pthread_mutex_t mutex;
    kvca_pool *pool;
    kvca_owner owner; /* one process, one owner */
};

/* Gives the request a rank. Only the call on the pool is made under the mutex. */
static bool send_request(struct router *router, uint64_t prompt_tokens, kvca_booking *booking)
{
    kvca_request request = {
        .size = sizeof request, .blocks = kvca_blocks_for_tokens(prompt_tokens, BLOCK_TOKENS), .only_if_fits = true};
    pthread_mutex_lock(&router->mutex);
    kvca_status status = kvca_pool_place(router->pool, router->owner, &request, booking, NULL);
    pthread_mutex_unlock(&router->mutex);
    if (status != KVCA_OK && status != KVCA_NONE_FITS) {
        fprintf(stderr, "%s\n", kvca_strerror(status)); /* a fault of the program: do not try again */
        abort();
    }
    /* KVCA_NONE_FITS: try again when a request has ended. No request is larger than a rank here. */
    return status == KVCA_OK;
}

static void end_request(struct router *router, kvca_booking *booking)
{
    pthread_mutex_lock(&router->mutex);
    kvca_pool_release(router->pool, booking);
    pthread_mutex_unlock(&router->mutex);
}

static void *serve(void *argument)
{
    struct router *router = argument;
    kvca_booking held[HELD_AT_ONCE] = {{0}};
    for (uint64_t i = 0; i < REQUESTS; i++) {
        kvca_booking *booking = &held[i % HELD_AT_ONCE];
        end_request(router, booking); /* the first few are empty: an error that does no harm */
        for (uint64_t oldest = i + 1; !send_request(router, 100 + i * 37 % 4000, booking); oldest++) {
            end_request(router, &held[oldest % HELD_AT_ONCE]);
        }
    }
    for (size_t i = 0; i < HELD_AT_ONCE; i++) {
        end_request(router, &held[i]);
    }
    return NULL;
}

static kvca_pool *make_pool(kvca_owner *owner)
{
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_pool *pool;
    if (kvca_pool_new(RANKS, 1, &params, &pool) != KVCA_OK) {
        return NULL;
    }
    kvca_pool_owner_claim(pool, 0, owner);
    for (uint32_t dp_rank = 0; dp_rank < RANKS; dp_rank++) {
        kvca_rank rank = {.size = sizeof rank, .worker_id = 7, .dp_rank = dp_rank, .total_kv_blocks = 1000};
        kvca_put put = {.size = sizeof put};
        if (kvca_pool_put(pool, &rank, &put) == KVCA_OK && put.added && put.unknown_capacity) {
            fprintf(stderr, "worker 7, dp_rank %" PRIu32 ": no known capacity, so it is never found full\n", dp_rank);
        }
    }
    return pool;
}

int main(void)
{
    struct router router;
    router.pool = make_pool(&router.owner);
    if (!router.pool || pthread_mutex_init(&router.mutex, NULL) != 0) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, serve, &router) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    size_t bytes = kvca_pool_snapshot_bytes(router.pool);
    void *buffer = malloc(bytes);
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    if (buffer && kvca_pool_snapshot(router.pool, buffer, bytes, &snapshot) == KVCA_OK) {
        uint64_t left = 0;
        for (size_t row = 0; row < snapshot.count; row++) {
            left += snapshot.ranks->decode_cost_blocks[row];
        }
        printf("%" PRIu64 " requests placed by %d threads, %" PRIu64 " past a rank's capacity, %" PRIu64
               " blocks still booked\n",
               snapshot.counters->placed, started, snapshot.counters->fallbacks, left);
    }
    free(buffer);
    pthread_mutex_destroy(&router.mutex);
    kvca_pool_free(router.pool);
    return 0;
}
