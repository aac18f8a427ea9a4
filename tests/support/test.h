/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the suites: cmocka with its includes, and rank sets that can be printed. */
#ifndef KVCA_TEST_H
#define KVCA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kvca/kvca.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Initialises a kvca_params. */
#define PARAMS(fraction, priority, weight, blocks)                                                                   \
    {                                                                                                                \
        sizeof(kvca_params), (fraction), (weight), (blocks), (priority)                                              \
    }

/* The largest rank set of the suites. */
#define MOST_RANKS 200

struct rank_set {
    size_t count;
    uint64_t worker_id[MOST_RANKS];
    uint32_t dp_rank[MOST_RANKS];
    uint64_t decode_cost_blocks[MOST_RANKS];
    uint64_t active_requests[MOST_RANKS];
    uint64_t total_kv_blocks[MOST_RANKS];
    double preferred_taint_multiplier[MOST_RANKS];
    uint64_t request_blocks;
};

kvca_ranks ranks_of(const struct rank_set *set);

void print_rank_set(const kvca_params *params, const struct rank_set *set);

/*
 * Ends the program as skipped (77 for Meson) if KVCA_VARIANT names a variant of the rule that this processor lacks.
 * Suites that run once for each variant begin with it.
 */
void require_variant(void);

/*
 * The number of rounds of a long test: `usual`, or one in KVCA_TEST_SHARE of them if that is set, or KVCA_TEST_TIMES
 * times as many.
 */
size_t rounds(size_t usual);

/* A policy with a fixed seed. Fails the test if there is none. */
kvca_policy *make_policy(kvca_params params);

/* Makes a file with this content and writes its name. The caller unlinks it. Fails the test if that is not possible. */
#define TEST_PATH 32
void make_file(char path[TEST_PATH], const void *content, size_t size);

/* The same numbers in every run. This is SplitMix64, written a second time on purpose. */
uint64_t next_random(uint64_t *state);
uint64_t random_below(uint64_t *state, uint64_t n);

#endif
