/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool costs: its memory, and the time of place, grow and release. The baseline, timed in the same rounds on the
 * same loads, is what a router without a pool does for a request: a scan for the smallest D, and D and N of that rank
 * raised, then lowered when the request ends; it knows no capacity and draws no ties.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <kvca/pool.h>

#define ROUNDS 51
#define MOST_RANKS 4096
#define HELD 64 /* requests in flight while the others come and go */

/* One size of pool, with the same load in the pool and in the baseline's columns. */
struct subject {
    uint32_t ranks;
    kvca_pool *pool;
    kvca_owner owner;
    kvca_booking held;
    uint64_t blocks[MOST_RANKS];
    uint64_t requests[MOST_RANKS];
};

/* The random numbers of the loads: a linear congruential generator, fixed from run to run. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return *state >> 33;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void must(kvca_status status)
{
    if (status != KVCA_OK) {
        fprintf(stderr, "pool_bench: %s\n", kvca_strerror(status));
        exit(1);
    }
}

static void make_subject(struct subject *subject, uint32_t ranks)
{
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    uint64_t random = 1;
    subject->ranks = ranks;
    must(kvca_pool_new(ranks, 1, &params, &subject->pool));
    must(kvca_pool_set_seed(subject->pool, 1));
    must(kvca_pool_owner_claim(subject->pool, 0, &subject->owner));
    for (uint32_t rank = 0; rank < ranks; rank++) {
        must(kvca_pool_put(subject->pool, &(kvca_rank){.worker_id = rank, .total_kv_blocks = 60000}, NULL));
        subject->blocks[rank] = 0;
        subject->requests[rank] = 0;
    }
    for (uint32_t i = 0; i < HELD * ranks; i++) {
        kvca_request request = {.blocks = 100 + next_random(&random) % 1500};
        kvca_selection selection;
        must(kvca_pool_place(subject->pool, subject->owner, &request, &subject->held, &selection));
        subject->blocks[selection.row] += request.blocks;
        subject->requests[selection.row]++;
    }
}

/* Nanoseconds that `count` requests take, each placed and released. */
static double time_place_and_release(struct subject *subject, int count)
{
    double start = now();
    for (int i = 0; i < count; i++) {
        kvca_request request = {.blocks = 100 + (uint64_t)i % 1500};
        kvca_booking booking;
        must(kvca_pool_place(subject->pool, subject->owner, &request, &booking, NULL));
        must(kvca_pool_release(subject->pool, &booking));
    }
    return (now() - start) / count;
}

static double time_grow(struct subject *subject, int count)
{
    double start = now();
    for (int i = 0; i < count; i++) {
        must(kvca_pool_grow(subject->pool, &subject->held, 0));
    }
    return (now() - start) / count;
}

static double time_baseline(struct subject *subject, int count)
{
    volatile uint64_t *blocks = subject->blocks; /* as if another thread might have changed them in between */
    double start = now();
    for (int i = 0; i < count; i++) {
        uint32_t best = 0;
        uint64_t least = UINT64_MAX;
        for (uint32_t rank = 0; rank < subject->ranks; rank++) {
            uint64_t d = blocks[rank];
            if (d < least) {
                least = d;
                best = rank;
            }
        }
        blocks[best] += (uint64_t)i % 1500;
        subject->requests[best]++;
        blocks[best] -= (uint64_t)i % 1500;
        subject->requests[best]--;
    }
    return (now() - start) / count;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static void measure(struct subject *subject, uint32_t ranks)
{
    static double place[ROUNDS];
    static double grow[ROUNDS];
    static double baseline[ROUNDS];
    make_subject(subject, ranks);
    int count = 200000 / (int)(ranks + 32);
    for (int round = 0; round < ROUNDS; round++) {
        place[round] = time_place_and_release(subject, count);
        grow[round] = time_grow(subject, count);
        baseline[round] = time_baseline(subject, count);
    }
    double middle = median(baseline);
    double placed = median(place);
    printf("%6" PRIu32 "  %15.1f  %8.1f  %10.1f  %6.2f   %.1f .. %.1f\n", ranks, placed, median(grow), middle,
           placed / middle, place[ROUNDS / 10], place[ROUNDS - 1 - ROUNDS / 10]);
    kvca_pool_free(subject->pool);
}

int main(void)
{
    static const uint32_t sizes[] = {1, 4, 8, 16, 64, 256, 1024, 4096};
    static struct subject subject;
    size_t none = kvca_pool_bytes(1024, 0);
    size_t one = kvca_pool_bytes(1024, 1);
    printf("memory, of 1024 ranks: %.1f bytes for each rank, and for each owner %.1f for each rank\n",
           (double)none / 1024, (double)(one - none) / 1024);
    printf("a booking: %zu bytes, kept by the host\n\n", sizeof(kvca_booking));
    printf("time in ns, medians of %d rounds; %s, %s\n", ROUNDS, KVCA_BENCH_COMPILER, KVCA_BENCH_BUILD);
    printf("%6s  %15s  %8s  %10s  %6s   %s\n", "ranks", "place + release", "grow", "baseline", "ratio",
           "place + release, 10th .. 90th percentile");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        measure(&subject, sizes[i]);
    }
    return 0;
}
