/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares what Frama-C 25 does not know of C11, POSIX and gcc and the core uses. Included before every file that Eva
 * analyses.
 *
 * Atomics: a load, and the value that an exchange finds, may be any value, as if other threads wrote at every moment. A
 * stored value stays until it is read. Only their owner reads and writes pools, so their stores are plain ones.
 */
#ifndef KVCA_EVA_C11_H
#define KVCA_EVA_C11_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define _Alignas(bytes)
#define _Alignof(type) 64 /* only used for kvca_policy */

#define TIME_UTC 1
int timespec_get(struct timespec *time, int base);
int getentropy(void *buffer, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);

/* Any bit up to the highest one. */
#define __builtin_ctzll(word) eva_count_trailing_zeros(word)
//@ requires has_a_bit: word != 0; assigns \result \from word;
int eva_count_trailing_zeros(unsigned long long word);

/* Any number that does not depend on the address: otherwise Eva would take all that follows from it for a pointer. */
//@ assigns \result \from \nothing;
uint64_t kvca_unpredictable_seed(const void *address);

/* Replaces stdatomic.h; this is its guard. */
#define __FC_STDATOMIC
#define _Atomic
#define ATOMIC_LLONG_LOCK_FREE 2
#define atomic_init(object, value) (*(object) = (value))
#define atomic_load_explicit(object, order) eva_load(object)
#define atomic_store_explicit(object, value, order) eva_store((void *)(object), sizeof *(object), (value))
#define atomic_fetch_add_explicit(object, value, order) eva_fetch_add((object), (value))
#define atomic_compare_exchange_strong_explicit(object, expected, value, success, failure)                           \
    eva_compare_exchange((object), (expected), (value))

uint64_t eva_load(const uint64_t *object);
void eva_store(void *object, size_t bytes, uint64_t value);
uint64_t eva_fetch_add(uint64_t *object, uint64_t value);
bool eva_compare_exchange(uint64_t *object, uint64_t *expected, uint64_t value);

#endif
