/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the figures: tables, targets, and a file for plots. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "measure.h"

void report_tables(const struct plan *plan, const struct results *results);
void report_pools(const struct plan *plan, const struct results *results);
void report_targets(const struct plan *plan, const struct results *results);

/* Warns if the same work takes different times in different rounds. */
void report_noise(const struct plan *plan, const struct results *results);

void report_csv(FILE *file, const struct plan *plan, const struct results *results);

#endif
