/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail when a test asks for it, and the count of those that are still there. */
#ifndef KVCA_FAULTS_H
#define KVCA_FAULTS_H

/* How many allocations fail: that one, or all from there on. */
enum faults_kind { FAULTS_ONE, FAULTS_ALL };

/* From now on the allocation number `first` fails, counted from 1; 0: none does. */
void faults_begin(unsigned long first, enum faults_kind kind);

/* Ends that. Returns how many allocations were asked for since. */
unsigned long faults_end(void);

/* The blocks that were allocated and not freed. */
long faults_live(void);

#endif
