/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An input as a sequence of choices. Each takes only as many bytes as it needs. So a byte that is changed, inserted or
 * left out changes one choice, or moves all later ones. Past the end every choice is the first one, 0.
 */
#ifndef KVCA_FUZZ_BYTES_H
#define KVCA_FUZZ_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    const uint8_t *at;
    size_t left;
};

/* An integer of `width` bytes, the lowest first. */
uint64_t bytes_integer(struct bytes *bytes, size_t width);

/* One of 0 .. n - 1, for n >= 1. */
uint64_t bytes_below(struct bytes *bytes, uint64_t n);

/* Any integer: small, near a power of two or near the largest, or any bits at all. */
uint64_t bytes_any_integer(struct bytes *bytes);

/* Any double: a small one, a limit of the format, NaN, or any bits at all. */
double bytes_any_double(struct bytes *bytes);

#endif
