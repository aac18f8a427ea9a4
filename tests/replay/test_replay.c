/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a decode pool: traces small enough to work out by hand, what every run conserves, and the two engines
 * compared with each other.
 */
#include "support/test.h"

#include <math.h>

#include "replay/metrics.h"
#include "replay/engines.h"

#define MOST_REQUESTS 8
#define MOST_PASSES 10

/*
 * A run on paper. Blocks have 4 tokens. For each pass: the context tokens of its batch, which give its length, and how
 * many contexts were computed again in it. For each request: the number of passes before it was admitted and before it
 * finished. There is one rank, unless a row says otherwise.
 */
struct paper {
    const char *name;
    const char *policy;
    uint64_t capacity;
    uint64_t max_num_seqs;
    double watermark;
    double batch_ms;
    bool hold;
    struct replay_request requests[MOST_REQUESTS];
    size_t count;
    uint64_t contexts[MOST_PASSES];
    uint64_t running[MOST_PASSES];
    uint64_t recomputed[MOST_PASSES][2];
    size_t passes;
    int admitted[MOST_REQUESTS];
    int finished[MOST_REQUESTS];
    uint64_t preemptions;
    uint64_t over_capacity;
};

static const struct paper PAPERS[] = {
    {
        .name = "one request: its last token takes a slot, too",
        .capacity = 2,
        .requests = {{0, 4, 3}},
        .count = 1,
        .contexts = {4, 5, 6},
        .running = {1, 1, 1},
        .passes = 3,
        .admitted = {0},
        .finished = {3},
    },
    {
        .name = "two requests share passes",
        .capacity = 8,
        .batch_ms = 2.5,
        .requests = {{0, 3, 2}, {0, 4, 2}},
        .count = 2,
        .contexts = {7, 9},
        .running = {2, 2},
        .passes = 2,
        .admitted = {0, 0},
        .finished = {2, 2},
    },
    {
        .name = "no prompt: the first token opens a block",
        .capacity = 1,
        .requests = {{0, 0, 1}},
        .count = 1,
        .contexts = {0},
        .running = {1},
        .passes = 1,
        .admitted = {0},
        .finished = {1},
    },
    {
        .name = "admission waits for blocks",
        .capacity = 3,
        .requests = {{0, 8, 2}, {0, 4, 1}},
        .count = 2,
        .contexts = {8, 9, 4},
        .running = {1, 1, 1},
        .passes = 3,
        .admitted = {0, 2},
        .finished = {2, 3},
    },
    {
        .name = "admission leaves the watermark free, but not on an idle rank",
        .capacity = 8,
        .watermark = 0.5,
        .requests = {{0, 24, 1}, {0, 12, 1}},
        .count = 2,
        .contexts = {24, 12},
        .running = {1, 1},
        .passes = 2,
        .admitted = {0, 1},
        .finished = {1, 2},
        .over_capacity = 1,
    },
    {
        .name = "exactly the watermark may stay free",
        .capacity = 8,
        .watermark = 0.375,
        .requests = {{0, 8, 1}, {0, 12, 1}},
        .count = 2,
        .contexts = {20},
        .running = {2},
        .passes = 1,
        .admitted = {0, 0},
        .finished = {1, 1},
    },
    {
        .name = "one sequence at a time: a waiting one costs nothing",
        .capacity = 8,
        .max_num_seqs = 1,
        .batch_ms = 2.5,
        .requests = {{0, 4, 1}, {0, 4, 1}},
        .count = 2,
        .contexts = {4, 4},
        .running = {1, 1},
        .passes = 2,
        .admitted = {0, 1},
        .finished = {1, 2},
    },
    {
        .name = "the emitting sequence is the newest: it preempts itself",
        .capacity = 3,
        .requests = {{0, 4, 5}, {0, 4, 2}},
        .count = 2,
        .contexts = {8, 5, 6, 7, 8, 4, 5},
        .running = {2, 1, 1, 1, 1, 1, 1},
        .recomputed = {[5] = {4}},
        .passes = 7,
        .admitted = {0, 0},
        .finished = {5, 7},
        .preemptions = 1,
    },
    {
        .name = "an older sequence preempts the newest, whose context is computed again",
        .capacity = 3,
        .requests = {{0, 3, 3}, {0, 4, 2}},
        .count = 2,
        .contexts = {7, 9, 5, 5},
        .running = {2, 2, 1, 1},
        .recomputed = {[3] = {5}},
        .passes = 4,
        .admitted = {0, 0},
        .finished = {3, 4},
        .preemptions = 1,
    },
    {
        .name = "two victims in one pass",
        .capacity = 4,
        .requests = {{0, 3, 2}, {0, 3, 2}, {0, 1, 2}, {0, 1, 2}},
        .count = 4,
        .contexts = {8, 12, 4},
        .running = {4, 4, 2},
        .recomputed = {[2] = {2, 2}},
        .passes = 3,
        .admitted = {0, 0, 0, 0},
        .finished = {2, 2, 3, 3},
        .preemptions = 2,
    },
    {
        .name = "placed where it does not fit",
        .policy = "kvca",
        .capacity = 4,
        .requests = {{0, 12, 2}, {0, 8, 1}},
        .count = 2,
        .contexts = {12, 13, 8},
        .running = {1, 1, 1},
        .passes = 3,
        .admitted = {0, 2},
        .finished = {2, 3},
        .over_capacity = 1,
    },
    {
        .name = "held until it fits, and those behind it wait, too",
        .policy = "kvca",
        .capacity = 4,
        .hold = true,
        .requests = {{0, 12, 2}, {0, 8, 1}, {0, 3, 1}},
        .count = 3,
        .contexts = {12, 13, 11},
        .running = {1, 1, 2},
        .passes = 3,
        .admitted = {0, 2, 2},
        .finished = {2, 3, 3},
    },
};

/* The step times, written a second time. */
static double step_ms(const struct paper *paper, size_t pass)
{
    double p = (double)paper->contexts[pass] / ((double)paper->capacity * 4);
    p = p > 1 ? 1 : p;
    double ms = -25.74 * p * p + 54.01 * p + 5.74 + paper->batch_ms * (double)paper->running[pass];
    for (size_t i = 0; i < 2; i++) {
        double n = (double)paper->recomputed[pass][i];
        ms += n > 0 ? 4.209989e-07 * n * n + 1.518344e-02 * n + 16.50142 : 0;
    }
    return ms;
}

static void check_time(double found, const struct paper *paper, int passes, const char *what, size_t request)
{
    double expected = 0;
    for (int pass = 0; pass < passes; pass++) {
        expected += step_ms(paper, (size_t)pass) / 1000;
    }
    if (fabs(found - expected) > 1e-12) {
        fail_msg("%s: request %zu %s at %.9g s, on paper after %d passes at %.9g s", paper->name, request, what,
                 found, passes, expected);
    }
}

static struct replay_policy policy_named(const char *name)
{
    struct replay_policy policy;
    kvca_error error = {.size = sizeof error};
    if (replay_policy_parse(name, &policy, &error) != KVCA_OK) {
        fail_msg("%s", error.message);
    }
    return policy;
}

static void check_paper(const struct paper *paper, const struct replay_engine *engine, bool independent)
{
    struct replay_options options = {
        .ranks = 1,
        .capacities = &paper->capacity,
        .block_size = 4,
        .max_num_seqs = paper->max_num_seqs ? paper->max_num_seqs : 100,
        .watermark = paper->watermark,
        .batch_ms = paper->batch_ms,
        .speed = 1,
        .hold = paper->hold,
        .independent = independent,
    };
    struct replay_request requests[MOST_REQUESTS];
    memcpy(requests, paper->requests, sizeof requests);
    struct replay_trace trace = {.requests = requests, .count = paper->count};
    struct replay_policy policy = policy_named(paper->policy ? paper->policy : "round_robin");
    struct replay_run run;
    replay_run(engine, &options, &trace, &policy, 0, &run);
    uint64_t recomputed = 0;
    for (size_t pass = 0; pass < paper->passes; pass++) {
        recomputed += paper->recomputed[pass][0] + paper->recomputed[pass][1];
    }
    assert_int_equal(run.passes, paper->passes);
    assert_int_equal(run.preemptions, paper->preemptions);
    assert_int_equal(run.recomputed_tokens, recomputed);
    assert_int_equal(run.over_capacity, paper->over_capacity);
    assert_int_equal(run.over_capacity_avoidable, 0);
    assert_int_equal(run.left_blocks, 0);
    for (size_t request = 0; request < paper->count; request++) {
        assert_int_equal(run.outcomes[request].end, REPLAY_COMPLETED);
        check_time(run.outcomes[request].admitted_s, paper, paper->admitted[request], "admitted", request);
        check_time(run.outcomes[request].finished_s, paper, paper->finished[request], "finished", request);
    }
    replay_run_free(&run);
}

static void a_run_matches_paper(void **state)
{
    const struct paper *paper = *state;
    for (int independent = 0; independent < 2; independent++) {
        check_paper(paper, &replay_plain_engine, independent);
        check_paper(paper, &replay_fast_engine, independent);
    }
}

/* Requests that end without a run: they fit on no rank, or were sent to a rank on which they never fit. */
static void impossible_requests_are_dropped_or_stuck(void **state)
{
    (void)state;
    const uint64_t capacities[] = {2, 8};
    struct replay_options options = {
        .ranks = 2, .capacities = capacities, .block_size = 4, .max_num_seqs = 10, .speed = 2};
    struct replay_request requests[] = {
        {0, 20, 4},   /* 6 blocks, to rank 0: stuck */
        {0, 4, 0},    /* no output: dropped */
        {0, 33, 0},   /* dropped */
        {0, 32, 1},   /* 9 blocks: dropped */
        {0, 28, 4},   /* 8 blocks, to rank 1 */
        {1000, 4, 4}, /* to rank 0, after the pool has long been idle */
    };
    static const enum replay_end ends[] = {REPLAY_STUCK,   REPLAY_DROPPED,   REPLAY_DROPPED,
                                           REPLAY_DROPPED, REPLAY_COMPLETED, REPLAY_COMPLETED};
    struct replay_trace trace = {.requests = requests, .count = COUNT(requests)};
    struct replay_policy policy = policy_named("round_robin");
    for (int independent = 0; independent < 2; independent++) {
        options.independent = independent;
        struct replay_run run;
        replay_run(&replay_fast_engine, &options, &trace, &policy, 0, &run);
        for (size_t request = 0; request < COUNT(requests); request++) {
            assert_int_equal(run.outcomes[request].end, ends[request]);
        }
        assert_true(run.outcomes[5].admitted_s == 500.0);
        assert_int_equal(run.over_capacity, 1); /* the stuck one, although rank 1 had room */
        assert_int_equal(run.over_capacity_avoidable, 1);
        assert_int_equal(run.left_blocks, 0);
        double values[REPLAY_METRICS];
        replay_measure(&options, &trace, &run, values);
        assert_true(values[REPLAY_REQUESTS] == 6 && values[REPLAY_DONE] == 2 && values[REPLAY_DROPS] == 3 &&
                    values[REPLAY_STICKS] == 1);
        replay_run_free(&run);
    }
}

/* Two unequal ranks: each keeps its own numbers. */
static void two_ranks_match_paper(void **state)
{
    (void)state;
    const uint64_t capacities[] = {8, 4};
    struct replay_options options = {
        .ranks = 2, .capacities = capacities, .block_size = 4, .max_num_seqs = 10, .speed = 1};
    struct replay_request requests[] = {{0, 16, 1}, {0, 4, 1}, {0, 7, 1}};
    struct replay_trace trace = {.requests = requests, .count = 3};
    struct replay_policy policy = policy_named("round_robin");
    /* Rank 0 has 16 and 7 tokens in 4 + 2 of 8 blocks, rank 1 has 4 tokens in 1 of 4: one pass each. */
    double p0 = 23.0 / 32;
    double p1 = 4.0 / 16;
    double s0 = (-25.74 * p0 * p0 + 54.01 * p0 + 5.74) / 1000;
    double s1 = (-25.74 * p1 * p1 + 54.01 * p1 + 5.74) / 1000;
    for (int independent = 0; independent < 2; independent++) {
        struct replay_run run;
        options.independent = independent;
        replay_run(&replay_fast_engine, &options, &trace, &policy, 0, &run);
        assert_int_equal(run.passes, independent ? 2 : 1);
        assert_true(fabs(run.kv_imbalance - 6 / 3.5) < 1e-12);
        assert_true(fabs(run.batch_imbalance - 2 / 1.5) < 1e-12);
        assert_true(fabs(run.used_block_seconds - (6 * s0 + 1 * (independent ? s1 : s0))) < 1e-12);
        assert_true(fabs(run.outcomes[0].finished_s - s0) < 1e-12);
        assert_true(fabs(run.outcomes[1].finished_s - (independent ? s1 : s0)) < 1e-12);
        double values[REPLAY_METRICS];
        replay_measure(&options, &trace, &run, values);
        assert_true(values[REPLAY_KV_IMBALANCE] == run.kv_imbalance);
        assert_true(values[REPLAY_BATCH_IMBALANCE] == run.batch_imbalance);
        replay_run_free(&run);
    }
}

/* A booking that has grown with its output can be over the capacity while the prompts alone are not. */
static void tracked_output_is_booked(void **state)
{
    (void)state;
    const uint64_t capacity = 100;
    struct replay_options options = {
        .ranks = 1, .capacities = &capacity, .block_size = 1, .max_num_seqs = 10, .speed = 1};
    struct replay_policy policy = policy_named("default:0");
    /* 90 blocks of prompt and up to 10 of output, and then 5 more. */
    struct replay_request long_output[] = {{0, 90, 10}, {0.2, 5, 1}};
    struct replay_trace trace = {.requests = long_output, .count = 2};
    for (int track = 0; track < 2; track++) {
        struct replay_run run;
        options.track_output_blocks = track;
        replay_run(&replay_fast_engine, &options, &trace, &policy, 1, &run);
        assert_int_equal(run.over_capacity, track);
        replay_run_free(&run);
    }
}

/* For each policy that draws, the same seed gives the same run and another seed another run. */
static void the_seed_is_used(void **state)
{
    (void)state;
    static const char *const drawing[] = {"default:0", "kvca", "least_requests", "p2c"};
    const uint64_t capacities[] = {50, 40, 30, 20}; /* unequal, so that it matters which rank gets a request */
    struct replay_options options = {
        .ranks = 4, .capacities = capacities, .block_size = 4, .max_num_seqs = 10, .speed = 1};
    struct replay_request requests[40];
    for (size_t i = 0; i < COUNT(requests); i++) {
        requests[i] = (struct replay_request){(double)i * 0.01, 4, 1 + i % 7};
    }
    struct replay_trace trace = {.requests = requests, .count = COUNT(requests)};
    for (size_t i = 0; i < COUNT(drawing); i++) {
        print_message("%s\n", drawing[i]);
        struct replay_policy policy = policy_named(drawing[i]);
        struct replay_run runs[3];
        for (uint64_t run = 0; run < 3; run++) {
            replay_run(&replay_fast_engine, &options, &trace, &policy, run / 2, &runs[run]); /* 0, 0, 1 */
        }
        assert_true(runs[0].outcomes[39].finished_s == runs[1].outcomes[39].finished_s);
        assert_true(runs[0].outcomes[39].finished_s != runs[2].outcomes[39].finished_s);
        for (size_t run = 0; run < 3; run++) {
            replay_run_free(&runs[run]);
        }
    }
}

/* A rank that the request would fill exactly had room. */
static void avoidable_means_that_another_rank_had_room(void **state)
{
    (void)state;
    for (uint64_t room = 1; room <= 3; room++) {
        const uint64_t capacities[] = {1, room};
        struct replay_options options = {
            .ranks = 2, .capacities = capacities, .block_size = 4, .max_num_seqs = 10, .speed = 1};
        struct replay_request requests[] = {{0, 4, 0}, {0, 5, 3}};
        struct replay_trace trace = {.requests = requests, .count = 2};
        struct replay_policy policy = policy_named("round_robin"); /* request 2, of 2 blocks, goes to rank 0 */
        struct replay_run run;
        replay_run(&replay_fast_engine, &options, &trace, &policy, 0, &run);
        assert_int_equal(run.over_capacity, room > 1);
        assert_int_equal(run.over_capacity_avoidable, room > 1);
        replay_run_free(&run);
    }
}

/* Percentiles are nearest ranks. Times are those of completed requests. */
static void metrics_match_paper(void **state)
{
    (void)state;
    const uint64_t capacity = 10;
    struct replay_options options = {.ranks = 1, .capacities = &capacity, .block_size = 4, .speed = 2};
    struct replay_request requests[] = {{0, 4, 10}, {2, 4, 5}, {4, 4, 4}, {6, 4, 1}};
    struct replay_outcome outcomes[] = {
        {REPLAY_COMPLETED, 1, 2}, {REPLAY_COMPLETED, 4, 5}, {REPLAY_COMPLETED, 2, 10}, {REPLAY_STUCK, 0, 0}};
    struct replay_trace trace = {.requests = requests, .count = 4};
    struct replay_run run = {.outcomes = outcomes, .used_block_seconds = 25};
    double values[REPLAY_METRICS];
    replay_measure(&options, &trace, &run, values);
    static const struct {
        enum replay_metric metric;
        double value;
    } rows[] = {
        {REPLAY_WAIT_MEAN, 4.0 / 3}, {REPLAY_WAIT_P50, 1},
        {REPLAY_WAIT_P99, 3},        {REPLAY_TPOT_MEAN, 2300.0 / 3},
        {REPLAY_TPOT_P99, 2000},     {REPLAY_E2E_MEAN, 14.0 / 3},
        {REPLAY_E2E_P50, 4},         {REPLAY_E2E_P99, 8},
        {REPLAY_MAKESPAN, 10},       {REPLAY_OUTPUT_RATE, 1.9},
        {REPLAY_KV_USE, 0.25},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (fabs(values[rows[i].metric] - rows[i].value) > 1e-12) {
            fail_msg("%s is %.17g, on paper %.17g", replay_metric_name(rows[i].metric), values[rows[i].metric],
                     rows[i].value);
        }
    }
}

static const char *const POLICIES[] = {
    "default:0", "default:64", "kvca", "kvca:0.8:off:4", "kvca:off:on:0", "least_requests", "p2c", "round_robin",
};

struct random_case {
    uint64_t capacities[4];
    struct replay_options options;
    struct replay_request requests[60];
    struct replay_trace trace;
    struct replay_policy policy;
};

static void make_case(struct random_case *made, uint64_t *random)
{
    *made = (struct random_case){.options = {
                                     .ranks = 1 + (size_t)random_below(random, 4),
                                     .block_size = 1 + random_below(random, 5),
                                     .max_num_seqs = 1 + random_below(random, 12),
                                     .watermark = (double)random_below(random, 3) * 0.1,
                                     .batch_ms = (double)random_below(random, 2) * 0.5,
                                     .speed = 1,
                                     .track_output_blocks = random_below(random, 2) == 0,
                                     .independent = random_below(random, 2) == 0,
                                     .hold = random_below(random, 2) == 0,
                                 }};
    made->options.capacities = made->capacities;
    for (size_t rank = 0; rank < 4; rank++) {
        made->capacities[rank] = 4 + random_below(random, 20);
    }
    made->trace = (struct replay_trace){.requests = made->requests, .count = 1 + (size_t)random_below(random, 60)};
    double arrival = 0;
    for (size_t i = 0; i < made->trace.count; i++) {
        made->requests[i] = (struct replay_request){arrival, random_below(random, 40), random_below(random, 12)};
        arrival += (double)random_below(random, 4) * 0.01;
    }
    made->policy = policy_named(POLICIES[random_below(random, COUNT(POLICIES))]);
}

static void engines_agree_and_nothing_is_lost(void **state)
{
    (void)state;
    uint64_t random = 21;
    uint64_t preemptions = 0;
    uint64_t held_back = 0;
    for (uint64_t round = 0; round < 3000; round++) {
        struct random_case made;
        make_case(&made, &random);
        struct replay_run fast;
        check_engines_agree(&made.options, &made.trace, &made.policy, round, &fast);
        preemptions += fast.preemptions;
        held_back += made.options.hold && made.policy.kind == REPLAY_KVCA;
        replay_run_free(&fast);
    }
    assert_true(preemptions > 1000 && held_back > 100);
}

/* The library's promise in a whole run: no booking over a rank's capacity while another rank has room. */
static void kvca_never_overbooks_avoidably(void **state)
{
    (void)state;
    uint64_t random = 33;
    uint64_t by_default = 0;
    for (uint64_t round = 0; round < 500; round++) {
        struct random_case made;
        make_case(&made, &random);
        struct replay_run run;
        made.policy = policy_named("kvca");
        replay_run(&replay_fast_engine, &made.options, &made.trace, &made.policy, round, &run);
        assert_int_equal(run.over_capacity_avoidable, 0);
        replay_run_free(&run);
        made.policy = policy_named("default:64");
        replay_run(&replay_fast_engine, &made.options, &made.trace, &made.policy, round, &run);
        by_default += run.over_capacity_avoidable;
        replay_run_free(&run);
    }
    assert_true(by_default > 100);
}

static void policies_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum replay_policy_kind kind;
        kvca_params params;
    } rows[] = {
        {"default", REPLAY_KVCA, PARAMS(KVCA_NO_CAPACITY_FILTER, false, 0, 0)},
        {"default:2.5", REPLAY_KVCA, PARAMS(KVCA_NO_CAPACITY_FILTER, false, 2.5, 0)},
        {"kvca", REPLAY_KVCA, KVCA_PARAMS_DEFAULT},
        {"kvca:0.9", REPLAY_KVCA, PARAMS(0.9, true, 0, 0)},
        {"kvca:off:off", REPLAY_KVCA, PARAMS(KVCA_NO_CAPACITY_FILTER, false, 0, 0)},
        {"kvca:1:on:64", REPLAY_KVCA, PARAMS(1, true, 64, 0)},
        {"round_robin", REPLAY_ROUND_ROBIN, KVCA_PARAMS_DEFAULT},
        {"least_requests", REPLAY_LEAST_REQUESTS, KVCA_PARAMS_DEFAULT},
        {"p2c", REPLAY_P2C, KVCA_PARAMS_DEFAULT},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("%s\n", rows[i].text);
        struct replay_policy policy = policy_named(rows[i].text);
        assert_int_equal(policy.kind, rows[i].kind);
        assert_true(policy.params.capacity_fraction == rows[i].params.capacity_fraction);
        assert_int_equal(policy.params.count_priority, rows[i].params.count_priority);
        assert_true(policy.params.decode_active_request_weight == rows[i].params.decode_active_request_weight);
    }
    static const char *const faulty[] = {"kvca:2",        "kvca:0",       "kvca:0.5:maybe", "kvca:1:on:-1",
                                         "kvca:1:on:1:1", "kvca::",       "default:x",      "default:-1",
                                         "default:1:2",   "no such file", "round_robin:1",  "kvca:0x1p-1"};
    for (size_t i = 0; i < COUNT(faulty); i++) {
        struct replay_policy policy;
        kvca_error error = {.size = sizeof error};
        print_message("%s\n", faulty[i]);
        assert_int_not_equal(replay_policy_parse(faulty[i], &policy, &error), KVCA_OK);
        print_message("%s\n", error.message);
    }
}

/* Counts how often each of three ranks is picked. */
static void pick_often(const char *name, const uint64_t *requests, size_t *picked)
{
    struct replay_policy policy = policy_named(name);
    _Atomic uint64_t generator = 1;
    for (uint64_t turn = 0; turn < 3000; turn++) {
        picked[replay_policy_pick(&policy, requests, 3, turn, &generator)]++;
    }
}

static void other_policies_pick(void **state)
{
    (void)state;
    const uint64_t requests[] = {4, 2, 2};
    size_t picked[3] = {0};
    pick_often("round_robin", requests, picked);
    assert_true(picked[0] == 1000 && picked[1] == 1000 && picked[2] == 1000);
    memset(picked, 0, sizeof picked);
    pick_often("least_requests", requests, picked);
    assert_true(picked[0] == 0 && picked[1] > 1400 && picked[2] > 1400);
    memset(picked, 0, sizeof picked);
    pick_often("p2c", requests, picked); /* rank 0 loses both of its pairs, and the third pair is a tie */
    assert_true(picked[0] == 0 && picked[1] > 1400 && picked[2] > 1400);
}

static const struct CMUnitTest OTHERS[] = {
    cmocka_unit_test(impossible_requests_are_dropped_or_stuck),
    cmocka_unit_test(two_ranks_match_paper),
    cmocka_unit_test(tracked_output_is_booked),
    cmocka_unit_test(the_seed_is_used),
    cmocka_unit_test(avoidable_means_that_another_rank_had_room),
    cmocka_unit_test(metrics_match_paper),
    cmocka_unit_test(engines_agree_and_nothing_is_lost),
    cmocka_unit_test(kvca_never_overbooks_avoidably),
    cmocka_unit_test(policies_are_read),
    cmocka_unit_test(other_policies_pick),
};

int main(void)
{
    struct CMUnitTest tests[COUNT(PAPERS) + COUNT(OTHERS)];
    for (size_t i = 0; i < COUNT(PAPERS); i++) {
        static struct paper papers[COUNT(PAPERS)]; /* cmocka passes rows as pointers to non-const data */
        papers[i] = PAPERS[i];
        tests[i] = (struct CMUnitTest){
            .name = PAPERS[i].name,
            .test_func = a_run_matches_paper,
            .initial_state = &papers[i],
        };
    }
    memcpy(tests + COUNT(PAPERS), OTHERS, sizeof OTHERS);
    return _cmocka_run_group_tests("replay", tests, COUNT(tests), NULL, NULL);
}
