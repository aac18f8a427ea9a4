/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IEEE 754 doubles in integers, so that the second witness does not depend on the floating point of compiler and
 * processor. Only for numbers that are not negative, which is all that the rule needs.
 */
#ifndef KVCA_EXACT_H
#define KVCA_EXACT_H

#include <stdint.h>

/* The bits of a double >= 0 or of infinity. Their order as integers is the order of the numbers. */
typedef uint64_t exact;

exact exact_of(double number);

/* Each result is rounded once, to the nearest double, and to the even one if two are equally near. */
exact exact_of_integer(uint64_t number);
exact exact_sum(exact a, exact b);
exact exact_product(exact a, exact b);

/* The largest integer that is not larger; 2^64 - 1 if that would overflow. */
uint64_t exact_floor(exact a);

#endif
