/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the analysed code calls and that have no body for Eva. Each allows at least what the real one may do.
 */
#include <float.h>
#include <stdlib.h>

#include "any.h"

/* Every read of a volatile object is any value of its type. */
static volatile uint64_t word;
static volatile uint32_t half_word;

uint64_t any_word(void)
{
    return word;
}

uint32_t any_half_word(void)
{
    return half_word;
}

bool any_bool(void)
{
    return (word & 1) != 0;
}

void make_any(void *bytes, size_t count)
{
    Frama_C_make_unknown(bytes, count);
}

int params_case;

static double any_number(void)
{
    double infinite = any_bool() ? INFINITY : -INFINITY;
    return any_bool() ? infinite : Frama_C_double_interval(-DBL_MAX, DBL_MAX);
}

static double any_negative_or_finite(void)
{
    return any_bool() ? -INFINITY : Frama_C_double_interval(-DBL_MAX, DBL_MAX);
}

kvca_params any_params(void)
{
    kvca_params params = {
        .size = sizeof params,
        .capacity_fraction = any_negative_or_finite(),
        .count_priority = any_bool(),
        .decode_active_request_weight = any_number(),
        .capacity_blocks = any_word(),
    };
    params_case = any_of(0, 2);
    if (params_case != 0) {
        params.capacity_fraction = params_case == 1 ? 1.0 : KVCA_NO_CAPACITY_FILTER;
    }
    return params;
}

uint64_t eva_load(const uint64_t *object)
{
    return *object ^ any_word();
}

void eva_store(void *object, size_t bytes, uint64_t value)
{
    if (bytes == sizeof(uint32_t)) {
        *(uint32_t *)object = (uint32_t)value;
    } else {
        *(uint64_t *)object = value;
    }
}

uint64_t eva_fetch_add(uint64_t *object, uint64_t value)
{
    uint64_t found = eva_load(object);
    *object = found + value;
    return found;
}

bool eva_compare_exchange(uint64_t *object, uint64_t *expected, uint64_t value)
{
    uint64_t found = eva_load(object);
    if (found == *expected && any_bool()) {
        *object = value;
        return true;
    }
    *expected = found;
    return false;
}

/* The block has the alignment of any other. The core asks only for what its own checks of a caller's memory accept. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    (void)alignment;
    return malloc(bytes);
}

int getentropy(void *buffer, size_t bytes)
{
    if (any_bool()) {
        return -1;
    }
    make_any(buffer, bytes);
    return 0;
}

int timespec_get(struct timespec *time, int base)
{
    time->tv_sec = (time_t)any_word();
    time->tv_nsec = Frama_C_long_interval(0, 999999999);
    return base;
}

int eva_count_trailing_zeros(unsigned long long word)
{
    int highest = 0;
    while (highest < 63 && word >> highest > 1) {
        highest++;
    }
    return Frama_C_interval(0, highest);
}
