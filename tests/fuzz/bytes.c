/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

uint64_t bytes_integer(struct bytes *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width && bytes->left > 0; i++) {
        value |= (uint64_t)*bytes->at << (8 * i);
        bytes->at++;
        bytes->left--;
    }
    return value;
}

uint64_t bytes_below(struct bytes *bytes, uint64_t n)
{
    size_t width = n <= 1 ? 0 : n <= 0x100 ? 1 : n <= 0x10000 ? 2 : 8;
    return bytes_integer(bytes, width) % n;
}

uint64_t bytes_any_integer(struct bytes *bytes)
{
    uint64_t form = bytes_below(bytes, 256);
    switch (form % 4) {
    case 0:
        return form / 4;
    case 1: /* 2^k, one less or one more */
        return (UINT64_C(1) << form / 4) + bytes_below(bytes, 3) - 1;
    case 2:
        return UINT64_MAX - form / 4;
    default:
        return bytes_integer(bytes, form / 4 % 8 + 1);
    }
}

double bytes_any_double(struct bytes *bytes)
{
    static const double limits[] = {
        0.0,      -0.0,      1.0,         -1.0,         0.5,         1.5,
        DBL_MAX,  -DBL_MAX,  DBL_MIN,     DBL_TRUE_MIN, DBL_EPSILON, -DBL_TRUE_MIN,
        HUGE_VAL, -HUGE_VAL, (double)NAN, -(double)NAN, 0x1p19,      0x1.0000000000001p19,
        0x1p53,   0x1p64,    1 + 0x1p-52, 1 - 0x1p-53,  0x1p-53,     0x1p-1022 - 0x1p-1074,
    };
    uint64_t form = bytes_below(bytes, 256);
    switch (form % 4) {
    case 0:
        return (double)(form / 4) / 8;
    case 1:
        return limits[form / 4 % COUNT(limits)];
    case 2:
        return ldexp(1 + (double)bytes_below(bytes, 256) / 256, (int)(form / 4) - 32);
    default: {
        uint64_t bits = bytes_integer(bytes, 8);
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    }
}
