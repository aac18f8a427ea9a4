/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vectors of one processor against plain C, function by function, on values at which integers and doubles change
 * their ways. Built once for each lanes_*.h, which KVCA_LANES names.
 */
#include "support/test.h"

#include <float.h>
#include <math.h>

#include KVCA_LANES

/* One vector of values, each of which is to be looked at in each lane. */
static const uint64_t VALUES[] = {
    0,
    1,
    2,
    3,
    UINT64_C(0x7fffffff),
    UINT64_C(0x80000000),
    UINT64_C(0xfffffffe),
    UINT64_C(0xffffffff),
    UINT64_C(0x100000000),
    UINT64_C(0x100000001),
    UINT64_C(0x1ffffffff),
    (UINT64_C(1) << 52) - 1,
    UINT64_C(1) << 52,
    (UINT64_C(1) << 53) - 1,
    (UINT64_C(1) << 53) + 1,
    (UINT64_C(1) << 53) + 3,
    (UINT64_C(1) << 54) + 2,
    (UINT64_C(1) << 63) - 1,
    UINT64_C(1) << 63,
    (UINT64_C(1) << 63) + 1024,
    (UINT64_C(1) << 63) + 1025,
    UINT64_MAX - 2048,
    UINT64_MAX - 1024,
    UINT64_MAX - 1023,
    UINT64_MAX - 1,
    UINT64_MAX,
};

static const double DOUBLES[] = {
    0.0,        DBL_TRUE_MIN, DBL_MIN,    0x1p-53,          0.5,           0.9999999999999999,   1.0,
    1.5,        3.9999999,    0x1p31,     0x1p32 - 0x1p-21, 0x1p32,        0x1p32 + 1,           0x1p52,
    0x1p52 + 1, 0x1p53,       0x1p53 + 2, 0x1p63,           0x1p63 + 2048, 0x1.fffffffffffffp63, 0x1p64,
    0x1p65,     0x1p1023,     DBL_MAX,    HUGE_VAL,
};

/* More of both, where nobody thought of a boundary. */
#define RANDOM_ROUNDS 20000

static uint64_t any_value(uint64_t *random)
{
    if (random_below(random, 3) == 0) {
        return next_random(random) >> random_below(random, 64);
    }
    return VALUES[random_below(random, COUNT(VALUES))] + random_below(random, 3) - 1;
}

static double any_double(uint64_t *random)
{
    if (random_below(random, 3) == 0) {
        return ldexp((double)(next_random(random) >> 11), (int)random_below(random, 90) - 70);
    }
    return DOUBLES[random_below(random, COUNT(DOUBLES))];
}

/* The operands of a round and what each function made of them, lane by lane. */
struct round {
    uint64_t a[LANES];
    uint64_t b[LANES];
    double x[LANES];
    double y[LANES];
    uint64_t yes;
};

static void fill(struct round *round, uint64_t *random)
{
    for (int i = 0; i < LANES; i++) {
        round->a[i] = any_value(random);
        round->b[i] = random_below(random, 4) == 0 ? round->a[i] : any_value(random);
        round->x[i] = any_double(random);
        round->y[i] = any_double(random);
    }
    round->yes = next_random(random) & ((1U << LANES) - 1);
}

static void same(const char *function, const struct round *round, int lane, uint64_t got, uint64_t expected)
{
    if (got != expected) {
        fail_msg("%s, lane %d of a %llx, b %llx, x %a, y %a, yes %llx: %llx, expected %llx", function, lane,
                 (unsigned long long)round->a[lane], (unsigned long long)round->b[lane], round->x[lane],
                 round->y[lane], (unsigned long long)round->yes, (unsigned long long)got,
                 (unsigned long long)expected);
    }
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Stores a vector and compares it with what plain C says of each lane. */
#define SAME_LANES(vector, expected)                                                                                 \
    do {                                                                                                             \
        uint64_t stored[LANES];                                                                                      \
        lanes_store(stored, (vector));                                                                               \
        for (int i = 0; i < LANES; i++) {                                                                            \
            same(#vector, round, i, stored[i], (expected));                                                          \
        }                                                                                                            \
    } while (0)

#define SAME_MASK(mask_expression, expected)                                                                         \
    do {                                                                                                             \
        uint64_t bits = mask_bits(mask_expression);                                                                  \
        for (int i = 0; i < LANES; i++) {                                                                            \
            same(#mask_expression, round, i, bits >> i & 1, (expected));                                             \
        }                                                                                                            \
        assert_int_equal(bits >> (LANES - 1) >> 1, 0);                                                               \
    } while (0)

static KERNEL_TARGET void check_integers(const struct round *round)
{
    lanes a = lanes_load(round->a, LANES);
    lanes b = lanes_load(round->b, LANES);
    mask yes = mask_of_bits(round->yes);
    const uint64_t *pa = round->a;
    const uint64_t *pb = round->b;
    SAME_LANES(a, pa[i]);
    SAME_LANES(lanes_set(pa[0]), pa[0]);
    SAME_LANES(lanes_add(a, b), pa[i] + pb[i]);
    SAME_LANES(lanes_or(a, b, lanes_set(4)), pa[i] | pb[i] | 4);
    SAME_LANES(lanes_select(yes, a, b), round->yes >> i & 1 ? pa[i] : pb[i]);
    SAME_MASK(lanes_equal(a, b), pa[i] == pb[i]);
    SAME_MASK(lanes_at_most(a, b), pa[i] <= pb[i]);
    SAME_MASK(yes, round->yes >> i & 1);
    SAME_MASK(mask_and(yes, lanes_equal(a, b)), (round->yes >> i & 1) && pa[i] == pb[i]);
    SAME_MASK(mask_or(yes, lanes_equal(a, b)), (round->yes >> i & 1) || pa[i] == pb[i]);
}

static KERNEL_TARGET void check_whole_vectors(const struct round *round)
{
    lanes a = lanes_load(round->a, LANES);
    bool large = false;
    for (int i = 0; i < LANES; i++) {
        large |= round->a[i] > INT32_MAX;
    }
    same("lanes_first", round, 0, lanes_first(a), round->a[0]);
    same("lanes_any_large", round, 0, lanes_any_large(a), large);
    uint64_t low[LANES];
    uint64_t high[LANES];
    for (int i = 0; i < LANES; i++) {
        low[i] = round->a[i] & UINT32_MAX;
        high[i] = round->b[i] & UINT32_MAX;
    }
    SAME_LANES(lanes_pack(lanes_load(high, LANES), lanes_load(low, LANES)), high[i] << 32 | low[i]);
}

/* Keys: they are below 2^63. */
static KERNEL_TARGET void check_keys(const struct round *round)
{
    uint64_t pa[LANES];
    uint64_t pb[LANES];
    uint64_t least = INT64_MAX;
    for (int i = 0; i < LANES; i++) {
        pa[i] = round->a[i] & INT64_MAX;
        pb[i] = round->b[i] & INT64_MAX;
        least = pa[i] < least ? pa[i] : least;
    }
    SAME_LANES(lanes_min(lanes_load(pa, LANES), lanes_load(pb, LANES)), pa[i] < pb[i] ? pa[i] : pb[i]);
    SAME_LANES(lanes_min_where(lanes_load(pa, LANES), mask_of_bits(round->yes), lanes_load(pb, LANES)),
               (round->yes >> i & 1) && pb[i] < pa[i] ? pb[i] : pa[i]);
    SAME_LANES(lanes_least(lanes_load(pa, LANES)), least);
}

/* Half words of two vectors. Where those of `a` and `b` are alike none is above the other. */
static KERNEL_TARGET void check_pairs(const struct round *round)
{
    uint32_t halves[2 * LANES];
    for (int i = 0; i < LANES; i++) {
        halves[i] = (uint32_t)round->a[i];
        halves[LANES + i] = (uint32_t)round->b[i];
    }
    uint32_t value = halves[LANES] == UINT32_MAX ? 0 : halves[LANES];
    pair above = pair_above(halves, value);
    SAME_MASK(pair_first(above), halves[i] > value);
    SAME_MASK(pair_second(above), halves[LANES + i] > value);
    pair some = pair_and(above, pair_of_bits(round->a[0]));
    SAME_MASK(pair_first(some), halves[i] > value && (round->a[0] >> i & 1) != 0);
    SAME_MASK(pair_second(some), halves[LANES + i] > value && (round->a[0] >> (LANES + i) & 1) != 0);
    uint64_t both = mask_bits(pair_first(above)) | mask_bits(pair_second(above)) << LANES;
    same("pair_bits", round, 0, pair_bits(above), both);
}

/* Parts of a vector, with zeros behind. */
static KERNEL_TARGET void check_parts(const struct round *round)
{
    for (size_t rows = 1; rows <= LANES; rows++) {
        SAME_LANES(lanes_load(round->a, rows), (size_t)i < rows ? round->a[i] : 0);
        SAME_LANES(lanes_bits_of(reals_load(round->x, rows)), (size_t)i < rows ? bits_of(round->x[i]) : 0);
    }
}

static KERNEL_TARGET void check_doubles(const struct round *round)
{
    reals x = reals_load(round->x, LANES);
    reals y = reals_load(round->y, LANES);
    lanes a = lanes_load(round->a, LANES);
    const double *px = round->x;
    const double *py = round->y;
    SAME_LANES(lanes_bits_of(reals_set(px[0])), bits_of(px[0]));
    SAME_LANES(lanes_bits_of(reals_of(a)), bits_of((double)round->a[i]));
    SAME_MASK(reals_at_most(x, y), px[i] <= py[i]);
    SAME_LANES(lanes_bits_of(reals_select(mask_of_bits(round->yes), x, y)),
               bits_of(round->yes >> i & 1 ? px[i] : py[i]));
    SAME_LANES(lanes_bits_of(reals_add(x, y)), bits_of(px[i] + py[i]));
    for (int i = 0; i < LANES; i++) { /* 0 x infinity is no number that the rule meets */
        if (isnan(px[i] * py[i])) {
            return;
        }
    }
    SAME_LANES(lanes_bits_of(reals_multiply(x, y)), bits_of(px[i] * py[i]));
}

static void vectors_do_what_plain_c_does(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        struct round round;
        fill(&round, &random);
        check_integers(&round);
        check_pairs(&round);
        check_whole_vectors(&round);
        check_keys(&round);
        check_parts(&round);
        check_doubles(&round);
    }
}

/* Leaves rubbish where the caller's next callee has its variables. */
static void litter_the_stack(void)
{
    volatile unsigned char litter[4096];
    for (size_t i = 0; i < sizeof litter; i++) {
        litter[i] = 0xa5;
    }
}

/* A compiler cannot see what this calls, and which registers that leaves alone. */
static void (*volatile unseen)(void) = litter_the_stack;

/* The sum of more masks' bits than there are registers that keep them over a call, which may be made or not. */
static KERNEL_TARGET __attribute__((noinline)) uint64_t sum_of_bits(const uint64_t *a, const uint64_t *b, bool called)
{
#define BITS(n) mask_bits(lanes_at_most(lanes_load(a + (n), LANES), lanes_load(b + (n), LANES)))
    uint64_t first = BITS(0);
    uint64_t second = BITS(1);
    uint64_t third = BITS(2);
    uint64_t fourth = BITS(3);
    uint64_t fifth = BITS(4);
    uint64_t sixth = BITS(5);
    uint64_t seventh = BITS(6);
    uint64_t eighth = BITS(7);
#undef BITS
    if (called) {
        unseen();
    }
    return first + second + third + fourth + fifth + sixth + seventh + eighth;
}

static void bits_of_a_mask_are_a_whole_integer(void **state)
{
    (void)state;
    uint64_t ones[LANES + 8];
    for (size_t i = 0; i < COUNT(ones); i++) {
        ones[i] = 1;
    }
    const uint64_t all = (UINT64_C(1) << LANES) - 1;
    unseen();
    assert_int_equal(sum_of_bits(ones, ones, true), 8 * all);
    assert_int_equal(sum_of_bits(ones, ones, false), 8 * all);
}

static KERNEL_TARGET size_t bits_in(uint64_t word)
{
    return count_bits(word);
}

static void bits_are_counted(void **state)
{
    (void)state;
    uint64_t random = 1;
    assert_int_equal(bits_in(0), 0);
    assert_int_equal(bits_in(UINT64_MAX), 64);
    for (int i = 0; i < 1000; i++) {
        uint64_t word = next_random(&random) & next_random(&random);
        size_t bits = 0;
        for (int place = 0; place < 64; place++) {
            bits += word >> place & 1;
        }
        assert_int_equal(bits_in(word), bits);
    }
}

int main(void)
{
    require_variant();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_do_what_plain_c_does),
        cmocka_unit_test(bits_of_a_mask_are_a_whole_integer),
        cmocka_unit_test(bits_are_counted),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
