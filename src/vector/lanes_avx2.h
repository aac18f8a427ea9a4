/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of 4 rows, in AVX2. lanes_plain.h says what each function means.
 *
 * AVX2 compares 64-bit integers as signed ones only, and converts none to doubles or back. For the conversions: the
 * double 2^52 + n, for 0 <= n < 2^32, has n as its lowest bits; 2^84 + n x 2^32 does so too.
 */
#ifndef KVCA_LANES_AVX2_H
#define KVCA_LANES_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef LANES_INLINE /* coverage is counted by function, and then it is empty */
#define LANES_INLINE inline __attribute__((always_inline, unused))
#endif
#define LANES 4
#define LANES_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define LANES_FN static LANES_INLINE LANES_TARGET
#define LANES_OUT static __attribute__((noinline)) LANES_TARGET

typedef __m256i lanes;
typedef __m256d reals;
typedef __m256i mask; /* all bits of a row, or none */
typedef __m256i pair; /* all bits of a half, or none */

LANES_FN lanes lanes_set(uint64_t value)
{
    return _mm256_set1_epi64x((long long)value);
}

LANES_FN mask lanes_equal(lanes a, lanes b)
{
    return _mm256_cmpeq_epi64(a, b);
}

LANES_FN mask mask_of_bits(uint64_t bits)
{
    const lanes bit_of_row = _mm256_set_epi64x(8, 4, 2, 1);
    return lanes_equal(_mm256_and_si256(lanes_set(bits), bit_of_row), bit_of_row);
}

LANES_FN uint64_t mask_bits(mask a)
{
    return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(a));
}

LANES_FN mask mask_and(mask a, mask b)
{
    return _mm256_and_si256(a, b);
}

LANES_FN lanes lanes_load(const uint64_t *values, size_t rows)
{
    return rows >= LANES ? _mm256_loadu_si256((const __m256i *)values)
                         : _mm256_maskload_epi64((const long long *)values, mask_of_bits((1U << rows) - 1));
}

/* A value is at least another one where it is the larger of the two. */
LANES_FN pair pair_above(const uint32_t *values, uint32_t value)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)values);
    __m256i least = _mm256_set1_epi32((int)(value + 1));
    return _mm256_cmpeq_epi32(_mm256_max_epu32(a, least), a);
}

LANES_FN pair pair_of_bits(uint64_t bits)
{
    const __m256i bit_of_row = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), bit_of_row), bit_of_row);
}

LANES_FN pair pair_and(pair a, pair b)
{
    return _mm256_and_si256(a, b);
}

LANES_FN mask pair_first(pair a)
{
    return _mm256_cvtepi32_epi64(_mm256_castsi256_si128(a));
}

LANES_FN mask pair_second(pair a)
{
    return _mm256_cvtepi32_epi64(_mm256_extracti128_si256(a, 1));
}

LANES_FN uint64_t pair_bits(pair a)
{
    return (uint64_t)_mm256_movemask_ps(_mm256_castsi256_ps(a));
}

LANES_FN void lanes_store(uint64_t *values, lanes a)
{
    _mm256_storeu_si256((__m256i *)values, a);
}

LANES_FN lanes lanes_add(lanes a, lanes b)
{
    return _mm256_add_epi64(a, b);
}

/* Whether a > b. */
LANES_FN mask lanes_above(lanes a, lanes b)
{
    const lanes sign = lanes_set(UINT64_C(1) << 63);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
}

LANES_FN mask lanes_at_most(lanes a, lanes b)
{
    return _mm256_xor_si256(lanes_above(a, b), lanes_set(UINT64_MAX));
}

LANES_FN lanes lanes_or(lanes a, lanes b, lanes c)
{
    return _mm256_or_si256(_mm256_or_si256(a, b), c);
}

LANES_FN lanes lanes_add_saturating(lanes a, lanes b)
{
    lanes sum = _mm256_add_epi64(a, b);
    return _mm256_or_si256(sum, lanes_above(a, sum));
}

LANES_FN lanes lanes_pack(lanes high, lanes low)
{
    return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
}

LANES_FN lanes lanes_select(mask yes, lanes a, lanes b)
{
    return _mm256_blendv_epi8(b, a, yes);
}

LANES_FN lanes lanes_min_where(lanes a, mask yes, lanes b)
{
    return lanes_select(_mm256_and_si256(yes, lanes_above(a, b)), b, a);
}

LANES_FN uint64_t lanes_first(lanes a)
{
    return (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(a));
}

LANES_FN lanes lanes_least(lanes a)
{
    const mask all = lanes_set(UINT64_MAX);
    a = lanes_min_where(a, all, _mm256_permute4x64_epi64(a, 0x4e));    /* the halves changed over */
    return lanes_min_where(a, all, _mm256_permute4x64_epi64(a, 0xb1)); /* neighbours changed over */
}

LANES_FN bool lanes_any_large(lanes a)
{
    return _mm256_testz_si256(a, lanes_set(~(uint64_t)UINT32_MAX)) == 0;
}

LANES_FN lanes lanes_bits_of(reals a)
{
    return _mm256_castpd_si256(a);
}

LANES_FN reals reals_set(double value)
{
    return _mm256_set1_pd(value);
}

LANES_FN reals reals_load(const double *values, size_t rows)
{
    return rows >= LANES ? _mm256_loadu_pd(values) : _mm256_maskload_pd(values, mask_of_bits((1U << rows) - 1));
}

LANES_FN reals reals_add(reals a, reals b)
{
    return _mm256_add_pd(a, b);
}

LANES_FN reals reals_multiply(reals a, reals b)
{
    return _mm256_mul_pd(a, b);
}

/* The double whose bits these are. */
LANES_FN reals reals_of_bits(lanes a)
{
    return _mm256_castsi256_pd(a);
}

/* Both halves become doubles without rounding; the one addition that joins them rounds. */
LANES_FN reals reals_of(lanes a)
{
    const reals both = reals_set(0x1p84 + 0x1p52);
    lanes low = _mm256_blend_epi32(a, lanes_bits_of(reals_set(0x1p52)), 0xaa);
    lanes high = _mm256_or_si256(_mm256_srli_epi64(a, 32), lanes_bits_of(reals_set(0x1p84)));
    return reals_add(_mm256_sub_pd(reals_of_bits(high), both), reals_of_bits(low));
}

/* The upper half is that of the quotient by 2^32, and what is left is the lower half: no step rounds but the floors. */
LANES_FN lanes lanes_floor(reals a)
{
    const reals magic = reals_set(0x1p52);
    reals high = _mm256_floor_pd(reals_multiply(a, reals_set(0x1p-32)));
    reals low = _mm256_floor_pd(_mm256_sub_pd(a, reals_multiply(high, reals_set(0x1p32))));
    lanes halves = lanes_pack(lanes_bits_of(reals_add(high, magic)), lanes_bits_of(reals_add(low, magic)));
    mask past = lanes_bits_of(_mm256_cmp_pd(a, reals_set(0x1p64), _CMP_GE_OQ));
    return _mm256_or_si256(halves, past);
}

LANES_FN size_t count_bits(uint64_t word)
{
    return (size_t)__builtin_popcountll(word);
}

#endif
