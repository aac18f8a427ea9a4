/* SPDX-License-Identifier: Apache-2.0 */
#include "support/exact.h"

#include <stdbool.h>
#include <string.h>

#define FRACTION_BITS 52
#define INFINITE (UINT64_C(0x7ff) << FRACTION_BITS)
#define LEAST_EXPONENT (-1074) /* of the last bit of a subnormal number */

struct wide {
    uint64_t high;
    uint64_t low;
};

/* A finite double: mantissa x 2^exponent. */
struct parts {
    uint64_t mantissa;
    int exponent;
};

static struct parts parts_of(exact a)
{
    uint64_t fraction = a & ((UINT64_C(1) << FRACTION_BITS) - 1);
    int field = (int)(a >> FRACTION_BITS);
    if (field == 0) {
        return (struct parts){fraction, LEAST_EXPONENT};
    }
    return (struct parts){fraction | UINT64_C(1) << FRACTION_BITS, field - 1 + LEAST_EXPONENT};
}

static struct wide shift_left(struct wide a, int bits)
{
    if (bits >= 64) {
        return (struct wide){a.low << (bits - 64), 0};
    }
    return bits == 0 ? a : (struct wide){a.high << bits | a.low >> (64 - bits), a.low << bits};
}

/* Sets the last bit if anything is lost. The lost bits are not needed one by one. */
static struct wide shift_right(struct wide a, int bits)
{
    for (; bits >= 64; bits -= 64) {
        a = (struct wide){0, a.high | (a.low != 0)};
    }
    if (bits == 0) {
        return a;
    }
    uint64_t lost = a.low << (64 - bits);
    return (struct wide){a.high >> bits, a.high << (64 - bits) | a.low >> bits | (lost != 0)};
}

static int length(struct wide a)
{
    int bits = 0;
    for (uint64_t part = a.high != 0 ? a.high : a.low; part != 0; part >>= 1) {
        bits++;
    }
    return a.high != 0 ? 64 + bits : bits;
}

static struct wide add(struct wide a, uint64_t b)
{
    uint64_t low = a.low + b;
    return (struct wide){a.high + (low < b), low};
}

static struct wide multiply(uint64_t a, uint64_t b)
{
    const uint64_t half = UINT32_MAX;
    struct wide product = {(a >> 32) * (b >> 32), (a & half) * (b & half)};
    product = add(product, (a >> 32) * (b & half) << 32);
    product = add(product, (a & half) * (b >> 32) << 32);
    product.high += (a >> 32) * (b & half) >> 32;
    product.high += (a & half) * (b >> 32) >> 32;
    return product;
}

/*
 * Rounds a x 2^exponent. First the number is shifted to two bits more than a double has. The last bit is set if
 * anything was below it.
 */
static exact rounded(struct wide a, int exponent)
{
    if (a.high == 0 && a.low == 0) {
        return 0;
    }
    int shift = length(a) - (FRACTION_BITS + 3);
    if (shift < LEAST_EXPONENT - 2 - exponent) {
        shift = LEAST_EXPONENT - 2 - exponent;
    }
    a = shift < 0 ? shift_left(a, -shift) : shift_right(a, shift);
    exponent += shift;
    uint64_t mantissa = a.low >> 2;
    bool up = (a.low & 3) == 3 || ((a.low & 3) == 2 && (mantissa & 1) == 1);
    if (exponent + 2 - LEAST_EXPONENT >= 0x7fe) {
        return INFINITE;
    }
    /* The mantissa's highest bit adds to the exponent's field, and so does a carry from rounding. */
    return ((uint64_t)(exponent + 2 - LEAST_EXPONENT) << FRACTION_BITS) + mantissa + up;
}

exact exact_of(double number)
{
    exact bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & (UINT64_MAX >> 1); /* -0 is 0 */
}

exact exact_of_integer(uint64_t number)
{
    return rounded((struct wide){0, number}, 0);
}

exact exact_sum(exact a, exact b)
{
    exact larger = a > b ? a : b;
    if (larger == INFINITE) {
        return INFINITE;
    }
    struct parts x = parts_of(larger);
    struct parts y = parts_of(a > b ? b : a);
    int apart = x.exponent - y.exponent;
    if (apart <= 64) {
        return rounded(add(shift_left((struct wide){0, x.mantissa}, apart), y.mantissa), y.exponent);
    }
    /* So far below, it only matters whether y is 0. */
    return rounded(add(shift_left((struct wide){0, x.mantissa}, 64), y.mantissa != 0), x.exponent - 64);
}

exact exact_product(exact a, exact b)
{
    if (a == INFINITE || b == INFINITE) {
        return INFINITE; /* the rule never multiplies 0 by infinity */
    }
    struct parts x = parts_of(a);
    struct parts y = parts_of(b);
    return rounded(multiply(x.mantissa, y.mantissa), x.exponent + y.exponent);
}

uint64_t exact_floor(exact a)
{
    struct parts x = parts_of(a);
    if (a == INFINITE || x.exponent > 63 - FRACTION_BITS) {
        return UINT64_MAX;
    }
    if (x.exponent >= 0) {
        return x.mantissa << x.exponent;
    }
    return x.exponent > -64 ? x.mantissa >> -x.exponent : 0;
}
