/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a trace. If it is short, both engines replay it. */
#include "message.h"

#include "replay/trace_field.h"
#include "replay/engines.h"

#define NAME "trace"

/* A replay takes a pass for each token of output, so their number is limited to what takes a moment. */
#define MOST_REQUESTS 200
#define MOST_OUTPUT 2000

static void check_trace(const struct replay_trace *trace)
{
    assert_true(trace->count > 0 && trace->unsorted < trace->count);
    double before = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct replay_request *request = &trace->requests[i];
        assert_true(request->arrival_s >= before && request->arrival_s <= REPLAY_MOST_SECONDS);
        assert_true(request->prompt_tokens <= REPLAY_MOST_TOKENS && request->output_tokens <= REPLAY_MOST_TOKENS);
        before = request->arrival_s;
    }
    assert_true(trace->requests[0].arrival_s == 0);
}

static void check_equal(const struct replay_trace *a, const struct replay_trace *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->unsorted, b->unsorted);
    assert_memory_equal(a->requests, b->requests, a->count * sizeof *a->requests);
}

static bool is_short(const struct replay_trace *trace)
{
    uint64_t output = 0;
    for (size_t i = 0; i < trace->count; i++) {
        output += trace->requests[i].output_tokens;
    }
    return trace->count <= MOST_REQUESTS && output <= MOST_OUTPUT;
}

static void replay_once(const struct replay_options *options, const struct replay_trace *trace,
                        const struct replay_policy *policy)
{
    struct replay_run run;
    check_engines_agree(options, trace, policy, 1, &run);
    replay_run_free(&run);
}

/*
 * Two pools: one that is so small that short traces fill it, in lockstep; and one with independent ranks and all
 * options.
 */
static void replay(const struct replay_trace *trace)
{
    static const uint64_t capacities[] = {8, 5, 40};
    const struct replay_options lockstep = {
        .ranks = COUNT(capacities), .capacities = capacities, .block_size = 16, .max_num_seqs = 4, .speed = 1};
    struct replay_options independent = lockstep;
    independent.independent = true;
    independent.hold = true;
    independent.track_output_blocks = true;
    independent.watermark = 0.01;
    independent.batch_ms = 0.5;
    independent.speed = 1000;
    const struct replay_policy usual = {.kind = REPLAY_KVCA,
                                        .params = {sizeof(kvca_params), KVCA_NO_CAPACITY_FILTER, 1.0, 0, false}};
    const struct replay_policy kvca = {.kind = REPLAY_KVCA, .params = KVCA_PARAMS_DEFAULT};
    replay_once(&lockstep, trace, &usual);
    replay_once(&independent, trace, &kvca);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct replay_trace trace = {.count = 77};
    struct replay_trace again;
    kvca_error error = {.size = sizeof error};
    message_spoil(&error);
    kvca_status status = replay_trace_read(text, size, NAME, &trace, &error);
    assert_int_equal(replay_trace_read(text, size, NAME, &again, NULL), status);
    if (status != KVCA_OK) {
        assert_true(status == KVCA_ERR_CONFIG || status == KVCA_ERR_YAML || status == KVCA_ERR_TOO_LARGE);
        assert_int_equal(trace.count, 77);
        message_check(&error, status, NAME, text, size);
        return 0;
    }
    check_trace(&trace);
    check_equal(&trace, &again);
    if (is_short(&trace)) {
        replay(&trace);
    }
    replay_trace_free(&trace);
    replay_trace_free(&again);
    return 0;
}
