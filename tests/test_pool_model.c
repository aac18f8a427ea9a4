/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long random sequences of all operations of a pool, against a ledger so plain that it is right at a glance: after
 * each step every column, counter and tie set must agree.
 */
#include "test.h"

#include <kvca/pool.h>

#include "reference.h"

#define SLOTS 6
#define OWNERS 3
#define IDENTITIES 10
#define BOOKINGS 40

struct model_slot {
    bool taken;
    bool draining;
    uint64_t identity;
    uint64_t capacity;
    uint64_t generation; /* how many ranks were here before */
};

struct model_booking {
    kvca_booking booking;
    bool made; /* placed, and not yet released or found stale */
    size_t owner;
    uint64_t claim;
    size_t slot;
    uint64_t generation;
    uint64_t blocks;
};

struct model {
    kvca_pool *pool;
    kvca_params params;
    struct model_slot slots[SLOTS];
    kvca_owner owners[OWNERS]; /* 0: not claimed */
    uint64_t claims[OWNERS];
    struct model_booking bookings[BOOKINGS];
    kvca_counters counters;
    uint64_t random;
    size_t step;
};

static uint64_t below(struct model *model, uint64_t n)
{
    return random_below(&model->random, n);
}

static uint64_t worker_of(uint64_t identity)
{
    return identity / 2 << 33;
}

static uint32_t dp_rank_of(uint64_t identity)
{
    return (uint32_t)(identity % 2);
}

static size_t slot_of(const struct model *model, uint64_t identity)
{
    size_t slot = 0;
    while (slot < SLOTS && !(model->slots[slot].taken && model->slots[slot].identity == identity)) {
        slot++;
    }
    return slot;
}

/* Whether a booking is still in the ledger. */
static bool is_live(const struct model *model, const struct model_booking *booking)
{
    return booking->made && model->owners[booking->owner] != 0 && model->claims[booking->owner] == booking->claim &&
           model->slots[booking->slot].taken && model->slots[booking->slot].generation == booking->generation;
}

static uint64_t blocks_on(const struct model *model, size_t slot)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < BOOKINGS; i++) {
        const struct model_booking *booking = &model->bookings[i];
        blocks += is_live(model, booking) && booking->slot == slot ? booking->blocks : 0;
    }
    return blocks;
}

static uint64_t requests_on(const struct model *model, size_t slot)
{
    uint64_t requests = 0;
    for (size_t i = 0; i < BOOKINGS; i++) {
        requests += is_live(model, &model->bookings[i]) && model->bookings[i].slot == slot;
    }
    return requests;
}

static void leave(struct model *model, size_t slot)
{
    model->slots[slot].taken = false;
    model->slots[slot].draining = false;
    model->slots[slot].generation++;
}

static void leave_if_drained(struct model *model, size_t slot)
{
    if (model->slots[slot].taken && model->slots[slot].draining && requests_on(model, slot) == 0) {
        leave(model, slot);
    }
}

static void step_put(struct model *model)
{
    uint64_t identity = below(model, IDENTITIES);
    uint64_t capacity = below(model, 4) == 0 ? 0 : 20 + below(model, 80);
    kvca_rank rank = {worker_of(identity), dp_rank_of(identity), capacity};
    size_t slot = slot_of(model, identity);
    bool added = slot == SLOTS;
    for (size_t i = 0; added && slot == SLOTS && i < SLOTS; i++) {
        slot = model->slots[i].taken ? SLOTS : i;
    }
    kvca_put answer;
    kvca_status status = kvca_pool_put(model->pool, &rank, &answer);
    if (slot == SLOTS) {
        assert_int_equal(status, KVCA_ERR_POOL_FULL);
        return;
    }
    assert_int_equal(status, KVCA_OK);
    assert_int_equal(answer.slot, slot);
    assert_int_equal(answer.added, added);
    model->slots[slot].taken = true;
    model->slots[slot].draining = false;
    model->slots[slot].identity = identity;
    model->slots[slot].capacity = capacity;
}

static void step_drain(struct model *model)
{
    uint64_t identity = below(model, IDENTITIES);
    size_t slot = slot_of(model, identity);
    kvca_status status = kvca_pool_drain(model->pool, worker_of(identity), dp_rank_of(identity));
    assert_int_equal(status, slot == SLOTS ? KVCA_ERR_NO_SUCH_RANK : KVCA_OK);
    if (slot < SLOTS) {
        model->slots[slot].draining = true;
        leave_if_drained(model, slot);
    }
}

static void step_drop(struct model *model)
{
    uint64_t identity = below(model, IDENTITIES);
    size_t slot = slot_of(model, identity);
    kvca_status status = kvca_pool_drop(model->pool, worker_of(identity), dp_rank_of(identity));
    assert_int_equal(status, slot == SLOTS ? KVCA_ERR_NO_SUCH_RANK : KVCA_OK);
    if (slot < SLOTS) {
        leave(model, slot);
    }
}

static void step_claim(struct model *model)
{
    size_t owner = 0;
    while (owner < OWNERS && model->owners[owner] != 0) {
        owner++;
    }
    kvca_owner claimed;
    kvca_status status = kvca_pool_owner_claim(model->pool, model->step, &claimed);
    assert_int_equal(status, owner == OWNERS ? KVCA_ERR_OWNERS_FULL : KVCA_OK);
    if (owner < OWNERS) {
        model->owners[owner] = claimed;
        model->claims[owner]++;
    }
}

static void step_void(struct model *model)
{
    size_t owner = (size_t)below(model, OWNERS);
    uint64_t blocks = 0;
    uint64_t requests = 0;
    uint64_t expected_blocks = 0;
    uint64_t expected_requests = 0;
    for (size_t i = 0; i < BOOKINGS; i++) {
        const struct model_booking *booking = &model->bookings[i];
        if (is_live(model, booking) && booking->owner == owner) {
            expected_blocks += booking->blocks;
            expected_requests++;
        }
    }
    kvca_status status = kvca_pool_owner_void(model->pool, model->owners[owner], &blocks, &requests);
    assert_int_equal(status, model->owners[owner] == 0 ? KVCA_ERR_OWNER : KVCA_OK);
    assert_int_equal(blocks, expected_blocks);
    assert_int_equal(requests, expected_requests);
    model->counters.voided += requests;
    model->owners[owner] = 0;
    for (size_t slot = 0; slot < SLOTS; slot++) {
        leave_if_drained(model, slot);
    }
}

static void step_params(struct model *model)
{
    static const double fractions[] = {0.5, 0.9, 1.0, KVCA_NO_CAPACITY_FILTER};
    model->params.capacity_fraction = fractions[below(model, COUNT(fractions))];
    model->params.count_priority = below(model, 2) == 0;
    model->params.decode_active_request_weight = (double)below(model, 3) * 5;
    model->params.capacity_blocks = below(model, 2) * 60;
    assert_int_equal(kvca_pool_set_params(model->pool, &model->params), KVCA_OK);
}

/* The pool as the reference takes it: a row for each slot. */
static struct rank_set set_of(const struct model *model)
{
    struct rank_set set = {.count = SLOTS};
    for (size_t slot = 0; slot < SLOTS; slot++) {
        set.decode_cost_blocks[slot] = blocks_on(model, slot);
        set.active_requests[slot] = requests_on(model, slot);
        set.total_kv_blocks[slot] = model->slots[slot].capacity;
        set.preferred_taint_multiplier[slot] = 1.0;
    }
    return set;
}

static void check_placed(const struct model *model, const struct reference *expected, const kvca_selection *selection)
{
    bool same = selection->row < SLOTS && expected->tied[selection->row] && selection->ties == expected->ties &&
                selection->fits == expected->fits && selection->outcome == expected->outcome &&
                selection->unknown_capacity == expected->unknown_capacity;
    if (!same) {
        fail_msg("step %zu: slot %zu, %zu ties of %zu, %zu fit of %zu", model->step, selection->row, selection->ties,
                 expected->ties, selection->fits, expected->fits);
    }
}

/* What a random request asks for, for the pool and for the reference. */
struct ask {
    kvca_request request;
    uint64_t eligible[1];
    double multipliers[SLOTS];
    struct rank_set set;
    bool candidates[MOST_RANKS];
};

static void make_ask(struct model *model, struct ask *ask)
{
    *ask = (struct ask){.request = {.blocks = below(model, 30), .only_if_fits = below(model, 2) == 0}};
    ask->set = set_of(model);
    ask->set.request_blocks = ask->request.blocks;
    ask->eligible[0] = next_random(&model->random);
    bool restrict_slots = below(model, 2) == 0;
    bool scale = below(model, 2) == 0;
    ask->request.eligible = restrict_slots ? ask->eligible : NULL;
    ask->request.preferred_taint_multiplier = scale ? ask->multipliers : NULL;
    for (size_t slot = 0; slot < SLOTS; slot++) {
        bool eligible = !restrict_slots || (ask->eligible[0] >> slot & 1) != 0;
        ask->candidates[slot] = eligible && model->slots[slot].taken && !model->slots[slot].draining;
        ask->multipliers[slot] = ask->candidates[slot] ? 0.5 * (double)(1 + below(model, 3)) : 0.0;
        if (scale && ask->candidates[slot]) {
            ask->set.preferred_taint_multiplier[slot] = ask->multipliers[slot];
        }
    }
}

static void step_place(struct model *model)
{
    size_t owner = (size_t)below(model, OWNERS);
    struct model_booking *booking = &model->bookings[below(model, BOOKINGS)];
    if (booking->made) {
        return;
    }
    struct ask ask;
    make_ask(model, &ask);
    struct reference expected = reference_select(&model->params, &ask.set, ask.candidates);
    kvca_selection selection;
    kvca_status status =
        kvca_pool_place(model->pool, model->owners[owner], &ask.request, &booking->booking, &selection);
    if (model->owners[owner] == 0) {
        assert_int_equal(status, KVCA_ERR_OWNER);
        return;
    }
    bool fallback = expected.outcome == KVCA_FALLBACK;
    if (expected.ties == 0 || (fallback && ask.request.only_if_fits)) {
        assert_int_equal(status, expected.ties == 0 ? KVCA_NONE_ELIGIBLE : KVCA_NONE_FITS);
        model->counters.none++;
        return;
    }
    assert_int_equal(status, KVCA_OK);
    check_placed(model, &expected, &selection);
    booking->made = true;
    booking->owner = owner;
    booking->claim = model->claims[owner];
    booking->slot = selection.row;
    booking->generation = model->slots[selection.row].generation;
    booking->blocks = ask.request.blocks;
    model->counters.placed++;
    model->counters.fallbacks += fallback;
}

static void step_grow(struct model *model)
{
    struct model_booking *booking = &model->bookings[below(model, BOOKINGS)];
    uint64_t blocks = below(model, 5);
    kvca_status status = kvca_pool_grow(model->pool, &booking->booking, blocks);
    if (is_live(model, booking)) {
        assert_int_equal(status, KVCA_OK);
        booking->blocks += blocks;
    } else {
        assert_int_equal(status, booking->made ? KVCA_STALE : KVCA_ERR_NO_BOOKING);
        model->counters.stale += booking->made;
    }
}

static void step_release(struct model *model)
{
    struct model_booking *booking = &model->bookings[below(model, BOOKINGS)];
    bool live = is_live(model, booking);
    kvca_status status = kvca_pool_release(model->pool, &booking->booking);
    if (booking->made) {
        assert_int_equal(status, live ? KVCA_OK : KVCA_STALE);
    } else {
        assert_int_equal(status, KVCA_ERR_NO_BOOKING);
    }
    model->counters.stale += booking->made && !live;
    booking->made = false;
    if (live) {
        leave_if_drained(model, booking->slot);
    }
}

/* A booking that was not made so: more blocks, a slot or a claim that never was. */
static void step_forged(struct model *model)
{
    const struct model_booking *booking = &model->bookings[below(model, BOOKINGS)];
    if (!is_live(model, booking)) {
        return;
    }
    kvca_booking forged = booking->booking;
    switch (below(model, 4)) {
    case 0:
        forged.blocks += blocks_on(model, booking->slot) + 1;
        break;
    case 1:
        forged.slot += SLOTS;
        break;
    case 2:
        forged.generation += 1;
        break;
    default:
        forged.owner += UINT64_C(1) << 40;
        break;
    }
    assert_int_equal(kvca_pool_release(model->pool, &forged), KVCA_ERR_FOREIGN_BOOKING);
}

static void check_snapshot_row(const struct model *model, const kvca_snapshot *snapshot, size_t row, size_t slot)
{
    const kvca_ranks *ranks = &snapshot->ranks;
    const struct model_slot *rank = &model->slots[slot];
    bool same = snapshot->slot[row] == slot && ranks->worker_id[row] == worker_of(rank->identity) &&
                ranks->dp_rank[row] == dp_rank_of(rank->identity) && ranks->total_kv_blocks[row] == rank->capacity &&
                ranks->decode_cost_blocks[row] == blocks_on(model, slot) &&
                ranks->active_requests[row] == requests_on(model, slot);
    if (!same) {
        fail_msg("step %zu: slot %zu has %d blocks and %d requests, the model %d and %d", model->step, slot,
                 (int)ranks->decode_cost_blocks[row], (int)ranks->active_requests[row], (int)blocks_on(model, slot),
                 (int)requests_on(model, slot));
    }
}

static void check_snapshot(struct model *model)
{
    uint64_t buffer[SLOTS * 5];
    kvca_snapshot snapshot;
    assert_int_equal(kvca_pool_snapshot(model->pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    size_t row = 0;
    for (int draining = 0; draining < 2; draining++) {
        for (size_t slot = 0; slot < SLOTS; slot++) {
            if (model->slots[slot].taken && model->slots[slot].draining == draining) {
                check_snapshot_row(model, &snapshot, row++, slot);
            }
        }
        if (!draining) {
            assert_int_equal(snapshot.ranks.count, row);
        }
    }
    assert_int_equal(snapshot.count, row);
    assert_memory_equal(&snapshot.counters, &model->counters, sizeof model->counters);
}

/* kvca_tie_set() on a snapshot is what the pool would draw from. */
static void check_tie_set(struct model *model)
{
    uint64_t buffer[SLOTS * 5];
    kvca_snapshot snapshot;
    bool candidates[MOST_RANKS] = {false};
    struct rank_set set = set_of(model);
    for (size_t slot = 0; slot < SLOTS; slot++) {
        candidates[slot] = model->slots[slot].taken && !model->slots[slot].draining;
    }
    set.request_blocks = below(model, 30);
    struct reference expected = reference_select(&model->params, &set, candidates);
    assert_int_equal(kvca_pool_snapshot(model->pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    snapshot.ranks.request_blocks = set.request_blocks;
    kvca_policy *policy = make_policy(snapshot.params);
    kvca_selection selection;
    size_t rows[SLOTS];
    kvca_status status = kvca_tie_set(policy, &snapshot.ranks, rows, SLOTS, &selection);
    kvca_policy_free(policy);
    if (expected.ties == 0) {
        assert_int_equal(status, KVCA_ERR_NO_RANKS);
        return;
    }
    assert_int_equal(status, KVCA_OK);
    assert_int_equal(selection.ties, expected.ties);
    for (size_t i = 0; i < selection.ties; i++) {
        assert_true(expected.tied[snapshot.slot[rows[i]]]);
    }
}

/* How often, of all operations, each is chosen: rare ones are rare, so that bookings pile up in between. */
static const struct {
    void (*step)(struct model *model);
    unsigned weight;
} STEPS[] = {
    {step_put, 6},    {step_drain, 2}, {step_drop, 1},     {step_claim, 4},  {step_void, 1},     {step_params, 2},
    {step_place, 48}, {step_grow, 12}, {step_release, 20}, {step_forged, 2}, {check_tie_set, 2},
};

static void take_step(struct model *model)
{
    uint64_t chosen = below(model, 100);
    size_t i = 0;
    while (chosen >= STEPS[i].weight) {
        chosen -= STEPS[i++].weight;
    }
    STEPS[i].step(model);
}

static void operations_match_the_model(void **state)
{
    (void)state;
    size_t operations = rounds(1000000);
    struct model model = {.params = KVCA_PARAMS_DEFAULT, .random = 17};
    assert_int_equal(kvca_pool_new(SLOTS, OWNERS, &model.params, &model.pool), KVCA_OK);
    assert_int_equal(kvca_pool_set_seed(model.pool, 1), KVCA_OK);
    for (; model.step < operations; model.step++) {
        take_step(&model);
        check_snapshot(&model);
    }
    print_message("%zu operations: %d placed, %d fallbacks, %d not placed, %d stale, %d voided\n", operations,
                  (int)model.counters.placed, (int)model.counters.fallbacks, (int)model.counters.none,
                  (int)model.counters.stale, (int)model.counters.voided);
    assert_true(model.counters.fallbacks > 0 && model.counters.stale > 0 && model.counters.voided > 0);
    kvca_pool_free(model.pool);
}

int main(void)
{
    require_variant();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_match_the_model),
    };
    return cmocka_run_group_tests_name("pool_model", tests, NULL, NULL);
}
