/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, with the constants
 * of the paper's mix64variant13 (David Stafford). Its state is a counter, so one atomic addition advances it.
 */
#define _DEFAULT_SOURCE /* getentropy */

#include "rule/random.h"

#include <stdbool.h>
#include <time.h>
#include <unistd.h>

_Static_assert(ATOMIC_LLONG_LOCK_FREE != 0, "a policy is shared without a lock: 64-bit atomics must need none");

#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15)

uint64_t kvca_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

uint64_t kvca_nth(uint64_t seed, uint64_t index)
{
    return kvca_mix(seed + (index + 1) * GOLDEN_GAMMA);
}

static uint64_t next(_Atomic uint64_t *state)
{
    return kvca_nth(atomic_fetch_add_explicit(state, GOLDEN_GAMMA, memory_order_relaxed), 0);
}

/* Numbers below 2^64 mod n would give some results once too often. Without them each result is equally likely. */
static bool is_excess(uint64_t number, uint64_t n)
{
    return number < n && number < (0 - n) % n; /* the division is slow, but seldom needed */
}

uint64_t kvca_draw(_Atomic uint64_t *state, uint64_t n)
{
    uint64_t number;
    if ((n & (n - 1)) == 0) {
        return next(state) & (n - 1); /* the same result as below for a power of two, without a division */
    }
    do {
        number = next(state);
    } while (is_excess(number, n));
    return number % n;
}

uint64_t kvca_unpredictable_seed(const void *address)
{
    uint64_t seed;
    if (getentropy(&seed, sizeof seed) == 0) {
        return seed;
    }
    /*
     * A sandbox may forbid getentropy(). Processes that start at the same time still differ by their process number.
     */
    struct timespec now = {0};
    timespec_get(&now, TIME_UTC);
    return kvca_mix((uint64_t)now.tv_sec ^ kvca_mix((uint64_t)now.tv_nsec)) ^
           kvca_mix((uint64_t)getpid() ^ kvca_mix((uintptr_t)address));
}

uint64_t kvca_hash_rank(uint64_t worker_id, uint32_t dp_rank)
{
    return kvca_mix(kvca_mix(worker_id) + dp_rank);
}
