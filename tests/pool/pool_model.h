/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger that is plain enough to be seen to be right, and all operations of a pool, done to both. Each step checks
 * the pool's answer; check_snapshot() checks columns and counters. The file that includes this chooses the operations.
 */
#ifndef KVCA_POOL_MODEL_H
#define KVCA_POOL_MODEL_H

#include "support/test.h"

#include <kvca/pool.h>

#include "support/reference.h"

#define MOST_SLOTS 72 /* one group of slots, and the tails of all vectors */
#define OWNERS 3
#define BOOKINGS 40

struct model_slot {
    bool taken;
    bool draining;
    uint64_t identity;
    uint64_t capacity;
    uint64_t generation; /* how many ranks had this slot before */
};

struct model_booking {
    kvca_booking booking;
    bool made; /* placed, and neither released nor found stale since */
    size_t owner;
    uint64_t claim;
    size_t slot;
    uint64_t generation;
    uint64_t blocks;
};

struct model {
    kvca_pool *pool; /* with room for `max_ranks` and OWNERS, and with these parameters */
    size_t max_ranks;
    size_t identities;                            /* how many different ranks there are */
    bool large;                                   /* some requests bring sums near the largest integer */
    uint64_t (*choose)(void *source, uint64_t n); /* makes all choices: one of 0 .. n - 1 */
    void *source;
    kvca_params params;
    struct model_slot slots[MOST_SLOTS];
    kvca_owner owners[OWNERS]; /* 0: not claimed */
    uint64_t claims[OWNERS];
    struct model_booking bookings[BOOKINGS];
    kvca_booking released; /* a copy of the latest released booking */
    size_t released_owner;
    kvca_counters counters;
    size_t step;
};

static uint64_t below(struct model *model, uint64_t n)
{
    return model->choose(model->source, n);
}

static uint64_t amount(struct model *model, uint64_t most)
{
    if (!model->large || below(model, 4) != 0) {
        return below(model, most);
    }
    return (UINT64_MAX >> below(model, 64)) - below(model, 3) % 2;
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
    while (slot < model->max_ranks && !(model->slots[slot].taken && model->slots[slot].identity == identity)) {
        slot++;
    }
    return slot;
}

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
        blocks += booking->slot == slot && is_live(model, booking) ? booking->blocks : 0;
    }
    return blocks;
}

static uint64_t requests_on(const struct model *model, size_t slot)
{
    uint64_t requests = 0;
    for (size_t i = 0; i < BOOKINGS; i++) {
        requests += model->bookings[i].slot == slot && is_live(model, &model->bookings[i]);
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
    uint64_t identity = below(model, model->identities);
    uint64_t capacity = below(model, 4) == 0 ? 0 : 20 + amount(model, 80);
    kvca_rank rank = {sizeof rank, worker_of(identity), dp_rank_of(identity), capacity};
    size_t slot = slot_of(model, identity);
    size_t none = model->max_ranks;
    bool added = slot == none;
    for (size_t i = 0; added && slot == none && i < none; i++) {
        slot = model->slots[i].taken ? none : i;
    }
    kvca_put answer = {.size = sizeof answer};
    kvca_status status = kvca_pool_put(model->pool, &rank, &answer);
    if (slot == none) {
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
    uint64_t identity = below(model, model->identities);
    size_t slot = slot_of(model, identity);
    kvca_status status = kvca_pool_drain(model->pool, worker_of(identity), dp_rank_of(identity));
    assert_int_equal(status, slot == model->max_ranks ? KVCA_ERR_NO_SUCH_RANK : KVCA_OK);
    if (slot < model->max_ranks) {
        model->slots[slot].draining = true;
        leave_if_drained(model, slot);
    }
}

static void step_drop(struct model *model)
{
    uint64_t identity = below(model, model->identities);
    size_t slot = slot_of(model, identity);
    kvca_status status = kvca_pool_drop(model->pool, worker_of(identity), dp_rank_of(identity));
    assert_int_equal(status, slot == model->max_ranks ? KVCA_ERR_NO_SUCH_RANK : KVCA_OK);
    if (slot < model->max_ranks) {
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
            bool fits = booking->blocks <= UINT64_MAX - expected_blocks;
            expected_blocks = fits ? expected_blocks + booking->blocks : UINT64_MAX;
            expected_requests++;
        }
    }
    kvca_status status = kvca_pool_owner_void(model->pool, model->owners[owner], &blocks, &requests);
    assert_int_equal(status, model->owners[owner] == 0 ? KVCA_ERR_OWNER : KVCA_OK);
    assert_int_equal(blocks, expected_blocks);
    assert_int_equal(requests, expected_requests);
    model->counters.voided += requests;
    model->owners[owner] = 0;
    for (size_t slot = 0; slot < model->max_ranks; slot++) {
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

static struct rank_set set_of(const struct model *model)
{
    struct rank_set set = {.count = model->max_ranks};
    for (size_t slot = 0; slot < model->max_ranks; slot++) {
        set.decode_cost_blocks[slot] = blocks_on(model, slot);
        set.active_requests[slot] = requests_on(model, slot);
        set.total_kv_blocks[slot] = model->slots[slot].capacity;
        set.preferred_taint_multiplier[slot] = 1.0;
    }
    return set;
}

static void check_placed(const struct model *model, const struct reference *expected, const kvca_selection *selection)
{
    if (!reference_agrees(expected, selection)) {
        fail_msg("step %zu: slot %zu, %zu ties of %zu, %zu fit of %zu", model->step, selection->row, selection->ties,
                 expected->ties, selection->fits, expected->fits);
    }
}

struct ask {
    kvca_request request;
    uint64_t eligible[(MOST_SLOTS + 63) / 64];
    double multipliers[MOST_SLOTS];
    struct rank_set set;
    bool candidates[MOST_RANKS];
    bool later[MOST_RANKS]; /* candidates, those that would overflow included */
    bool overflows;         /* a slot is no candidate because its sum would overflow */
    bool unsound;           /* a candidate's multiplier is unsound */
};

/* Makes sound multipliers where they must be sound; now and then one slot has another. */
static void make_multipliers(struct model *model, struct ask *ask)
{
    uint64_t pattern = below(model, UINT64_MAX);
    size_t faulty = below(model, 16) == 0 ? (size_t)below(model, model->max_ranks) : SIZE_MAX;
    for (size_t slot = 0; slot < model->max_ranks; slot++) {
        bool sound = ask->candidates[slot] && slot != faulty;
        ask->multipliers[slot] = sound ? 0.5 * (double)(1 + (pattern >> slot % 32 * 2 & 3)) : 0.0;
        ask->unsound = ask->unsound || (ask->candidates[slot] && !sound);
        if (sound) {
            ask->set.preferred_taint_multiplier[slot] = ask->multipliers[slot];
        }
    }
    ask->request.preferred_taint_multiplier = ask->multipliers;
}

static void make_ask(struct model *model, struct ask *ask)
{
    *ask = (struct ask){
        .request = {.size = sizeof(kvca_request), .blocks = amount(model, 30), .only_if_fits = below(model, 2) == 0}};
    ask->set = set_of(model);
    ask->set.request_blocks = ask->request.blocks;
    bool restrict_slots = below(model, 2) == 0;
    for (size_t word = 0; restrict_slots && word < COUNT(ask->eligible); word++) {
        ask->eligible[word] = below(model, UINT64_MAX);
        ask->request.eligible = ask->eligible;
    }
    for (size_t slot = 0; slot < model->max_ranks; slot++) {
        bool eligible = !restrict_slots || (ask->eligible[slot / 64] >> slot % 64 & 1) != 0;
        bool candidate = eligible && model->slots[slot].taken && !model->slots[slot].draining;
        bool overflows = ask->set.decode_cost_blocks[slot] > UINT64_MAX - ask->request.blocks;
        ask->later[slot] = candidate;
        ask->candidates[slot] = candidate && !overflows;
        ask->overflows = ask->overflows || (candidate && overflows);
    }
    if (below(model, 2) == 0) {
        make_multipliers(model, ask);
    }
}

static kvca_status expected_status(const struct ask *ask, const struct reference *expected)
{
    if (ask->unsound) {
        return KVCA_ERR_PREFERRED_TAINT_MULTIPLIER;
    }
    if (expected->ties == 0) {
        return ask->overflows ? KVCA_ERR_OVERFLOW : KVCA_NONE_ELIGIBLE;
    }
    bool refused = expected->outcome != KVCA_FIT && ask->request.only_if_fits;
    if (!refused) {
        return KVCA_OK;
    }
    return expected->outcome == KVCA_FALLBACK ? KVCA_NONE_FITS : KVCA_NEVER_FITS;
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
    reference_look_ahead(&expected, &model->params, &ask.set, ask.later);
    kvca_selection selection = {.size = sizeof selection};
    kvca_status status =
        kvca_pool_place(model->pool, model->owners[owner], &ask.request, &booking->booking, &selection);
    if (model->owners[owner] == 0) {
        assert_int_equal(status, KVCA_ERR_OWNER);
        return;
    }
    assert_int_equal(status, expected_status(&ask, &expected));
    model->counters.none += status == KVCA_NONE_ELIGIBLE || status == KVCA_NONE_FITS || status == KVCA_NEVER_FITS;
    if (status != KVCA_OK) {
        return;
    }
    check_placed(model, &expected, &selection);
    booking->made = true;
    booking->owner = owner;
    booking->claim = model->claims[owner];
    booking->slot = selection.row;
    booking->generation = model->slots[selection.row].generation;
    booking->blocks = ask.request.blocks;
    model->counters.placed++;
    model->counters.fallbacks += expected.outcome != KVCA_FIT;
}

static void step_grow(struct model *model)
{
    struct model_booking *booking = &model->bookings[below(model, BOOKINGS)];
    uint64_t blocks = amount(model, 5);
    kvca_status status = kvca_pool_grow(model->pool, &booking->booking, blocks);
    if (is_live(model, booking)) {
        bool overflows = blocks > UINT64_MAX - blocks_on(model, booking->slot);
        assert_int_equal(status, overflows ? KVCA_ERR_OVERFLOW : KVCA_OK);
        booking->blocks += overflows ? 0 : blocks;
    } else {
        assert_int_equal(status, booking->made ? KVCA_STALE : KVCA_ERR_NO_BOOKING);
        model->counters.stale += booking->made;
    }
}

static void step_release(struct model *model)
{
    struct model_booking *booking = &model->bookings[below(model, BOOKINGS)];
    bool live = is_live(model, booking);
    kvca_booking copy = booking->booking;
    kvca_status status = kvca_pool_release(model->pool, &booking->booking);
    if (booking->made) {
        assert_int_equal(status, live ? KVCA_OK : KVCA_STALE);
    } else {
        assert_int_equal(status, KVCA_ERR_NO_BOOKING);
    }
    model->counters.stale += booking->made && !live;
    booking->made = false;
    if (live) {
        model->released = copy;
        model->released_owner = booking->owner;
        leave_if_drained(model, booking->slot);
    }
}

/* Releases a copy of a released booking, if nothing else is booked that it could match. */
static void step_release_again(struct model *model)
{
    kvca_booking copy = model->released;
    size_t slot = copy.slot;
    size_t owner = model->released_owner;
    if (copy.owner == 0 || requests_on(model, slot) > 0) {
        return;
    }
    bool gone = model->slots[slot].generation != copy.generation || model->owners[owner] != copy.owner;
    assert_int_equal(kvca_pool_release(model->pool, &copy), gone ? KVCA_STALE : KVCA_ERR_FOREIGN_BOOKING);
    model->counters.stale += gone;
}

/* Releases a booking that nobody made: with more blocks, or with a slot or claim that never existed. */
static void step_forged(struct model *model)
{
    const struct model_booking *booking = &model->bookings[below(model, BOOKINGS)];
    if (!is_live(model, booking)) {
        return;
    }
    kvca_booking forged = booking->booking;
    uint64_t all = blocks_on(model, booking->slot);
    uint64_t kind = below(model, 4);
    if (kind == 0 && all < UINT64_MAX) {
        forged.blocks = all + 1;
    } else if (kind <= 1) {
        forged.slot += (uint32_t)model->max_ranks;
    } else if (kind == 2) {
        forged.generation += 1;
    } else {
        forged.owner += UINT64_C(1) << 40;
    }
    const kvca_booking before = forged;
    assert_int_equal(kvca_pool_release(model->pool, &forged), KVCA_ERR_FOREIGN_BOOKING);
    assert_int_equal(kvca_pool_grow(model->pool, &forged, 1), KVCA_ERR_FOREIGN_BOOKING);
    assert_memory_equal(&forged, &before, sizeof before);
}

static void check_snapshot_row(const struct model *model, const kvca_snapshot *snapshot, size_t row, size_t slot)
{
    const kvca_ranks *ranks = snapshot->ranks;
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
    uint64_t buffer[MOST_SLOTS * 5 + 32];
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    bool repaired; /* no operation leaves anything to be put right */
    assert_int_equal(kvca_pool_repair(model->pool, &repaired), KVCA_OK);
    assert_false(repaired);
    assert_int_equal(kvca_pool_snapshot(model->pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    size_t row = 0;
    for (int draining = 0; draining < 2; draining++) {
        for (size_t slot = 0; slot < model->max_ranks; slot++) {
            if (model->slots[slot].taken && model->slots[slot].draining == draining) {
                check_snapshot_row(model, &snapshot, row++, slot);
            }
        }
        if (!draining) {
            assert_int_equal(snapshot.ranks->count, row);
        }
    }
    assert_int_equal(snapshot.count, row);
    model->counters.size = sizeof model->counters;
    assert_memory_equal(snapshot.counters, &model->counters, sizeof model->counters);
}

/* kvca_tie_set() on a snapshot lists what the pool would draw from. */
static void check_tie_set(struct model *model)
{
    uint64_t buffer[MOST_SLOTS * 5 + 32];
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    bool candidates[MOST_RANKS] = {false};
    struct rank_set set = set_of(model);
    for (size_t slot = 0; slot < model->max_ranks; slot++) {
        candidates[slot] = model->slots[slot].taken && !model->slots[slot].draining;
    }
    set.request_blocks = below(model, 30);
    struct reference expected = reference_select(&model->params, &set, candidates);
    assert_int_equal(kvca_pool_snapshot(model->pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    kvca_ranks ranks = *snapshot.ranks;
    ranks.request_blocks = set.request_blocks;
    kvca_policy *policy = make_policy(*snapshot.params);
    kvca_selection selection = {.size = sizeof selection};
    size_t rows[MOST_SLOTS];
    kvca_status status = kvca_tie_set(policy, &ranks, rows, MOST_SLOTS, &selection);
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

/* How often each operation is chosen. Some are rare, so that bookings pile up in between. */
static const struct {
    void (*step)(struct model *model);
    unsigned weight;
} STEPS[] = {
    {step_put, 6},      {step_drain, 2},  {step_drop, 1},     {step_claim, 4},
    {step_void, 1},     {step_params, 2}, {step_place, 47},   {step_grow, 12},
    {step_release, 20}, {step_forged, 2}, {check_tie_set, 2}, {step_release_again, 1},
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

#endif
