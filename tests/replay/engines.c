/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/engines.h"

#include "support/test.h"

void check_engines_agree(const struct replay_options *options, const struct replay_trace *trace,
                         const struct replay_policy *policy, uint64_t seed, struct replay_run *fast)
{
    struct replay_run plain;
    replay_run(&replay_plain_engine, options, trace, policy, seed, &plain);
    replay_run(&replay_fast_engine, options, trace, policy, seed, fast);
    for (size_t i = 0; i < trace->count; i++) {
        assert_int_not_equal(fast->outcomes[i].end, REPLAY_UNFINISHED);
        assert_int_equal(fast->outcomes[i].end, plain.outcomes[i].end);
        if (fast->outcomes[i].admitted_s != plain.outcomes[i].admitted_s ||
            fast->outcomes[i].finished_s != plain.outcomes[i].finished_s) {
            fail_msg("seed %d, request %zu: admitted at %.17g and %.17g", (int)seed, i, fast->outcomes[i].admitted_s,
                     plain.outcomes[i].admitted_s);
        }
    }
    assert_int_equal(fast->left_blocks, 0);
    assert_int_equal(plain.left_blocks, 0);
    assert_int_equal(fast->preemptions, plain.preemptions);
    assert_int_equal(fast->recomputed_tokens, plain.recomputed_tokens);
    assert_int_equal(fast->over_capacity, plain.over_capacity);
    assert_int_equal(fast->fallbacks, plain.fallbacks);
    assert_int_equal(fast->passes, plain.passes);
    assert_true(fast->kv_imbalance == plain.kv_imbalance && fast->batch_imbalance == plain.batch_imbalance);
    assert_true(fast->used_block_seconds == plain.used_block_seconds);
    replay_run_free(&plain);
}
