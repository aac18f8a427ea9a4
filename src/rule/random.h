/* SPDX-License-Identifier: Apache-2.0 */
/* The tie-break generator, and the mixing function that it shares with the set of warned ranks. */
#ifndef KVCA_RANDOM_H
#define KVCA_RANDOM_H

#include <stdatomic.h>
#include <stdint.h>

/* A bijection in which every input bit moves every output bit: the finaliser of SplitMix64, see random.c. */
uint64_t kvca_mix(uint64_t value);

/* Number `index`, counted from 0, of the sequence that `seed` gives. */
uint64_t kvca_nth(uint64_t seed, uint64_t index);

/*
 * Draws uniformly from 0 .. n - 1, for n >= 1. Threads may share `state`: each number is taken by one atomic
 * addition, so that no two draws use the same number.
 */
uint64_t kvca_draw(_Atomic uint64_t *state, uint64_t n);

/* A seed that differs between processes. `address` is that of the object that the seed is for. */
uint64_t kvca_unpredictable_seed(const void *address);

/* A hash of a rank's identity. */
uint64_t kvca_hash_rank(uint64_t worker_id, uint32_t dp_rank);

#endif
