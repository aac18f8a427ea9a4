/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include <kvca/kvca.h>

/* Ends the benchmark with a message. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
_Noreturn void
fail(const char *format, ...);

/* In the timed loops too: a host checks each status. */
static inline void must(kvca_status status)
{
    if (status != KVCA_OK) {
        fail("%s", kvca_strerror(status));
    }
}

/* Zeroed memory, aligned to a cache line. */
void *allocate(size_t count, size_t size);

/* In rising order. */
void sort(double *values, size_t count);

/* Nanoseconds since some moment. */
double now(void);

/* The upper 31 bits of a linear congruential generator (Knuth, MMIX). It is inline because the timed loops call it. */
static inline uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return *state >> 33;
}

#endif
