/* SPDX-License-Identifier: Apache-2.0 */
/* What a figure means nothing without: the machine, the build, and whether the machine was quiet. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

void machine_print(void);

/* Warns where other work keeps the machine busy as the benchmark starts. */
void machine_warn_of_load(void);

#endif
