/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Frama-C 25 does not know of C11, POSIX and gcc, as the core uses it. Included before every file that Eva analyses.
 *
 * Atomics: a load, and what an exchange finds, may be any value, as if other threads wrote at every moment; what is
 * stored is there until someone looks. Pools are read and written by their owner alone, so their stores are plain ones.
 */
#ifndef KVCA_EVA_C11_H
#define KVCA_EVA_C11_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define _Alignas(bytes)
#define _Alignof(type) 64 /* of the one type that is asked about: kvca_policy */

#define TIME_UTC 1
int timespec_get(struct timespec *time, int base);
int getentropy(void *buffer, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);

/* Any bit up to the highest one. */
#define __builtin_ctzll(word) eva_count_trailing_zeros(word)
//@ requires has_a_bit: word != 0; assigns \result \from word;
int eva_count_trailing_zeros(unsigned long long word);

/* Any number, without the address in it: Eva would take what is made of it for a pointer from there on. */
//@ assigns \result \from \nothing;
uint64_t kvca_unpredictable_seed(const void *address);

/* Instead of stdatomic.h, whose guard this is. */
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
