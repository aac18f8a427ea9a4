/* SPDX-License-Identifier: Apache-2.0 */
/*
 * D, the floor: the least work of any code that looks at every rank once. It folds each value into a minimum. It has
 * four accumulators, so that it waits for loads and not for the last minimum.
 *
 * The vector code takes the first and the last vector before the loop. So a remainder needs no code: to take a value
 * twice does no harm.
 */
#include "baselines.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_VECTORS 1
#include <immintrin.h>
#else
#define HAS_VECTORS 0 /* compilers for arm64 vectorize the plain loops */
#endif

static uint64_t bits(double value)
{
    uint64_t integer;
    memcpy(&integer, &value, sizeof integer);
    return integer;
}

static uint64_t least(const uint64_t *values, size_t count)
{
    uint64_t minimum = values[0];
    for (size_t i = 1; i < count; i++) {
        minimum = values[i] < minimum ? values[i] : minimum;
    }
    return minimum;
}

static double least_double(const double *values, size_t count)
{
    double minimum = values[0];
    for (size_t i = 1; i < count; i++) {
        minimum = values[i] < minimum ? values[i] : minimum;
    }
    return minimum;
}

static uint64_t plain_three(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t count)
{
    return least(a, count) + least(b, count) + least(c, count);
}

static uint64_t plain_four(const uint64_t *a, const uint64_t *b, const uint64_t *c, const double *d, size_t count)
{
    return plain_three(a, b, c, count) + bits(least_double(d, count));
}

#if HAS_VECTORS

/* AVX2 has no minimum of 64-bit integers. That of doubles gives the same order for bits below 2^63 - 2^52. */

#define AVX2_PART static inline __attribute__((target("avx2"), always_inline))
#define AVX2_WHOLE static __attribute__((target("avx2")))

AVX2_PART __m256d load4(const void *column, size_t row)
{
    return _mm256_loadu_pd((const double *)column + row);
}

AVX2_PART __m256d fold4(__m256d minimum, const void *column, size_t row)
{
    return _mm256_min_pd(minimum, load4(column, row));
}

/* The minimum in each lane. There are at least 4 rows. */
AVX2_PART __m256d scan4(const void *column, size_t count)
{
    size_t last = count - 4;
    __m256d a = load4(column, 0);
    __m256d b = load4(column, last);
    __m256d c = a;
    __m256d d = b;
    size_t row = 4;
    for (; row + 12 < last; row += 16) {
        a = fold4(a, column, row);
        b = fold4(b, column, row + 4);
        c = fold4(c, column, row + 8);
        d = fold4(d, column, row + 12);
    }
    for (; row < last; row += 4) {
        a = fold4(a, column, row);
    }
    return _mm256_min_pd(_mm256_min_pd(a, b), _mm256_min_pd(c, d));
}

/* The minima of two columns, side by side. */
AVX2_PART __m128i join4(__m256d a, __m256d b)
{
    __m256d both = _mm256_min_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    return _mm_castpd_si128(_mm_min_pd(_mm256_castpd256_pd128(both), _mm256_extractf128_pd(both, 1)));
}

AVX2_PART uint64_t sum2(__m128i a, __m128i b)
{
    __m128i sums = _mm_add_epi64(a, b);
    return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
}

AVX2_WHOLE uint64_t avx2_three(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t count)
{
    if (count < 4) {
        return plain_three(a, b, c, count);
    }
    return sum2(join4(scan4(a, count), scan4(b, count)), join4(scan4(c, count), _mm256_setzero_pd()));
}

AVX2_WHOLE uint64_t avx2_four(const uint64_t *a, const uint64_t *b, const uint64_t *c, const double *d, size_t count)
{
    if (count < 4) {
        return plain_four(a, b, c, d, count);
    }
    return sum2(join4(scan4(a, count), scan4(b, count)), join4(scan4(c, count), scan4(d, count)));
}

/* AVX-512. Few rows are faster with AVX2, whose vectors are faster to fold into one number. */

#define FEW_ROWS 64

#define AVX512_PART static inline __attribute__((target("avx512f,avx512vl"), always_inline))
#define AVX512_WHOLE static __attribute__((target("avx512f,avx512vl")))

AVX512_PART __m512i load8(const void *column, size_t row)
{
    return _mm512_loadu_si512((const uint64_t *)column + row);
}

AVX512_PART __m512i fold8(__m512i minimum, const void *column, size_t row)
{
    return _mm512_min_epu64(minimum, load8(column, row));
}

/* The minimum in each lane. There are at least 8 rows. */
AVX512_PART __m512i scan8(const void *column, size_t count)
{
    size_t last = count - 8;
    __m512i a = load8(column, 0);
    __m512i b = load8(column, last);
    __m512i c = a;
    __m512i d = b;
    size_t row = 8;
    for (; row + 24 < last; row += 32) {
        a = fold8(a, column, row);
        b = fold8(b, column, row + 8);
        c = fold8(c, column, row + 16);
        d = fold8(d, column, row + 24);
    }
    for (; row < last; row += 8) {
        a = fold8(a, column, row);
    }
    return _mm512_min_epu64(_mm512_min_epu64(a, b), _mm512_min_epu64(c, d));
}

AVX512_PART __m128i join8(__m512i a, __m512i b)
{
    __m512i pairs = _mm512_min_epu64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    __m256i both = _mm256_min_epu64(_mm512_castsi512_si256(pairs), _mm512_extracti64x4_epi64(pairs, 1));
    return _mm_min_epu64(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

AVX512_WHOLE uint64_t avx512_three(const uint64_t *a, const uint64_t *b, const uint64_t *c, size_t count)
{
    if (count <= FEW_ROWS) {
        return avx2_three(a, b, c, count);
    }
    return sum2(join8(scan8(a, count), scan8(b, count)), join8(scan8(c, count), _mm512_setzero_si512()));
}

AVX512_WHOLE uint64_t avx512_four(const uint64_t *a, const uint64_t *b, const uint64_t *c, const double *d,
                                  size_t count)
{
    if (count <= FEW_ROWS) {
        return avx2_four(a, b, c, d, count);
    }
    return sum2(join8(scan8(a, count), scan8(b, count)), join8(scan8(c, count), scan8(d, count)));
}

struct floor floor_here(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
        return (struct floor){.code = "avx512", .three = avx512_three, .four = avx512_four};
    }
    if (__builtin_cpu_supports("avx2")) {
        return (struct floor){.code = "avx2", .three = avx2_three, .four = avx2_four};
    }
    return (struct floor){.code = "plain", .three = plain_three, .four = plain_four};
}

#else

struct floor floor_here(void)
{
    return (struct floor){.code = "plain", .three = plain_three, .four = plain_four};
}

#endif
