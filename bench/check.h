/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "trial.h"

/* Ends the benchmark where two subjects differ. */
void trial_check(struct trial *trial);

#endif
