/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IEEE 754 doubles worked out in integers, so that neither the compiler's nor the processor's floating point has a
 * part in what the second witness says. For numbers that are not negative: all that the rule computes with.
 */
#ifndef KVCA_EXACT_H
#define KVCA_EXACT_H

#include <stdint.h>

/* The bits of a double >= 0 or of infinity. Their order as integers is that of the numbers. */
typedef uint64_t exact;

exact exact_of(double number);

/* Each rounded once, to the nearest double, and to the even one of two that are as near. */
exact exact_of_integer(uint64_t number);
exact exact_sum(exact a, exact b);
exact exact_product(exact a, exact b);

/* The largest integer that is not larger; 2^64 - 1 where that is past it. */
uint64_t exact_floor(exact a);

#endif
