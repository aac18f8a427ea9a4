/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of 4 rows, in AVX2. kernel.h says what each function means.
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

#ifndef KERNEL_INLINE /* coverage is counted by function, and then it is empty */
#define KERNEL_INLINE inline __attribute__((always_inline, unused))
#endif
#define LANES 4
#define KERNEL_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define KERNEL_FN static KERNEL_INLINE KERNEL_TARGET
#define KERNEL_OUT static __attribute__((noinline)) KERNEL_TARGET

typedef __m256i lanes;
typedef __m256d reals;
typedef __m256i mask; /* all bits of a row, or none */
typedef __m256i pair; /* all bits of a half, or none */

KERNEL_FN lanes lanes_set(uint64_t value)
{
    return _mm256_set1_epi64x((long long)value);
}

KERNEL_FN mask lanes_equal(lanes a, lanes b)
{
    return _mm256_cmpeq_epi64(a, b);
}

KERNEL_FN mask mask_of_bits(uint64_t bits)
{
    const lanes bit_of_row = _mm256_set_epi64x(8, 4, 2, 1);
    return lanes_equal(_mm256_and_si256(lanes_set(bits), bit_of_row), bit_of_row);
}

KERNEL_FN uint64_t mask_bits(mask a)
{
    return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(a));
}

KERNEL_FN mask mask_and(mask a, mask b)
{
    return _mm256_and_si256(a, b);
}

KERNEL_FN mask mask_or(mask a, mask b)
{
    return _mm256_or_si256(a, b);
}

KERNEL_FN lanes lanes_load(const uint64_t *values, size_t rows)
{
    return rows >= LANES ? _mm256_loadu_si256((const __m256i *)values)
                         : _mm256_maskload_epi64((const long long *)values, mask_of_bits((1U << rows) - 1));
}

/* A value is at least another one where it is the larger of the two. */
KERNEL_FN pair pair_above(const uint32_t *values, uint32_t value)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)values);
    __m256i least = _mm256_set1_epi32((int)(value + 1));
    return _mm256_cmpeq_epi32(_mm256_max_epu32(a, least), a);
}

KERNEL_FN pair pair_of_bits(uint64_t bits)
{
    const __m256i bit_of_row = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), bit_of_row), bit_of_row);
}

KERNEL_FN pair pair_and(pair a, pair b)
{
    return _mm256_and_si256(a, b);
}

KERNEL_FN mask pair_first(pair a)
{
    return _mm256_cvtepi32_epi64(_mm256_castsi256_si128(a));
}

KERNEL_FN mask pair_second(pair a)
{
    return _mm256_cvtepi32_epi64(_mm256_extracti128_si256(a, 1));
}

KERNEL_FN uint64_t pair_bits(pair a)
{
    return (uint64_t)_mm256_movemask_ps(_mm256_castsi256_ps(a));
}

KERNEL_FN void lanes_store(uint64_t *values, lanes a)
{
    _mm256_storeu_si256((__m256i *)values, a);
}

KERNEL_FN lanes lanes_add(lanes a, lanes b)
{
    return _mm256_add_epi64(a, b);
}

/* Whether a > b. */
KERNEL_FN mask lanes_above(lanes a, lanes b)
{
    const lanes sign = lanes_set(UINT64_C(1) << 63);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
}

KERNEL_FN mask lanes_at_most(lanes a, lanes b)
{
    return _mm256_xor_si256(lanes_above(a, b), lanes_set(UINT64_MAX));
}

KERNEL_FN lanes lanes_or(lanes a, lanes b, lanes c)
{
    return _mm256_or_si256(_mm256_or_si256(a, b), c);
}

KERNEL_FN lanes lanes_pack(lanes high, lanes low)
{
    return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
}

KERNEL_FN lanes lanes_select(mask yes, lanes a, lanes b)
{
    return _mm256_blendv_epi8(b, a, yes);
}

/* Both are below 2^63, where the order of signed integers is the same. */
KERNEL_FN lanes lanes_min(lanes a, lanes b)
{
    return lanes_select(_mm256_cmpgt_epi64(a, b), b, a);
}

KERNEL_FN lanes lanes_min_where(lanes a, mask yes, lanes b)
{
    return lanes_select(_mm256_and_si256(yes, _mm256_cmpgt_epi64(a, b)), b, a);
}

KERNEL_FN uint64_t lanes_first(lanes a)
{
    return (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(a));
}

KERNEL_FN lanes lanes_least(lanes a)
{
    a = lanes_min(a, _mm256_permute4x64_epi64(a, 0x4e));    /* the halves swapped */
    return lanes_min(a, _mm256_permute4x64_epi64(a, 0xb1)); /* neighbours swapped */
}

KERNEL_FN bool lanes_any_large(lanes a)
{
    return _mm256_testz_si256(a, lanes_set(~(uint64_t)INT32_MAX)) == 0;
}

KERNEL_FN lanes lanes_bits_of(reals a)
{
    return _mm256_castpd_si256(a);
}

KERNEL_FN reals reals_set(double value)
{
    return _mm256_set1_pd(value);
}

KERNEL_FN reals reals_load(const double *values, size_t rows)
{
    return rows >= LANES ? _mm256_loadu_pd(values) : _mm256_maskload_pd(values, mask_of_bits((1U << rows) - 1));
}

KERNEL_FN reals reals_add(reals a, reals b)
{
    return _mm256_add_pd(a, b);
}

KERNEL_FN reals reals_multiply(reals a, reals b)
{
    return _mm256_mul_pd(a, b);
}

KERNEL_FN mask reals_at_most(reals a, reals b)
{
    return _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_LE_OQ));
}

KERNEL_FN reals reals_select(mask yes, reals a, reals b)
{
    return _mm256_blendv_pd(b, a, _mm256_castsi256_pd(yes));
}

/* The double whose bits these are. */
KERNEL_FN reals reals_of_bits(lanes a)
{
    return _mm256_castsi256_pd(a);
}

/* Both halves become doubles without rounding; the one addition that joins them rounds. */
KERNEL_FN reals reals_of(lanes a)
{
    const reals both = reals_set(0x1p84 + 0x1p52);
    lanes low = _mm256_blend_epi32(a, lanes_bits_of(reals_set(0x1p52)), 0xaa);
    lanes high = _mm256_or_si256(_mm256_srli_epi64(a, 32), lanes_bits_of(reals_set(0x1p84)));
    return reals_add(_mm256_sub_pd(reals_of_bits(high), both), reals_of_bits(low));
}

KERNEL_FN size_t count_bits(uint64_t word)
{
    return (size_t)__builtin_popcountll(word);
}

#endif
