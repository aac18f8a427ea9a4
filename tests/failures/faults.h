/* SPDX-License-Identifier: Apache-2.0 */
/* Makes allocations fail on request, and counts those that are not freed yet. */
#ifndef KVCA_FAULTS_H
#define KVCA_FAULTS_H

/* Which allocations fail: only that one, or all from there on. */
enum faults_kind { FAULTS_ONE, FAULTS_ALL };

/* From now on allocation number `first` fails, counted from 1; 0: none fails. */
void faults_begin(unsigned long first, enum faults_kind kind);

/* Ends that. Returns how many allocations there were in between. */
unsigned long faults_end(void);

long faults_live(void);

#endif
