/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif

/* A batch has a booking for every 64 ranks of a pool, and at least one. Fewer bookings hardly change the loads, and a
 * maximum keeps the batch short. */
#define RANKS_OF_A_BOOKING 64
#define MOST_BOOKINGS_OF_A_POOL 16
#define FEWEST_BOOKINGS 64 /* of a batch, so that reading the clock does not count */

static size_t bookings_of_a_pool(size_t ranks)
{
    size_t bookings = ranks / RANKS_OF_A_BOOKING;
    if (bookings < 1) {
        return 1;
    }
    return bookings < MOST_BOOKINGS_OF_A_POOL ? bookings : MOST_BOOKINGS_OF_A_POOL;
}

static void count_warning(void *user, const kvca_warning *warning)
{
    struct trial *trial = user;
    (void)warning;
    trial->warnings++;
}

void trial_make(struct trial *trial, enum scenario scenario, const struct loads *loads, uint64_t seed)
{
    const kvca_params defaults = KVCA_PARAMS_DEFAULT;
    *trial = (struct trial){
        .scenario = scenario,
        .loads = loads,
        .params = defaults,
        .floor = floor_here(),
        .stages = router_default_stages(),
        .candidates = allocate(loads->ranks, sizeof *trial->candidates),
        .drawer = {.generator = seed, .tied = allocate(loads->ranks, sizeof *trial->drawer.tied)},
        .order = seed,
    };
    if (scenario == SCENARIO_FRACTION) {
        trial->params.capacity_fraction = 0.9;
    } else if (scenario == SCENARIO_USUAL) {
        trial->params.capacity_fraction = KVCA_NO_CAPACITY_FILTER;
        trial->params.count_priority = false;
        trial->params.decode_active_request_weight = USUAL_WEIGHT;
    }
    must(kvca_policy_new(&trial->params, &trial->policy));
    must(kvca_policy_set_seed(trial->policy, seed));
    if (scenario == SCENARIO_UNKNOWN) {
        must(kvca_policy_set_warning(trial->policy, count_warning, trial));
    }
    if (loads->pools > 0) {
        trial->batch = loads->pools * bookings_of_a_pool(loads->ranks);
        while (trial->batch < FEWEST_BOOKINGS) {
            trial->batch *= 2;
        }
        trial->bookings = allocate(trial->batch, sizeof *trial->bookings);
        trial->booked_sets = allocate(trial->batch, sizeof *trial->booked_sets);
        trial->all_eligible = allocate((loads->ranks + 63) / 64, sizeof *trial->all_eligible);
        memset(trial->all_eligible, 0xff, (loads->ranks + 63) / 64 * sizeof *trial->all_eligible);
    }
}

void trial_free(struct trial *trial)
{
    kvca_policy_free(trial->policy);
    free(trial->candidates);
    free(trial->drawer.tied);
    free(trial->bookings);
    free(trial->booked_sets);
    free(trial->all_eligible);
}

/* The picks. Each returns the row, except D, which returns its sum. */

static ALWAYS_INLINE uint64_t pick_from(kvca_policy *policy, const kvca_ranks *ranks)
{
    kvca_selection selection = {.size = sizeof selection};
    if (kvca_select(policy, ranks, &selection) != KVCA_OK) {
        fail("kvca_select fails");
    }
    return selection.row;
}

static ALWAYS_INLINE uint64_t pick_select(struct trial *trial, size_t set)
{
    kvca_ranks ranks = loads_columns(trial->loads, set, false);
    return pick_from(trial->policy, &ranks);
}

static ALWAYS_INLINE uint64_t pick_select_multipliers(struct trial *trial, size_t set)
{
    kvca_ranks ranks = loads_columns(trial->loads, set, true);
    return pick_from(trial->policy, &ranks);
}

static ALWAYS_INLINE uint64_t pick_router(struct trial *trial, size_t set)
{
    const struct loads *loads = trial->loads;
    kvca_selection selection = {.size = sizeof selection};
    router_select(&loads->routers[set], &trial->stages, &trial->params, loads->request_blocks[set], trial->candidates,
                  &trial->drawer, &selection);
    return selection.row;
}

static ALWAYS_INLINE uint64_t pick_minimum(struct trial *trial, size_t set)
{
    const struct loads *loads = trial->loads;
    size_t ties;
    return minimum_select(loads->usual_costs + set * loads->stride, loads->ranks, &trial->drawer.generator, &ties);
}

static ALWAYS_INLINE uint64_t pick_plain(struct trial *trial, size_t set)
{
    const struct loads *loads = trial->loads;
    kvca_selection selection = {.size = sizeof selection};
    plain_select(&trial->params, loads->rows + set * loads->stride, loads->ranks, loads->request_blocks[set],
                 &trial->drawer, &selection);
    return selection.row;
}

static ALWAYS_INLINE uint64_t pick_plain_multipliers(struct trial *trial, size_t set)
{
    const struct loads *loads = trial->loads;
    kvca_selection selection = {.size = sizeof selection};
    plain_select_multipliers(&trial->params, loads->rows + set * loads->stride, loads->ranks,
                             loads->request_blocks[set], &trial->drawer, &selection);
    return selection.row;
}

static ALWAYS_INLINE uint64_t pick_floor(struct trial *trial, size_t set)
{
    const struct loads *loads = trial->loads;
    size_t first = set * loads->stride;
    return trial->floor.three(loads->decode_cost_blocks + first, loads->active_requests + first,
                              loads->total_kv_blocks + first, loads->ranks);
}

static ALWAYS_INLINE uint64_t pick_floor_multipliers(struct trial *trial, size_t set)
{
    const struct loads *loads = trial->loads;
    size_t first = set * loads->stride;
    return trial->floor.four(loads->decode_cost_blocks + first, loads->active_requests + first,
                             loads->total_kv_blocks + first, loads->preferred_taint_multiplier + first, loads->ranks);
}

typedef uint64_t pick_function(struct trial *trial, size_t set);

/*
 * The timed loop. The set of each pick is random, so that no order can be learnt. For latency the last pick is added to
 * it, so that a pick cannot begin before the last one is known. (If only the last pick chose the next set, the picks
 * would soon run in a short circle.)
 */
static ALWAYS_INLINE uint64_t run(struct trial *trial, enum mode mode, size_t picks, pick_function *pick)
{
    size_t mask = trial->loads->sets - 1;
    uint64_t order = trial->order;
    uint64_t picked = 0;
    for (size_t i = 0; i < picks; i++) {
        size_t next = (size_t)next_random(&order);
        if (mode == MODE_LATENCY) {
            picked = pick(trial, (next + (size_t)picked) & mask);
        } else {
            picked += pick(trial, next & mask);
        }
    }
    trial->order = order;
    return picked;
}

/* Each subject and mode has its own loop, with the pick inlined. */
typedef uint64_t loop_function(struct trial *trial, size_t picks);

#define LOOPS(pick)                                                                                                  \
    static uint64_t pick##_latency(struct trial *trial, size_t picks)                                                \
    {                                                                                                                \
        return run(trial, MODE_LATENCY, picks, pick);                                                                \
    }                                                                                                                \
    static uint64_t pick##_throughput(struct trial *trial, size_t picks)                                             \
    {                                                                                                                \
        return run(trial, MODE_THROUGHPUT, picks, pick);                                                             \
    }

LOOPS(pick_floor)
LOOPS(pick_floor_multipliers)
LOOPS(pick_minimum)
LOOPS(pick_plain)
LOOPS(pick_plain_multipliers)
LOOPS(pick_router)
LOOPS(pick_select)
LOOPS(pick_select_multipliers)

/* clang-format off */
#define FUNCTIONS(pick) {pick, pick##_latency, pick##_throughput}
/* clang-format on */

static const struct {
    pick_function *pick;
    loop_function *latency;
    loop_function *throughput;
} functions[SUBJECTS] = {
    [SUBJECT_FLOOR] = FUNCTIONS(pick_floor),
    [SUBJECT_FLOOR_MULTIPLIERS] = FUNCTIONS(pick_floor_multipliers),
    [SUBJECT_MINIMUM] = FUNCTIONS(pick_minimum),
    [SUBJECT_PLAIN] = FUNCTIONS(pick_plain),
    [SUBJECT_PLAIN_MULTIPLIERS] = FUNCTIONS(pick_plain_multipliers),
    [SUBJECT_ROUTER] = FUNCTIONS(pick_router),
    [SUBJECT_SELECT] = FUNCTIONS(pick_select),
    [SUBJECT_SELECT_MULTIPLIERS] = FUNCTIONS(pick_select_multipliers),
};

uint64_t trial_visit(struct trial *trial, enum subject subject)
{
    uint64_t picked = 0;
    for (size_t set = 0; set < trial->loads->sets; set++) {
        picked += functions[subject].pick(trial, set);
    }
    return picked;
}

uint64_t trial_run(struct trial *trial, enum subject subject, enum mode mode, size_t picks)
{
    loop_function *loop = mode == MODE_LATENCY ? functions[subject].latency : functions[subject].throughput;
    return loop(trial, picks);
}

bool trial_has(const struct trial *trial, enum subject subject)
{
    switch (subject) {
    case SUBJECT_PLACE:
    case SUBJECT_PLACE_ELIGIBLE:
    case SUBJECT_GROW:
    case SUBJECT_RELEASE:
        return trial->loads->pools > 0 && trial->scenario < FIRST_SETTING;
    case SUBJECT_ROUTER:
    case SUBJECT_MINIMUM:
        return trial->scenario < FIRST_SETTING;
    default:
        return true;
    }
}

/* The pools. Each status is checked, as a host would do. */

static void place_batch(struct trial *trial, const uint64_t *eligible, enum mode mode)
{
    const struct loads *loads = trial->loads;
    size_t mask = loads->pools - 1;
    size_t picked = 0;
    for (size_t i = 0; i < trial->batch; i++) {
        size_t set = ((size_t)next_random(&trial->order) + picked) & mask;
        kvca_request request = {.size = sizeof request, .blocks = loads->request_blocks[set], .eligible = eligible};
        kvca_selection selection = {.size = sizeof selection};
        must(kvca_pool_place(loads_pool(loads, set), loads->owners[set], &request, &trial->bookings[i], &selection));
        trial->booked_sets[i] = set;
        picked = mode == MODE_LATENCY ? selection.row : 0;
    }
}

/* These calls return only a status, which is 0. For latency, the next call waits for it. */
static void grow_batch(struct trial *trial, enum mode mode)
{
    size_t last = 0;
    for (size_t i = 0; i < trial->batch; i++) {
        size_t set = trial->booked_sets[i + last];
        kvca_status status = kvca_pool_grow(loads_pool(trial->loads, set), &trial->bookings[i], 1);
        must(status);
        last = mode == MODE_LATENCY ? (size_t)status : 0;
    }
}

static void release_batch(struct trial *trial, enum mode mode)
{
    size_t last = 0;
    for (size_t i = 0; i < trial->batch; i++) {
        size_t set = trial->booked_sets[i + last];
        kvca_status status = kvca_pool_release(loads_pool(trial->loads, set), &trial->bookings[i]);
        must(status);
        last = mode == MODE_LATENCY ? (size_t)status : 0;
    }
}

struct pool_times trial_run_pools(struct trial *trial, enum subject place, enum mode mode, size_t batches)
{
    const uint64_t *eligible = place == SUBJECT_PLACE_ELIGIBLE ? trial->all_eligible : NULL;
    struct pool_times times = {0};
    for (size_t i = 0; i < batches; i++) {
        double start = now();
        place_batch(trial, eligible, mode);
        double placed = now();
        grow_batch(trial, mode);
        double grown = now();
        release_batch(trial, mode);
        double released = now();
        times.place += placed - start;
        times.grow += grown - placed;
        times.release += released - grown;
    }
    return times;
}
