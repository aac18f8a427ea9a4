/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when requests are routed and how long passes last. In lockstep there is one clock, and all ranks make their
 * passes together. Independent ranks each have a clock: the time at which their pass ends.
 */
#include "replay/run.h"

#include <math.h>
#include <stdlib.h>

#include "program/fail.h"
#include "replay/router.h"

struct state {
    const struct replay_engine *engine;
    const struct replay_options *options;
    const struct replay_trace *trace;
    struct replay_router router;
    struct replay_listener listener;
    struct replay_ranks *ranks;
    struct replay_run *run;
    double now;
    size_t next;         /* the request to route next; never a dropped one */
    double recompute_ms; /* of the rank that admits */
    double *pass_ends;   /* of each independent rank; infinite if idle */
    double kv_ratios;    /* sums over passes */
    double batch_ratios;
    uint64_t kv_samples;
    uint64_t batch_samples;
};

/* The step times are the polynomial models of decode and prefill in the mocker of NVIDIA Dynamo. */
static double decode_ms(double p)
{
    return -25.74 * p * p + 54.01 * p + 5.74;
}

static double prefill_ms(double tokens)
{
    return 4.209989e-07 * tokens * tokens + 1.518344e-02 * tokens + 16.50142;
}

static double arrival(const struct state *state, size_t request)
{
    return replay_arrival_s(state->options, &state->trace->requests[request]);
}

static void on_admitted(void *user, size_t request, uint64_t context, bool again)
{
    struct state *state = user;
    if (again) {
        state->recompute_ms += prefill_ms((double)context);
        state->run->recomputed_tokens += context;
    } else {
        state->run->outcomes[request].admitted_s = state->now;
    }
}

static void on_opened(void *user, size_t request)
{
    struct state *state = user;
    if (state->options->track_output_blocks) {
        replay_router_grow(&state->router, request);
    }
}

static void on_preempted(void *user, size_t request)
{
    struct state *state = user;
    (void)request;
    state->run->preemptions++;
}

static void on_finished(void *user, size_t request)
{
    struct state *state = user;
    state->run->outcomes[request].end = REPLAY_COMPLETED;
    state->run->outcomes[request].finished_s = state->now;
    replay_router_release(&state->router, request);
}

static uint64_t final_blocks(const struct state *state, size_t request)
{
    const struct replay_request *asked = &state->trace->requests[request];
    return replay_blocks(state->options, asked->prompt_tokens + asked->output_tokens);
}

static bool fits_somewhere(const struct state *state, size_t request)
{
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        if (final_blocks(state, request) <= state->options->capacities[rank]) {
            return true;
        }
    }
    return false;
}

/* Skips requests that are dropped. */
static void skip_dropped(struct state *state)
{
    while (state->next < state->trace->count) {
        const struct replay_request *asked = &state->trace->requests[state->next];
        if (asked->output_tokens > 0 && fits_somewhere(state, state->next)) {
            return;
        }
        state->run->outcomes[state->next++].end = REPLAY_DROPPED;
    }
}

/* Routes arrived requests in order, until one is held. */
static void route_arrived(struct state *state)
{
    while (state->next < state->trace->count && arrival(state, state->next) <= state->now) {
        size_t request = state->next;
        size_t rank;
        if (!replay_router_route(&state->router, request, &rank)) {
            return;
        }
        if (final_blocks(state, request) > state->options->capacities[rank]) {
            state->run->outcomes[request].end = REPLAY_STUCK;
            replay_router_release(&state->router, request);
        } else {
            state->engine->enqueue(state->ranks, rank, request);
        }
        state->next++;
        skip_dropped(state);
    }
}

/* Admits on a rank. Returns the ms that its pass takes, or 0 if nothing runs. */
static double begin_pass(struct state *state, size_t rank)
{
    state->recompute_ms = 0.0;
    state->engine->admit(state->ranks, rank);
    struct replay_load load = state->engine->load(state->ranks, rank);
    if (load.running == 0) {
        return 0.0;
    }
    double room = (double)state->options->capacities[rank] * (double)state->options->block_size;
    double p = (double)load.context_tokens / room;
    p = p > 1.0 ? 1.0 : p;
    return decode_ms(p) + state->options->batch_ms * (double)load.running + state->recompute_ms;
}

/* Adds the ratio of the largest to the mean, for `passes` passes. */
static void sample(uint64_t most, uint64_t sum, size_t ranks, uint64_t passes, double *ratios, uint64_t *samples)
{
    if (sum > 0) {
        *ratios += (double)passes * ((double)most / ((double)sum / (double)ranks));
        *samples += passes;
    }
}

/* Samples how uneven blocks in use and running sequences are between ranks, at the beginning of passes. */
static void sample_imbalance(struct state *state, uint64_t passes)
{
    uint64_t most_blocks = 0;
    uint64_t all_blocks = 0;
    uint64_t most_running = 0;
    uint64_t all_running = 0;
    size_t ranks = state->options->ranks;
    for (size_t rank = 0; rank < ranks; rank++) {
        struct replay_load load = state->engine->load(state->ranks, rank);
        most_blocks = load.used_blocks > most_blocks ? load.used_blocks : most_blocks;
        most_running = load.running > most_running ? load.running : most_running;
        all_blocks += load.used_blocks;
        all_running += load.running;
    }
    sample(most_blocks, all_blocks, ranks, passes, &state->kv_ratios, &state->kv_samples);
    sample(most_running, all_running, ranks, passes, &state->batch_ratios, &state->batch_samples);
}

static void count_use(struct state *state, size_t rank, double seconds)
{
    struct replay_load load = state->engine->load(state->ranks, rank);
    state->run->used_block_seconds += (double)load.used_blocks * seconds;
}

static bool is_over(const struct state *state)
{
    return state->next == state->trace->count && state->router.in_flight == 0;
}

static void pass_in_lockstep(struct state *state)
{
    double slowest_ms = 0.0;
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        double ms = begin_pass(state, rank);
        slowest_ms = ms > slowest_ms ? ms : slowest_ms;
    }
    if (slowest_ms == 0.0) {
        return;
    }
    sample_imbalance(state, 1);
    state->run->passes++;
    state->now += slowest_ms / 1000.0;
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        count_use(state, rank, slowest_ms / 1000.0);
        state->engine->emit(state->ranks, rank);
    }
}

static void run_in_lockstep(struct state *state)
{
    while (!is_over(state)) {
        bool idle = state->router.in_flight == 0;
        if (idle && arrival(state, state->next) > state->now) {
            state->now = arrival(state, state->next);
        }
        route_arrived(state);
        pass_in_lockstep(state);
    }
}

/* The time of the next end of a pass or arrival. A held request has arrived and waits for the end of a pass. */
static double next_event(const struct state *state)
{
    double time = HUGE_VAL;
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        time = state->pass_ends[rank] < time ? state->pass_ends[rank] : time;
    }
    bool waits_for_arrival = state->next < state->trace->count && arrival(state, state->next) > state->now;
    if (waits_for_arrival && arrival(state, state->next) < time) {
        time = arrival(state, state->next);
    }
    return time;
}

/* Starts a pass on every idle rank that has work. */
static void start_idle_ranks(struct state *state)
{
    uint64_t started = 0;
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        double ms = isinf(state->pass_ends[rank]) ? begin_pass(state, rank) : 0.0;
        if (ms > 0.0) {
            state->pass_ends[rank] = state->now + ms / 1000.0;
            count_use(state, rank, ms / 1000.0);
            state->run->passes++;
            started++;
        }
    }
    if (started > 0) {
        sample_imbalance(state, started);
    }
}

static void end_passes(struct state *state)
{
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        if (state->pass_ends[rank] <= state->now) {
            state->pass_ends[rank] = HUGE_VAL;
            state->engine->emit(state->ranks, rank);
        }
    }
}

static void run_independently(struct state *state)
{
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        state->pass_ends[rank] = HUGE_VAL;
    }
    while (!is_over(state)) {
        route_arrived(state);
        start_idle_ranks(state);
        double time = next_event(state);
        if (!isinf(time)) {
            state->now = time;
            end_passes(state);
        }
    }
}

static uint64_t used_blocks(const struct state *state)
{
    uint64_t blocks = 0;
    for (size_t rank = 0; rank < state->options->ranks; rank++) {
        struct replay_load load = state->engine->load(state->ranks, rank);
        blocks += load.used_blocks + load.running + load.queued;
    }
    return blocks;
}

static void report(struct state *state)
{
    struct replay_run *run = state->run;
    run->over_capacity = state->router.over_capacity;
    run->over_capacity_avoidable = state->router.over_capacity_avoidable;
    run->fallbacks = state->router.fallbacks;
    run->kv_imbalance = state->kv_samples > 0 ? state->kv_ratios / (double)state->kv_samples : 0.0;
    run->batch_imbalance = state->batch_samples > 0 ? state->batch_ratios / (double)state->batch_samples : 0.0;
    run->left_blocks = used_blocks(state) + replay_router_booked_blocks(&state->router);
}

void replay_run(const struct replay_engine *engine, const struct replay_options *options,
                const struct replay_trace *trace, const struct replay_policy *policy, uint64_t seed,
                struct replay_run *run)
{
    *run = (struct replay_run){.outcomes = program_resize(NULL, trace->count * sizeof *run->outcomes)};
    for (size_t request = 0; request < trace->count; request++) {
        run->outcomes[request] = (struct replay_outcome){.end = REPLAY_UNFINISHED};
    }
    struct state state = {.engine = engine, .options = options, .trace = trace, .run = run};
    state.listener = (struct replay_listener){&state, on_admitted, on_opened, on_preempted, on_finished};
    replay_router_init(&state.router, options, trace, policy, seed);
    state.ranks = engine->make(options, trace, &state.listener);
    state.pass_ends = program_resize(NULL, options->ranks * sizeof *state.pass_ends);
    skip_dropped(&state);
    if (options->independent) {
        run_independently(&state);
    } else {
        run_in_lockstep(&state);
    }
    report(&state);
    free(state.pass_ends);
    engine->free(state.ranks);
    replay_router_free(&state.router);
}

void replay_run_free(struct replay_run *run)
{
    free(run->outcomes);
}
