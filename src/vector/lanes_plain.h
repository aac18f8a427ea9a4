/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rule.h is written in: rows, a vector of them at a time. Here a vector is one row, in plain C. lanes_avx512.h,
 * lanes_avx2.h and lanes_neon.h say the same for vectors of 8, 4 and 2, so this is the place to read what each means.
 *
 *     lanes  an unsigned 64-bit integer of each row      reals  a double of each row
 *     mask   yes or no of each row                       bits   the same as an integer, bit 0 being the first row
 *
 * Vectors have pairs besides: yes or no of each row of two whole vectors, one after the other. What is small is compared in
 * pairs: pair_above() says which of as many half words as there are rows are above a value that is not UINT32_MAX. Other
 * functions of pairs are as those of masks.
 */
#ifndef KVCA_LANES_PLAIN_H
#define KVCA_LANES_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef LANES_INLINE /* coverage is counted by function, and then it is empty */
#define LANES_INLINE inline __attribute__((always_inline, unused))
#endif
#define LANES 1
#define LANES_TARGET
#define LANES_FN static LANES_INLINE
#define LANES_OUT static __attribute__((noinline))

typedef uint64_t lanes;
typedef double reals;
typedef bool mask;

LANES_FN lanes lanes_set(uint64_t value)
{
    return value;
}

/* Reads `rows` values and none behind them; where that is less than a vector, the rest are 0. */
LANES_FN lanes lanes_load(const uint64_t *values, size_t rows)
{
    (void)rows;
    return *values;
}

LANES_FN void lanes_store(uint64_t *values, lanes a)
{
    *values = a;
}

LANES_FN lanes lanes_add(lanes a, lanes b)
{
    return a + b;
}

/* Never past the largest integer. */
LANES_FN lanes lanes_add_saturating(lanes a, lanes b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

LANES_FN lanes lanes_or(lanes a, lanes b, lanes c)
{
    return a | b | c;
}

/* One integer of two below 2^32. */
LANES_FN lanes lanes_pack(lanes high, lanes low)
{
    return high << 32 | low;
}

LANES_FN mask lanes_equal(lanes a, lanes b)
{
    return a == b;
}

LANES_FN mask lanes_at_most(lanes a, lanes b)
{
    return a <= b;
}

LANES_FN lanes lanes_select(mask yes, lanes a, lanes b)
{
    return yes ? a : b;
}

/* The smaller of the two where `yes`, elsewhere `a`. */
LANES_FN lanes lanes_min_where(lanes a, mask yes, lanes b)
{
    return yes && b < a ? b : a;
}

LANES_FN uint64_t lanes_first(lanes a)
{
    return a;
}

/* The smallest of the vector, in all lanes. */
LANES_FN lanes lanes_least(lanes a)
{
    return a;
}

/* Whether any is 2^32 or above. */
LANES_FN bool lanes_any_large(lanes a)
{
    return a >> 32 != 0;
}

/* What a double looks like as an integer: for those >= 0 the order is the same. */
LANES_FN lanes lanes_bits_of(reals a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

/* The largest integer that is not above `a`, for a >= 0; the largest there is, from 2^64 on. */
LANES_FN lanes lanes_floor(reals a)
{
    return a >= 0x1p64 ? UINT64_MAX : (uint64_t)a;
}

LANES_FN reals reals_set(double value)
{
    return value;
}

/* As lanes_load(). */
LANES_FN reals reals_load(const double *values, size_t rows)
{
    (void)rows;
    return *values;
}

/* The nearest doubles. */
LANES_FN reals reals_of(lanes a)
{
    return (double)a;
}

LANES_FN reals reals_add(reals a, reals b)
{
    return a + b;
}

LANES_FN reals reals_multiply(reals a, reals b)
{
    return a * b;
}

LANES_FN uint64_t mask_bits(mask a)
{
    return a;
}

/* Looks at as many of the lowest bits as there are rows. */
LANES_FN mask mask_of_bits(uint64_t bits)
{
    return (bits & 1) != 0;
}

LANES_FN mask mask_and(mask a, mask b)
{
    return a && b;
}

/* How many bits are set. In most words it is one. */
LANES_FN size_t count_bits(uint64_t word)
{
    size_t count = 0;
    for (; word != 0; word &= word - 1) {
        count++;
    }
    return count;
}

#endif
