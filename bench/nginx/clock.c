/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times the work of the nginx module for a request. It is linked into a copy of the module, only for bench.py. When a
 * worker ends, it writes a line to its standard error, which is nginx's error log:
 *
 *     kvca clock: init 1000 calls 90 ns median 110 ns mean, get ..., free ..., clock itself 25 ns
 *
 * Each time includes one reading of the clock. The linker redirects calls of ngx_http_kvca_init_peer to this file
 * (-Wl,--wrap). The other two functions are pointers in nginx, which are replaced.
 */
#include "../../src/nginx/ngx_http_kvca.h"

#include <stdio.h>
#include <time.h>

#define BUCKET_NS 2
#define BUCKETS 16384

typedef struct {
    uint64_t calls;
    uint64_t ns;
    uint64_t buckets[BUCKETS]; /* calls by their time; the last has all longer calls */
} tally_t;

static tally_t init_tally;
static tally_t get_tally;
static tally_t free_tally;

static ngx_event_get_peer_pt real_get;
static ngx_event_free_peer_pt real_free;

ngx_int_t __real_ngx_http_kvca_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us);
ngx_int_t __wrap_ngx_http_kvca_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us);

static uint64_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void count(tally_t *tally, uint64_t begin)
{
    uint64_t ns = now() - begin;
    uint64_t bucket = ns / BUCKET_NS;
    tally->calls++;
    tally->ns += ns;
    tally->buckets[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

static ngx_int_t clocked_get(ngx_peer_connection_t *pc, void *data)
{
    uint64_t begin = now();
    ngx_int_t result = real_get(pc, data);
    count(&get_tally, begin);
    return result;
}

static void clocked_free(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
    uint64_t begin = now();
    real_free(pc, data, state);
    count(&free_tally, begin);
}

ngx_int_t __wrap_ngx_http_kvca_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
    uint64_t begin = now();
    ngx_int_t result = __real_ngx_http_kvca_init_peer(r, us);
    count(&init_tally, begin);
    if (result == NGX_OK) {
        real_get = r->upstream->peer.get;
        real_free = r->upstream->peer.free;
        r->upstream->peer.get = clocked_get;
        r->upstream->peer.free = clocked_free;
    }
    return result;
}

static uint64_t median(const tally_t *tally)
{
    uint64_t below = 0;
    uint64_t bucket = 0;
    while (bucket < BUCKETS - 1 && (below += tally->buckets[bucket]) * 2 < tally->calls) {
        bucket++;
    }
    return bucket * BUCKET_NS;
}

static uint64_t clock_itself(void)
{
    static tally_t tally;
    for (int i = 0; i < 10000; i++) {
        count(&tally, now());
    }
    return median(&tally);
}

static int tell(char *text, size_t room, const char *name, const tally_t *tally)
{
    return snprintf(text, room, "%s %llu calls %llu ns median %llu ns mean, ", name, (unsigned long long)tally->calls,
                    (unsigned long long)median(tally), (unsigned long long)(tally->ns / ngx_max(tally->calls, 1)));
}

__attribute__((destructor)) static void report(void)
{
    char init[128];
    char get[128];
    char free[128];
    if (init_tally.calls == 0) {
        return; /* the master */
    }
    (void)tell(init, sizeof init, "init", &init_tally);
    (void)tell(get, sizeof get, "get", &get_tally);
    (void)tell(free, sizeof free, "free", &free_tally);
    (void)dprintf(STDERR_FILENO, "kvca clock: %s%s%sclock itself %llu ns\n", init, get, free,
                  (unsigned long long)clock_itself());
}
