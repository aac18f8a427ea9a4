/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 8 rows, in AVX-512. kernel.h says what each function means. */
#ifndef KVCA_LANES_AVX512_H
#define KVCA_LANES_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef KERNEL_INLINE /* coverage is counted by function, and then it is empty */
#define KERNEL_INLINE inline __attribute__((always_inline, unused))
#endif
#define LANES 8
#define KERNEL_TARGET __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,bmi,bmi2,popcnt")))
#define KERNEL_FN static KERNEL_INLINE KERNEL_TARGET
#define KERNEL_OUT static __attribute__((noinline)) KERNEL_TARGET

typedef __m512i lanes;
typedef __m512d reals;
typedef __mmask8 mask;
typedef __mmask16 pair;

KERNEL_FN mask mask_of_bits(uint64_t bits)
{
    return (mask)bits;
}

#define LANES_HAVE_NTH_BIT

/* As in kernel.h. */
KERNEL_FN size_t nth_bit(uint64_t word, size_t n)
{
    return (size_t)_tzcnt_u64(_pdep_u64(UINT64_C(1) << n, word));
}

/*
 * The instruction is named because gcc 12.2 gets a conversion wrong, at -O1 and up: a 64-bit integer that begins as the
 * 8 bits of a comparison is taken to be 0 above them, even where only these 8 were written to its place on the stack.
 */
KERNEL_FN uint64_t mask_bits(mask a)
{
#ifndef __clang__
    if (!__builtin_constant_p(a)) {
        uint64_t bits;
        __asm__("kmovb\t{%1, %k0|%k0, %1}" : "=r"(bits) : "k"(a));
        return bits;
    }
#endif
    return a;
}

KERNEL_FN mask mask_and(mask a, mask b)
{
    return (mask)(a & b);
}

KERNEL_FN mask mask_or(mask a, mask b)
{
    return (mask)(a | b);
}

KERNEL_FN lanes lanes_set(uint64_t value)
{
    return _mm512_set1_epi64((long long)value);
}

KERNEL_FN lanes lanes_load(const uint64_t *values, size_t rows)
{
    lanes a = rows >= LANES ? _mm512_loadu_si512(values) : _mm512_maskz_loadu_epi64((mask)((1U << rows) - 1), values);
    __asm__("" : "+v"(a)); /* in a register: gcc would read it anew for each use */
    return a;
}

KERNEL_FN pair pair_above(const uint32_t *values, uint32_t value)
{
    return _mm512_cmpgt_epu32_mask(_mm512_loadu_si512(values), _mm512_set1_epi32((int)value));
}

KERNEL_FN pair pair_of_bits(uint64_t bits)
{
    return (pair)bits;
}

KERNEL_FN pair pair_and(pair a, pair b)
{
    return (pair)(a & b);
}

KERNEL_FN mask pair_first(pair a)
{
    return (mask)a;
}

KERNEL_FN mask pair_second(pair a)
{
    return (mask)_kshiftri_mask16(a, 8);
}

/* The instruction is named as in mask_bits(). */
KERNEL_FN uint64_t pair_bits(pair a)
{
#ifdef __clang__
    return a;
#else
    uint64_t bits;
    __asm__("kmovw\t{%1, %k0|%k0, %1}" : "=r"(bits) : "k"(a));
    return bits;
#endif
}

KERNEL_FN void lanes_store(uint64_t *values, lanes a)
{
    _mm512_storeu_si512(values, a);
}

KERNEL_FN lanes lanes_add(lanes a, lanes b)
{
    return _mm512_add_epi64(a, b);
}

KERNEL_FN lanes lanes_or(lanes a, lanes b, lanes c)
{
    return _mm512_ternarylogic_epi64(a, b, c, 0xfe);
}

/* Puts the lower half of `high` into the upper half of `low`. */
KERNEL_FN lanes lanes_pack(lanes high, lanes low)
{
    return _mm512_mask_shuffle_epi32(low, 0xaaaa, high, _MM_PERM_CCAA);
}

KERNEL_FN mask lanes_equal(lanes a, lanes b)
{
    return _mm512_cmpeq_epi64_mask(a, b);
}

KERNEL_FN mask lanes_at_most(lanes a, lanes b)
{
    return _mm512_cmple_epu64_mask(a, b);
}

KERNEL_FN lanes lanes_select(mask yes, lanes a, lanes b)
{
    return _mm512_mask_blend_epi64(yes, b, a);
}

KERNEL_FN lanes lanes_min(lanes a, lanes b)
{
    return _mm512_min_epu64(a, b);
}

KERNEL_FN lanes lanes_min_where(lanes a, mask yes, lanes b)
{
    return _mm512_mask_min_epu64(a, yes, a, b);
}

KERNEL_FN uint64_t lanes_first(lanes a)
{
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(a));
}

KERNEL_FN lanes lanes_least(lanes a)
{
    a = _mm512_min_epu64(a, _mm512_shuffle_i64x2(a, a, 0x4e));          /* the halves swapped */
    a = _mm512_min_epu64(a, _mm512_shuffle_i64x2(a, a, 0xb1));          /* neighbouring quarters */
    return _mm512_min_epu64(a, _mm512_shuffle_epi32(a, _MM_PERM_BADC)); /* neighbours */
}

KERNEL_FN bool lanes_any_large(lanes a)
{
    return _mm512_cmpgt_epu64_mask(a, _mm512_set1_epi64(INT32_MAX)) != 0;
}

KERNEL_FN lanes lanes_bits_of(reals a)
{
    return _mm512_castpd_si512(a);
}

KERNEL_FN reals reals_set(double value)
{
    return _mm512_set1_pd(value);
}

KERNEL_FN reals reals_load(const double *values, size_t rows)
{
    return rows >= LANES ? _mm512_loadu_pd(values) : _mm512_maskz_loadu_pd((mask)((1U << rows) - 1), values);
}

KERNEL_FN reals reals_of(lanes a)
{
    return _mm512_cvtepu64_pd(a);
}

KERNEL_FN reals reals_add(reals a, reals b)
{
    return _mm512_add_pd(a, b);
}

/* Rounded, also where a compiler may fuse it with an addition. */
KERNEL_FN reals reals_multiply(reals a, reals b)
{
    reals product = _mm512_mul_pd(a, b);
    __asm__("" : "+v"(product));
    return product;
}

KERNEL_FN mask reals_at_most(reals a, reals b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ);
}

KERNEL_FN reals reals_select(mask yes, reals a, reals b)
{
    return _mm512_mask_blend_pd(yes, b, a);
}

KERNEL_FN size_t count_bits(uint64_t word)
{
    return (size_t)__builtin_popcountll(word);
}

#endif
