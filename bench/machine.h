/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what figures depend on: the machine, the build, and whether the machine is quiet. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

void machine_print(void);

/* Warns if other work keeps the machine busy at the start. */
void machine_warn_of_load(void);

#endif
