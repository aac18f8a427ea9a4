/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the two engines of the model of a decode pool. */
#ifndef KVCA_TEST_ENGINES_H
#define KVCA_TEST_ENGINES_H

#include "replay/run.h"

/*
 * Replays a trace with both engines. Fails unless they agree in everything and lose nothing. `fast` is the run of the
 * fast one; free it.
 */
void check_engines_agree(const struct replay_options *options, const struct replay_trace *trace,
                         const struct replay_policy *policy, uint64_t seed, struct replay_run *fast);

#endif
