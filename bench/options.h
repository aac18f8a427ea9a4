/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of the benchmarks say. Each ends the program where it is wrong. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#define MOST_SIZES 16

uint64_t option_number(const char *option, const char *text, uint64_t low, uint64_t high);

/* Numbers of ranks, with commas between. Returns how many there are. */
size_t option_ranks(const char *option, const char *text, size_t ranks[MOST_SIZES]);

/* The environment variable KVCA_VARIANT: what it names must be what runs. */
void option_variant(const char *runs);

#endif
