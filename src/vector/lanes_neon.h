/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 2 rows, in the NEON of 64-bit Arm. kernel.h says what each function means. */
#ifndef KVCA_LANES_NEON_H
#define KVCA_LANES_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef KERNEL_INLINE /* coverage is counted by function, and then it is empty */
#define KERNEL_INLINE inline __attribute__((always_inline, unused))
#endif
#define LANES 2
#define KERNEL_TARGET
#define KERNEL_FN static KERNEL_INLINE
#define KERNEL_OUT static __attribute__((noinline))

typedef uint64x2_t lanes;
typedef float64x2_t reals;
typedef uint64x2_t mask; /* all bits of a row, or none */
typedef uint32x4_t pair; /* all bits of a half, or none */

KERNEL_FN lanes lanes_set(uint64_t value)
{
    return vdupq_n_u64(value);
}

KERNEL_FN mask mask_of_bits(uint64_t bits)
{
    return vtstq_u64(lanes_set(bits), vcombine_u64(vcreate_u64(1), vcreate_u64(2)));
}

KERNEL_FN uint64_t mask_bits(mask a)
{
    return (vgetq_lane_u64(a, 0) & 1) | (vgetq_lane_u64(a, 1) & 2);
}

KERNEL_FN mask mask_and(mask a, mask b)
{
    return vandq_u64(a, b);
}

KERNEL_FN mask mask_or(mask a, mask b)
{
    return vorrq_u64(a, b);
}

KERNEL_FN lanes lanes_load(const uint64_t *values, size_t rows)
{
    return rows >= LANES ? vld1q_u64(values) : vcombine_u64(vld1_u64(values), vcreate_u64(0));
}

KERNEL_FN pair pair_above(const uint32_t *values, uint32_t value)
{
    return vcgtq_u32(vld1q_u32(values), vdupq_n_u32(value));
}

KERNEL_FN uint32x4_t bit_of_half(void)
{
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vld1q_u32(bits);
}

KERNEL_FN pair pair_of_bits(uint64_t bits)
{
    return vtstq_u32(vdupq_n_u32((uint32_t)bits), bit_of_half());
}

KERNEL_FN pair pair_and(pair a, pair b)
{
    return vandq_u32(a, b);
}

KERNEL_FN mask pair_first(pair a)
{
    return vreinterpretq_u64_s64(vmovl_s32(vget_low_s32(vreinterpretq_s32_u32(a))));
}

KERNEL_FN mask pair_second(pair a)
{
    return vreinterpretq_u64_s64(vmovl_high_s32(vreinterpretq_s32_u32(a)));
}

KERNEL_FN uint64_t pair_bits(pair a)
{
    return vaddvq_u32(vandq_u32(a, bit_of_half()));
}

KERNEL_FN void lanes_store(uint64_t *values, lanes a)
{
    vst1q_u64(values, a);
}

KERNEL_FN lanes lanes_add(lanes a, lanes b)
{
    return vaddq_u64(a, b);
}

KERNEL_FN lanes lanes_or(lanes a, lanes b, lanes c)
{
    return vorrq_u64(vorrq_u64(a, b), c);
}

KERNEL_FN lanes lanes_pack(lanes high, lanes low)
{
    return vsliq_n_u64(low, high, 32);
}

KERNEL_FN mask lanes_equal(lanes a, lanes b)
{
    return vceqq_u64(a, b);
}

KERNEL_FN mask lanes_at_most(lanes a, lanes b)
{
    return vcleq_u64(a, b);
}

KERNEL_FN lanes lanes_select(mask yes, lanes a, lanes b)
{
    return vbslq_u64(yes, a, b);
}

KERNEL_FN lanes lanes_min(lanes a, lanes b)
{
    return vbslq_u64(vcgtq_u64(a, b), b, a);
}

KERNEL_FN lanes lanes_min_where(lanes a, mask yes, lanes b)
{
    return vbslq_u64(vandq_u64(yes, vcgtq_u64(a, b)), b, a);
}

KERNEL_FN uint64_t lanes_first(lanes a)
{
    return vgetq_lane_u64(a, 0);
}

KERNEL_FN lanes lanes_least(lanes a)
{
    return lanes_min(a, vextq_u64(a, a, 1)); /* the halves swapped */
}

KERNEL_FN bool lanes_any_large(lanes a)
{
    return (vgetq_lane_u64(a, 0) | vgetq_lane_u64(a, 1)) > INT32_MAX;
}

KERNEL_FN lanes lanes_bits_of(reals a)
{
    return vreinterpretq_u64_f64(a);
}

KERNEL_FN reals reals_set(double value)
{
    return vdupq_n_f64(value);
}

KERNEL_FN reals reals_load(const double *values, size_t rows)
{
    return rows >= LANES ? vld1q_f64(values) : vcombine_f64(vld1_f64(values), vcreate_f64(0));
}

KERNEL_FN reals reals_of(lanes a)
{
    return vcvtq_f64_u64(a);
}

KERNEL_FN reals reals_add(reals a, reals b)
{
    return vaddq_f64(a, b);
}

/* Rounded, also where a compiler may fuse it with an addition. */
KERNEL_FN reals reals_multiply(reals a, reals b)
{
    reals product = vmulq_f64(a, b);
    __asm__("" : "+w"(product));
    return product;
}

KERNEL_FN mask reals_at_most(reals a, reals b)
{
    return vcleq_f64(a, b);
}

KERNEL_FN reals reals_select(mask yes, reals a, reals b)
{
    return vbslq_f64(yes, a, b);
}

KERNEL_FN size_t count_bits(uint64_t word)
{
    return (size_t)__builtin_popcountll(word);
}

#endif
