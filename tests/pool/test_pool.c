/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger, case by case. test_pool_model.c mixes all operations; test_pool_death.c has the deaths. */
#include "support/test.h"

#include <float.h>
#include <math.h>

#include "pool/ledger.h"

#define NO_SLOT 99

/* A pool of 4 slots and 2 owners. One owner is claimed. */
struct fixture {
    kvca_pool *pool;
    kvca_owner owner;
};

static int make_pool(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    *state = fixture;
    return kvca_pool_new(4, 2, &params, &fixture->pool) == KVCA_OK &&
                   kvca_pool_set_seed(fixture->pool, 1) == KVCA_OK &&
                   kvca_pool_owner_claim(fixture->pool, 100, &fixture->owner) == KVCA_OK
               ? 0
               : -1;
}

static int free_pool(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool_free(fixture->pool);
    free(fixture);
    return 0;
}

static uint32_t put(kvca_pool *pool, uint64_t worker_id, uint64_t capacity)
{
    kvca_put answer = {.size = sizeof answer};
    kvca_rank rank = {.size = sizeof rank, .worker_id = worker_id, .total_kv_blocks = capacity};
    assert_int_equal(kvca_pool_put(pool, &rank, &answer), KVCA_OK);
    return answer.slot;
}

static kvca_booking place(struct fixture *fixture, uint64_t blocks)
{
    kvca_booking booking;
    kvca_request request = {.size = sizeof request, .blocks = blocks};
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, NULL), KVCA_OK);
    return booking;
}

/* Checks D and N of a worker's only rank. NO_SLOT means that the rank is not in the pool. */
static void check_rank(kvca_pool *pool, uint64_t worker_id, uint64_t blocks, uint64_t requests)
{
    uint64_t buffer[4 * 5 + 32];
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    assert_int_equal(kvca_pool_snapshot(pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    size_t row = 0;
    while (row < snapshot.count && snapshot.ranks->worker_id[row] != worker_id) {
        row++;
    }
    assert_true(row < snapshot.count);
    assert_int_equal(snapshot.ranks->decode_cost_blocks[row], blocks);
    assert_int_equal(snapshot.ranks->active_requests[row], requests);
}

static kvca_counters counters(kvca_pool *pool)
{
    uint64_t buffer[4 * 5 + 32];
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    assert_int_equal(kvca_pool_snapshot(pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    return *snapshot.counters;
}

static void place_books_and_release_gives_back(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->pool, 7, 1000);
    kvca_booking first = place(fixture, 300);
    kvca_booking second = place(fixture, 200);
    check_rank(fixture->pool, 7, 500, 2);
    assert_int_equal(kvca_pool_grow(fixture->pool, &first, 50), KVCA_OK);
    assert_int_equal(first.blocks, 350);
    check_rank(fixture->pool, 7, 550, 2);
    assert_int_equal(kvca_pool_release(fixture->pool, &first), KVCA_OK);
    check_rank(fixture->pool, 7, 200, 1);
    assert_int_equal(kvca_pool_release(fixture->pool, &second), KVCA_OK);
    check_rank(fixture->pool, 7, 0, 0);
}

static void answer_tells_what_happened(void **state)
{
    struct fixture *fixture = *state;
    kvca_request request = {.size = sizeof request, .blocks = 80};
    kvca_booking booking;
    kvca_selection selection = {.size = sizeof selection};
    kvca_pool *pool = fixture->pool;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_NONE_ELIGIBLE);
    uint32_t small = put(pool, 1, 100);
    uint32_t large = put(pool, 2, 200);
    const uint64_t only_small[] = {UINT64_C(1) << small};
    const uint64_t none[] = {0};
    request.eligible = only_small;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    assert_int_equal(selection.row, small);
    assert_int_equal(selection.outcome, KVCA_FIT);
    assert_int_equal(selection.fits, 1);
    request.only_if_fits = true;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_NONE_FITS);
    check_rank(pool, 1, 80, 1);
    request.only_if_fits = false;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    assert_int_equal(selection.outcome, KVCA_FALLBACK);
    check_rank(pool, 1, 160, 2);
    request.eligible = none;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_NONE_ELIGIBLE);
    request.eligible = NULL;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    assert_int_equal(selection.row, large);
    kvca_counters count = counters(pool);
    assert_int_equal(count.placed, 3);
    assert_int_equal(count.fallbacks, 1);
    assert_int_equal(count.none, 3);
}

static void multipliers_are_by_slot(void **state)
{
    struct fixture *fixture = *state;
    uint32_t first = put(fixture->pool, 1, 1000);
    uint32_t second = put(fixture->pool, 2, 1000);
    double multipliers[4] = {0};
    multipliers[first] = 2.0;
    multipliers[second] = 1.0;
    kvca_request request = {.size = sizeof request, .blocks = 10, .preferred_taint_multiplier = multipliers};
    kvca_booking booking;
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    assert_int_equal(selection.row, second);
    multipliers[first] = DBL_MAX * 2;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, &selection),
                     KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
    const uint64_t eligible[] = {UINT64_C(1) << second};
    request.eligible = eligible;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
}

/* The slot with the smallest multiplier takes the request. An unsound one is the answer. */
static void check_multiplier(const struct fixture *fixture, double *multipliers, uint32_t slot)
{
    const kvca_request request = {.size = sizeof request, .blocks = 10, .preferred_taint_multiplier = multipliers};
    kvca_booking booking;
    kvca_selection selection = {.size = sizeof selection};
    multipliers[slot] = HUGE_VAL;
    kvca_status unsound = kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, &selection);
    multipliers[slot] = 0.5;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    multipliers[slot] = 1.0;
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_OK);
    if (unsound != KVCA_ERR_PREFERRED_TAINT_MULTIPLIER || selection.row != slot) {
        fail_msg("slot %u of %u: status %d where its multiplier is infinite, slot %zu where it is the smallest", slot,
                 kvca_pool_max_ranks(fixture->pool), (int)unsound, selection.row);
    }
}

/* In pools of all sizes up to more than three groups of slots. */
static void any_single_multiplier_is_looked_at(void **state)
{
    (void)state;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    double multipliers[200];
    for (size_t i = 0; i < COUNT(multipliers); i++) {
        multipliers[i] = 1.0;
    }
    for (size_t slots = 1; slots <= COUNT(multipliers); slots += 200 / rounds(200)) {
        struct fixture fixture;
        assert_int_equal(kvca_pool_new((uint32_t)slots, 1, &params, &fixture.pool), KVCA_OK);
        assert_int_equal(kvca_pool_owner_claim(fixture.pool, 1, &fixture.owner), KVCA_OK);
        for (size_t i = 0; i < slots; i++) {
            put(fixture.pool, i, 1000);
        }
        for (uint32_t slot = 0; slot < slots; slot++) {
            check_multiplier(&fixture, multipliers, slot);
        }
        kvca_pool_free(fixture.pool);
    }
}

static void drained_rank_frees_its_slot_when_its_last_request_ends(void **state)
{
    struct fixture *fixture = *state;
    uint32_t slot = put(fixture->pool, 1, 1000);
    kvca_booking booking = place(fixture, 10);
    assert_int_equal(kvca_pool_drain(fixture->pool, 1, 0), KVCA_OK);
    kvca_request request = {.size = sizeof request, .blocks = 1};
    kvca_booking none;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &none, NULL), KVCA_NONE_ELIGIBLE);
    check_rank(fixture->pool, 1, 10, 1);
    uint32_t found = NO_SLOT;
    assert_int_equal(kvca_pool_find(fixture->pool, 1, 0, &found), KVCA_OK);
    assert_int_equal(found, slot);
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_OK);
    assert_int_equal(kvca_pool_find(fixture->pool, 1, 0, &found), KVCA_ERR_NO_SUCH_RANK);
    assert_int_equal(kvca_pool_drain(fixture->pool, 1, 0), KVCA_ERR_NO_SUCH_RANK);
    assert_int_equal(put(fixture->pool, 2, 1000), slot);
    assert_int_equal(kvca_pool_drain(fixture->pool, 2, 0), KVCA_OK); /* idle, so it leaves at once */
    assert_int_equal(kvca_pool_find(fixture->pool, 2, 0, &found), KVCA_ERR_NO_SUCH_RANK);
}

static void draining_rank_that_is_put_again_keeps_slot_and_bookings(void **state)
{
    struct fixture *fixture = *state;
    uint32_t slot = put(fixture->pool, 1, 1000);
    kvca_booking booking = place(fixture, 10);
    assert_int_equal(kvca_pool_drain(fixture->pool, 1, 0), KVCA_OK);
    kvca_put answer = {.size = sizeof answer};
    kvca_rank rank = {.size = sizeof rank, .worker_id = 1, .total_kv_blocks = 15};
    assert_int_equal(kvca_pool_put(fixture->pool, &rank, &answer), KVCA_OK);
    assert_int_equal(answer.slot, slot);
    assert_false(answer.added);
    kvca_request request = {.size = sizeof request, .blocks = 10, .only_if_fits = true};
    kvca_booking second;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &second, NULL), KVCA_NONE_FITS);
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_OK);
    check_rank(fixture->pool, 1, 0, 0);
}

static void dropped_rank_makes_its_bookings_stale(void **state)
{
    struct fixture *fixture = *state;
    uint32_t slot = put(fixture->pool, 1, 1000);
    kvca_booking old = place(fixture, 10);
    kvca_booking copy = old;
    assert_int_equal(kvca_pool_drop(fixture->pool, 1, 0), KVCA_OK);
    assert_int_equal(kvca_pool_drop(fixture->pool, 1, 0), KVCA_ERR_NO_SUCH_RANK);
    assert_int_equal(put(fixture->pool, 2, 1000), slot);
    kvca_booking other = place(fixture, 20);
    assert_int_equal(kvca_pool_grow(fixture->pool, &old, 1), KVCA_STALE);
    assert_memory_equal(&old, &copy, sizeof old);
    assert_int_equal(kvca_pool_release(fixture->pool, &old), KVCA_STALE);
    assert_int_equal(kvca_pool_release(fixture->pool, &old), KVCA_ERR_NO_BOOKING);
    check_rank(fixture->pool, 2, 20, 1);
    assert_int_equal(counters(fixture->pool).stale, 2);
    assert_int_equal(kvca_pool_release(fixture->pool, &other), KVCA_OK);
}

static void repeated_and_foreign_bookings_are_told_apart(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool *other_pool;
    kvca_owner other_owner;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    assert_int_equal(kvca_pool_new(4, 2, &params, &other_pool), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(other_pool, 1, &other_owner), KVCA_OK);
    put(fixture->pool, 1, 1000);
    put(other_pool, 1, 1000);
    kvca_booking booking = place(fixture, 10);
    const struct {
        const char *name;
        kvca_booking booking;
        kvca_status status;
    } rows[] = {
        {"empty", {0}, KVCA_ERR_NO_BOOKING},
        {"no owner", {.blocks = 10}, KVCA_ERR_FOREIGN_BOOKING},
        {"a slot alone", {.slot = 1}, KVCA_ERR_FOREIGN_BOOKING},
        {"a generation alone", {.generation = 1}, KVCA_ERR_FOREIGN_BOOKING},
        {"slot past the last", {4, booking.generation, booking.owner, 10}, KVCA_ERR_FOREIGN_BOOKING},
        {"slot never taken", {3, booking.generation, booking.owner, 10}, KVCA_ERR_FOREIGN_BOOKING},
        {"generation to come", {booking.slot, booking.generation + 1, booking.owner, 10}, KVCA_ERR_FOREIGN_BOOKING},
        {"fewer blocks than the only booking has",
         {booking.slot, booking.generation, booking.owner, 9},
         KVCA_ERR_FOREIGN_BOOKING},
        {"more blocks than booked", {booking.slot, booking.generation, booking.owner, 11}, KVCA_ERR_FOREIGN_BOOKING},
        {"owner past the last", {booking.slot, booking.generation, booking.owner + 2, 10}, KVCA_ERR_FOREIGN_BOOKING},
        {"owner not claimed yet",
         {booking.slot, booking.generation, booking.owner + 1, 10},
         KVCA_ERR_FOREIGN_BOOKING},
        {"owner's claim to come",
         {booking.slot, booking.generation, booking.owner + (UINT64_C(1) << 32), 10},
         KVCA_ERR_FOREIGN_BOOKING},
        {"owner before the first claim",
         {booking.slot, booking.generation, booking.owner - (UINT64_C(1) << 32), 10},
         KVCA_ERR_FOREIGN_BOOKING},
        {"owner of another pool", {booking.slot, booking.generation, other_owner, 10}, KVCA_ERR_FOREIGN_BOOKING},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("%s\n", rows[i].name);
        kvca_booking tried = rows[i].booking;
        assert_int_equal(kvca_pool_grow(fixture->pool, &tried, 1), rows[i].status);
        assert_int_equal(kvca_pool_release(fixture->pool, &tried), rows[i].status);
        assert_memory_equal(&tried, &rows[i].booking, sizeof tried);
        check_rank(fixture->pool, 1, 10, 1);
    }
    assert_int_equal(counters(fixture->pool).stale, 0);
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_OK);
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_ERR_NO_BOOKING);
    check_rank(fixture->pool, 1, 0, 0);
    kvca_pool_free(other_pool);
}

static void voided_owner_gives_back_all_it_booked(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool *pool = fixture->pool;
    kvca_owner dead;
    assert_int_equal(kvca_pool_owner_claim(pool, 200, &dead), KVCA_OK);
    put(pool, 1, 1000);
    put(pool, 2, 1000);
    kvca_request request = {.size = sizeof request, .blocks = 10};
    kvca_booking lost;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(kvca_pool_place(pool, dead, &request, &lost, NULL), KVCA_OK);
    }
    kvca_booking kept = place(fixture, 7);
    assert_int_equal(kvca_pool_drain(pool, kept.slot == 0 ? 2 : 1, 0), KVCA_OK);
    uint64_t blocks = 0;
    uint64_t requests = 0;
    assert_int_equal(kvca_pool_owner_void(pool, dead, &blocks, &requests), KVCA_OK);
    assert_int_equal(blocks, 40);
    assert_int_equal(requests, 4);
    assert_int_equal(counters(pool).voided, 4);
    uint64_t worker = kept.slot == 0 ? 1 : 2;
    check_rank(pool, worker, 7, 1);
    uint32_t slot;
    assert_int_equal(kvca_pool_find(pool, 3 - worker, 0, &slot), KVCA_ERR_NO_SUCH_RANK); /* it has drained */
    assert_int_equal(kvca_pool_owner_void(pool, dead, NULL, NULL), KVCA_ERR_OWNER);
    assert_int_equal(kvca_pool_release(pool, &lost), KVCA_STALE);
    assert_int_equal(kvca_pool_place(pool, dead, &request, &lost, NULL), KVCA_ERR_OWNER);
    kvca_owner next;
    assert_int_equal(kvca_pool_owner_claim(pool, 200, &next), KVCA_OK);
    assert_int_not_equal(next, dead);
    assert_int_equal(kvca_pool_release(pool, &kept), KVCA_OK);
}

static void owners_are_listed(void **state)
{
    struct fixture *fixture = *state;
    kvca_owner second;
    kvca_owner third;
    kvca_owner_info info = {.size = sizeof info};
    assert_int_equal(kvca_pool_owner_at(fixture->pool, 1, &info), KVCA_ERR_OWNER);
    assert_int_equal(kvca_pool_owner_claim(fixture->pool, 200, &second), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(fixture->pool, 300, &third), KVCA_ERR_OWNERS_FULL);
    assert_int_equal(kvca_pool_owner_at(fixture->pool, 0, &info), KVCA_OK);
    assert_int_equal(info.owner, fixture->owner);
    assert_int_equal(info.id, 100);
    assert_int_equal(kvca_pool_owner_at(fixture->pool, 1, &info), KVCA_OK);
    assert_int_equal(info.owner, second);
    assert_int_equal(info.id, 200);
    assert_int_equal(kvca_pool_owner_at(fixture->pool, 2, &info), KVCA_ERR_OWNER);
}

static void pool_is_full_and_has_room_again(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t worker = 0; worker < 4; worker++) {
        assert_int_equal(put(fixture->pool, worker, 10), worker);
    }
    kvca_put answer = {.size = sizeof answer};
    kvca_rank fifth = {.size = sizeof fifth, .worker_id = 4, .total_kv_blocks = 10};
    kvca_rank known = {.size = sizeof known, .worker_id = 2, .total_kv_blocks = 20};
    assert_int_equal(kvca_pool_put(fixture->pool, &fifth, &answer), KVCA_ERR_POOL_FULL);
    assert_int_equal(kvca_pool_put(fixture->pool, &known, &answer), KVCA_OK);
    assert_false(answer.added);
    assert_int_equal(kvca_pool_drop(fixture->pool, 1, 0), KVCA_OK);
    assert_int_equal(kvca_pool_put(fixture->pool, &fifth, &answer), KVCA_OK);
    assert_int_equal(answer.slot, 1);
    assert_true(answer.added);
}

/* A dropped rank leaves its slot to another one, with a new generation. Hosts that remember slots are told of that. */
static void put_tells_the_generation_of_bookings(void **state)
{
    struct fixture *fixture = *state;
    kvca_rank rank = {.size = sizeof rank, .worker_id = 1};
    kvca_put first = {.size = sizeof first};
    kvca_put again = {.size = sizeof again};
    kvca_put other = {.size = sizeof other};
    assert_int_equal(kvca_pool_put(fixture->pool, &rank, &first), KVCA_OK);
    assert_int_equal(place(fixture, 1).generation, first.generation);
    assert_int_equal(kvca_pool_put(fixture->pool, &rank, &again), KVCA_OK);
    assert_int_equal(again.generation, first.generation);
    assert_int_equal(kvca_pool_drop(fixture->pool, 1, 0), KVCA_OK);
    rank.worker_id = 2;
    assert_int_equal(kvca_pool_put(fixture->pool, &rank, &other), KVCA_OK);
    assert_int_equal(other.slot, first.slot);
    assert_int_not_equal(other.generation, first.generation);
    assert_int_equal(place(fixture, 1).generation, other.generation);
}

static void put_tells_unknown_capacity(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        kvca_params params;
        uint64_t capacity;
        bool unknown;
    } rows[] = {
        {PARAMS(1.0, true, 0.0, 0), 0, true},
        {PARAMS(1.0, true, 0.0, 0), 10, false},
        {PARAMS(1.0, true, 0.0, 10), 0, false},
        {PARAMS(KVCA_NO_CAPACITY_FILTER, true, 0.0, 0), 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        kvca_put answer = {.size = sizeof answer};
        kvca_rank rank = {.size = sizeof rank, .worker_id = 1, .total_kv_blocks = rows[i].capacity};
        assert_int_equal(kvca_pool_set_params(fixture->pool, &rows[i].params), KVCA_OK);
        assert_int_equal(kvca_pool_put(fixture->pool, &rank, &answer), KVCA_OK);
        assert_int_equal(answer.unknown_capacity, rows[i].unknown);
    }
}

static void changed_parameters_change_limits(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->pool, 1, 1000);
    put(fixture->pool, 2, 0);
    const uint64_t eligible[] = {1};
    kvca_request request = {.size = sizeof request, .blocks = 600, .eligible = eligible, .only_if_fits = true};
    kvca_booking booking;
    kvca_params params = KVCA_PARAMS_DEFAULT;
    params.capacity_fraction = 0.5;
    params.capacity_blocks = 700;
    assert_int_equal(kvca_pool_set_params(fixture->pool, &params), KVCA_OK);
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, NULL), KVCA_NEVER_FITS);
    const uint64_t second[] = {2};
    request.eligible = second;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, NULL), KVCA_NEVER_FITS);
    params.capacity_fraction = 0.9;
    assert_int_equal(kvca_pool_set_params(fixture->pool, &params), KVCA_OK);
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, NULL), KVCA_OK);
    params.capacity_fraction = 7;
    assert_int_equal(kvca_pool_set_params(fixture->pool, &params), KVCA_ERR_CAPACITY_FRACTION);
}

static void blocks_do_not_wrap(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->pool, 1, UINT64_MAX);
    kvca_booking booking = place(fixture, UINT64_MAX - 5);
    kvca_request request = {.size = sizeof request, .blocks = 6};
    kvca_booking second;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &second, NULL), KVCA_ERR_OVERFLOW);
    assert_int_equal(kvca_pool_grow(fixture->pool, &booking, 6), KVCA_ERR_OVERFLOW);
    check_rank(fixture->pool, 1, UINT64_MAX - 5, 1);
    assert_int_equal(kvca_pool_grow(fixture->pool, &booking, 5), KVCA_OK);
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_OK);
    check_rank(fixture->pool, 1, 0, 0);
}

/* A rank that cannot count the request is passed over while another one can. */
static void ranks_that_would_overflow_are_passed_over(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->pool, 1, 0);
    put(fixture->pool, 2, 0);
    const uint64_t first[] = {1};
    kvca_request request = {.size = sizeof request, .blocks = UINT64_MAX, .eligible = first};
    kvca_booking huge;
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &huge, NULL), KVCA_OK);
    request.eligible = NULL;
    request.blocks = 1;
    for (int i = 0; i < 3; i++) {
        kvca_booking booking;
        assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
        assert_int_equal(selection.row, 1);
        assert_int_equal(selection.ties, 1);
    }
    request.eligible = first;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &huge, NULL), KVCA_ERR_OVERFLOW);
    check_rank(fixture->pool, 1, UINT64_MAX, 1);
    check_rank(fixture->pool, 2, 3, 3);
}

/*
 * The parts of this pool have no gap between them. The pool is full, and the request is so large that the pool looks at
 * slots one by one.
 */
static void parts_of_a_full_pool_are_apart(void **state)
{
    (void)state;
    const uint32_t ranks = 512;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_pool *pool;
    kvca_owner owner;
    kvca_booking booking;
    assert_int_equal(kvca_pool_new(ranks, 1, &params, &pool), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(pool, 0, &owner), KVCA_OK);
    for (uint32_t worker = 0; worker < ranks; worker++) {
        const kvca_rank rank = {.size = sizeof rank, .worker_id = worker, .dp_rank = 7};
        assert_int_equal(kvca_pool_put(pool, &rank, NULL), KVCA_OK);
    }
    uint32_t index[2 * 512]; /* placing does not change it */
    assert_int_equal(pool->buckets, COUNT(index));
    memcpy(index, kvca_half_words(pool, KVCA_PART_INDEX), sizeof index);
    for (uint32_t round = 0; round < ranks; round++) {
        kvca_request request = {.size = sizeof request, .blocks = UINT64_MAX};
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_pool_place(pool, owner, &request, &booking, &selection), KVCA_OK);
        assert_int_equal(selection.ties, ranks - round);
        assert_memory_equal(kvca_half_words(pool, KVCA_PART_INDEX), index, sizeof index);
    }
    booking = (kvca_booking){.slot = ranks, .owner = owner, .blocks = 1}; /* no slot's state lies there */
    assert_int_equal(kvca_pool_release(pool, &booking), KVCA_ERR_FOREIGN_BOOKING);
    assert_int_equal(
        kvca_pool_place(pool, owner, &(kvca_request){.size = sizeof(kvca_request), .blocks = 1}, &booking, NULL),
        KVCA_ERR_OVERFLOW);
    kvca_pool_free(pool);
}

/* The sum that an owner gives back may overflow. Then it is the largest integer. */
static void blocks_given_back_are_counted_up_to_the_largest_integer(void **state)
{
    struct fixture *fixture = *state;
    uint64_t blocks;
    uint64_t requests;
    for (uint64_t worker = 0; worker < 3; worker++) {
        const uint64_t eligible[] = {UINT64_C(1) << put(fixture->pool, worker, 0)};
        kvca_request request = {.size = sizeof request, .blocks = UINT64_MAX / 2, .eligible = eligible};
        kvca_booking booking;
        assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, NULL), KVCA_OK);
    }
    assert_int_equal(kvca_pool_owner_void(fixture->pool, fixture->owner, &blocks, &requests), KVCA_OK);
    assert_true(blocks == UINT64_MAX);
    assert_int_equal(requests, 3);
}

/*
 * A slot is retired after 2^32 ranks and an owner after 2^32 claims. Otherwise an old booking could match a new rank.
 */
static void used_up_generations_are_retired(void **state)
{
    struct fixture *fixture = *state;
    kvca_words(fixture->pool, KVCA_PART_STATES)[0] = kvca_slot_word(UINT32_MAX - 1, KVCA_SLOT_FREE);
    assert_int_equal(put(fixture->pool, 1, 10), 0);
    kvca_booking booking = place(fixture, 1);
    assert_int_equal(kvca_pool_drop(fixture->pool, 1, 0), KVCA_OK);
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_STALE);
    assert_int_equal(put(fixture->pool, 2, 10), 1);
    kvca_owner owner;
    uint64_t before_last = (uint32_t)(fixture->pool->first_claim - 2);
    kvca_owner_entry(fixture->pool, 1)->state = before_last << 32;
    assert_int_equal(kvca_pool_owner_claim(fixture->pool, 1, &owner), KVCA_OK);
    assert_int_equal(kvca_pool_owner_void(fixture->pool, owner, NULL, NULL), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(fixture->pool, 1, &owner), KVCA_ERR_OWNERS_FULL);
}

/* Leaves the pool as a death might: dirty, and all that follows from the truth is wrong. */
static void scramble(kvca_pool *pool)
{
    for (uint32_t slot = 0; slot < pool->max_ranks; slot++) {
        kvca_words(pool, KVCA_PART_BLOCKS)[slot] = 7777;
        kvca_words(pool, KVCA_PART_REQUESTS)[slot] = 77;
        kvca_words(pool, KVCA_PART_LIMITS)[slot] = 7;
    }
    memset(kvca_words(pool, KVCA_PART_PLACEABLE), 0, 8);
    memset(kvca_half_words(pool, KVCA_PART_INDEX), 0, pool->buckets * 4);
    pool->slots = 0;
    pool->free_hint = pool->max_ranks;
    pool->dirty = KVCA_DIRTY;
}

static void call_put(struct fixture *fixture)
{
    kvca_put answer = {.size = sizeof answer};
    kvca_rank rank = {.size = sizeof rank, .worker_id = 1, .total_kv_blocks = 1000};
    assert_int_equal(kvca_pool_put(fixture->pool, &rank, &answer), KVCA_OK);
    assert_false(answer.added);
}

static void call_drain(struct fixture *fixture)
{
    assert_int_equal(kvca_pool_drain(fixture->pool, 9, 0), KVCA_ERR_NO_SUCH_RANK);
}

static void call_drop(struct fixture *fixture)
{
    assert_int_equal(kvca_pool_drop(fixture->pool, 9, 0), KVCA_ERR_NO_SUCH_RANK);
}

static void call_find(struct fixture *fixture)
{
    uint32_t slot;
    assert_int_equal(kvca_pool_find(fixture->pool, 1, 0, &slot), KVCA_OK);
}

static void call_claim(struct fixture *fixture)
{
    kvca_owner owner;
    assert_int_equal(kvca_pool_owner_claim(fixture->pool, 5, &owner), KVCA_OK);
}

static void call_void(struct fixture *fixture)
{
    assert_int_equal(kvca_pool_owner_void(fixture->pool, 0, NULL, NULL), KVCA_ERR_OWNER);
}

static void call_owner_at(struct fixture *fixture)
{
    kvca_owner_info info = {.size = sizeof info};
    assert_int_equal(kvca_pool_owner_at(fixture->pool, 0, &info), KVCA_OK);
}

static void call_place(struct fixture *fixture)
{
    kvca_request request = {.size = sizeof request, .blocks = 991, .only_if_fits = true};
    kvca_booking booking;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, NULL), KVCA_NONE_FITS);
    request.blocks = 990;
    assert_int_equal(kvca_pool_place(fixture->pool, fixture->owner, &request, &booking, NULL), KVCA_OK);
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_OK);
}

static void call_grow(struct fixture *fixture)
{
    kvca_booking booking = {0};
    assert_int_equal(kvca_pool_grow(fixture->pool, &booking, 1), KVCA_ERR_NO_BOOKING);
}

static void call_release(struct fixture *fixture)
{
    kvca_booking booking = {0};
    assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_ERR_NO_BOOKING);
}

static void call_set_params(struct fixture *fixture)
{
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    assert_int_equal(kvca_pool_set_params(fixture->pool, &params), KVCA_OK);
}

static void call_snapshot(struct fixture *fixture)
{
    check_rank(fixture->pool, 1, 10, 1);
}

static void every_call_puts_a_dirty_pool_right_first(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *name;
        void (*call)(struct fixture *fixture);
    } calls[] = {
        {"put", call_put},         {"drain", call_drain},           {"drop", call_drop},
        {"find", call_find},       {"claim", call_claim},           {"void", call_void},
        {"owner", call_owner_at},  {"place", call_place},           {"grow", call_grow},
        {"release", call_release}, {"set_params", call_set_params}, {"snapshot", call_snapshot},
    };
    put(fixture->pool, 1, 1000);
    place(fixture, 10);
    for (size_t i = 0; i < COUNT(calls); i++) {
        print_message("%s\n", calls[i].name);
        scramble(fixture->pool);
        calls[i].call(fixture);
        assert_int_equal(fixture->pool->dirty, KVCA_CLEAN);
        check_rank(fixture->pool, 1, 10, 1);
    }
    bool repaired;
    assert_int_equal(kvca_pool_repair(fixture->pool, &repaired), KVCA_OK);
    assert_false(repaired);
    scramble(fixture->pool);
    assert_int_equal(kvca_pool_repair(fixture->pool, &repaired), KVCA_OK);
    assert_true(repaired);
    call_place(fixture);
}

/* A death in a drop can leave a free slot with bookings, and a death in a void can leave an owner's bookings. */
static void repair_clears_what_nobody_has(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->pool, 1, 1000);
    kvca_owner_row(fixture->pool, KVCA_PART_OWNER_BLOCKS, 0)[1] = 5;
    kvca_owner_row(fixture->pool, KVCA_PART_OWNER_REQUESTS, 0)[1] = 1;
    kvca_owner_row(fixture->pool, KVCA_PART_OWNER_BLOCKS, 1)[0] = 5;
    kvca_owner_row(fixture->pool, KVCA_PART_OWNER_REQUESTS, 1)[0] = 1;
    fixture->pool->dirty = KVCA_DIRTY;
    assert_int_equal(kvca_pool_repair(fixture->pool, NULL), KVCA_OK);
    assert_int_equal(put(fixture->pool, 2, 1000), 1);
    call_claim(fixture);
    scramble(fixture->pool);
    check_rank(fixture->pool, 1, 0, 0);
    check_rank(fixture->pool, 2, 0, 0);
}

static void same_seed_gives_same_placements(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t worker = 0; worker < 4; worker++) {
        put(fixture->pool, worker, 1000);
    }
    uint32_t slots[3][16];
    for (uint64_t run = 0; run < 3; run++) {
        assert_int_equal(kvca_pool_set_seed(fixture->pool, run / 2), KVCA_OK); /* 0, 0, 1 */
        for (int i = 0; i < 16; i++) {
            kvca_booking booking = place(fixture, 1);
            slots[run][i] = booking.slot;
            assert_int_equal(kvca_pool_release(fixture->pool, &booking), KVCA_OK);
        }
    }
    assert_memory_equal(slots[0], slots[1], sizeof slots[0]);
    assert_memory_not_equal(slots[0], slots[2], sizeof slots[0]);
}

/* Forty requests arrive at once. Picked from one view and booked later, they pile up. Placed, they do not. */
static void a_burst_does_not_over_book(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t capacity[] = {100, 100, 100, 100};
    for (uint64_t worker = 0; worker < 4; worker++) {
        put(fixture->pool, worker, capacity[worker]);
    }
    kvca_policy *policy = make_policy((kvca_params)PARAMS(1.0, false, 0.0, 0));
    uint64_t booked[4] = {0, 1, 1, 1};
    const uint64_t seen[4] = {0, 1, 1, 1};
    const uint64_t requests[4] = {0};
    kvca_ranks ranks = {.size = sizeof ranks,
                        .count = 4,
                        .decode_cost_blocks = seen,
                        .active_requests = requests,
                        .total_kv_blocks = capacity,
                        .request_blocks = 10};
    for (int i = 0; i < 40; i++) {
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        booked[selection.row] += 10;
        assert_int_equal(place(fixture, 10).blocks, 10);
    }
    kvca_policy_free(policy);
    assert_int_equal(booked[0], 400); /* four times its capacity, beside three idle ranks */
    for (uint64_t worker = 0; worker < 4; worker++) {
        check_rank(fixture->pool, worker, 100, 10);
    }
    assert_int_equal(counters(fixture->pool).fallbacks, 0);
}

static void a_million_releases(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->pool, 1, 1000);
    put(fixture->pool, 2, 1000);
    for (int i = 0; i < 1000000; i++) {
        kvca_booking booking = place(fixture, (uint64_t)i % 900);
        if (kvca_pool_release(fixture->pool, &booking) != KVCA_OK) {
            fail_msg("release %d", i);
        }
    }
    check_rank(fixture->pool, 1, 0, 0);
    check_rank(fixture->pool, 2, 0, 0);
}

static void ranks_are_found_among_many(void **state)
{
    (void)state;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_pool *pool;
    uint64_t random = 5;
    assert_int_equal(kvca_pool_new(100, 1, &params, &pool), KVCA_OK);
    bool there[300] = {false};
    size_t count = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t id = random_below(&random, 300);
        kvca_rank rank = {.size = sizeof rank, .worker_id = id / 3 << 40, .dp_rank = (uint32_t)(id % 3)};
        if (there[id]) {
            assert_int_equal(kvca_pool_drop(pool, rank.worker_id, rank.dp_rank), KVCA_OK);
            count--;
        } else {
            assert_int_equal(kvca_pool_put(pool, &rank, NULL), count < 100 ? KVCA_OK : KVCA_ERR_POOL_FULL);
        }
        there[id] = !there[id] && count < 100;
        count += there[id];
        uint64_t other = random_below(&random, 300);
        uint32_t slot;
        assert_int_equal(kvca_pool_find(pool, other / 3 << 40, (uint32_t)(other % 3), &slot),
                         there[other] ? KVCA_OK : KVCA_ERR_NO_SUCH_RANK);
    }
    kvca_pool_free(pool);
}

static void smallest_pools_work(void **state)
{
    (void)state;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_pool *pool;
    kvca_owner owner;
    kvca_request request = {.size = sizeof request, .blocks = 1};
    kvca_booking booking;
    kvca_rank rank = {.size = sizeof rank, .worker_id = 1};
    assert_int_equal(kvca_pool_new(0, 0, &params, &pool), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(pool, 1, &owner), KVCA_ERR_OWNERS_FULL);
    assert_int_equal(kvca_pool_put(pool, &rank, NULL), KVCA_ERR_POOL_FULL);
    kvca_pool_free(pool);
    assert_int_equal(kvca_pool_new(0, 1, &params, &pool), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(pool, 1, &owner), KVCA_OK);
    assert_int_equal(kvca_pool_place(pool, owner, &request, &booking, NULL), KVCA_NONE_ELIGIBLE);
    kvca_pool_free(pool);
    assert_int_equal(kvca_pool_new(1, 1, &params, &pool), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(pool, 1, &owner), KVCA_OK);
    assert_int_equal(kvca_pool_put(pool, &rank, NULL), KVCA_OK);
    assert_int_equal(kvca_pool_place(pool, owner, &request, &booking, NULL), KVCA_OK);
    assert_int_equal(kvca_pool_release(pool, &booking), KVCA_OK);
    kvca_pool_free(pool);
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_pool *pool = NULL;
    assert_int_equal(kvca_pool_bytes(KVCA_POOL_MAX_RANKS + 1, 1), 0);
    assert_int_equal(kvca_pool_bytes(1, KVCA_POOL_MAX_OWNERS + 1), 0);
    assert_int_equal(kvca_pool_bytes(UINT32_MAX, UINT32_MAX), 0);
    assert_int_equal(kvca_pool_new(UINT32_MAX, 1, &params, &pool), KVCA_ERR_POOL_SIZE);
    assert_int_equal(kvca_pool_bytes(8, 1) % KVCA_POOL_ALIGNMENT, 0);
    assert_true(kvca_pool_bytes(1024, 65) - kvca_pool_bytes(1024, 1) <= 64 * (1024 * 16 + 64));
    assert_true(kvca_pool_bytes(2048, 0) - kvca_pool_bytes(1024, 0) <= 1024 * 84);
}

static void only_a_pool_is_attached(void **state)
{
    (void)state;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    size_t bytes = kvca_pool_bytes(8, 2);
    unsigned char *memory = aligned_alloc(KVCA_POOL_ALIGNMENT, 2 * bytes);
    kvca_pool *pool = NULL;
    kvca_pool *attached = NULL;
    assert_int_equal(kvca_pool_init(memory, bytes - 1, 8, 2, &params, &pool), KVCA_ERR_POOL_MEMORY);
    assert_int_equal(kvca_pool_init(memory + 8, bytes, 8, 2, &params, &pool), KVCA_ERR_POOL_MEMORY);
    assert_null(pool);
    assert_int_equal(kvca_pool_init(memory, bytes, 8, 2, &params, &pool), KVCA_OK);
    assert_int_equal(kvca_pool_attach(memory, 2 * bytes, &attached), KVCA_OK);
    assert_ptr_equal(attached, pool);
    assert_int_equal(kvca_pool_max_ranks(attached), 8);
    assert_int_equal(kvca_pool_max_owners(attached), 2);
    attached = NULL;
    assert_int_equal(kvca_pool_attach(memory, bytes - 1, &attached), KVCA_ERR_POOL_MEMORY);
    assert_int_equal(kvca_pool_attach(memory, 16, &attached), KVCA_ERR_POOL_MEMORY);
    assert_int_equal(kvca_pool_attach(memory + 8, bytes, &attached), KVCA_ERR_POOL_MEMORY);
    /* Every bit in the head's description of the layout counts. */
    const size_t described = 32 + 13 * 8;
    for (size_t bit = 0; bit < 8 * described; bit++) {
        memory[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (kvca_pool_attach(memory, 2 * bytes, &attached) == KVCA_OK) {
            fail_msg("bit %zu was changed, and the pool was attached", bit);
        }
        memory[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    uint64_t random = 9;
    for (size_t i = 0; i < bytes; i++) {
        memory[i] = (unsigned char)next_random(&random);
    }
    assert_int_equal(kvca_pool_attach(memory, bytes, &attached), KVCA_ERR_POOL_LAYOUT);
    memset(memory, 0, bytes);
    assert_int_equal(kvca_pool_attach(memory, bytes, &attached), KVCA_ERR_POOL_LAYOUT);
    assert_null(attached);
    free(memory);
}

/* A head that would lead outside of the block, at once or in a repair, is not accepted as a pool. */
static void a_head_that_leads_outside_is_not_attached(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        size_t offset;
        uint64_t dirty;
        uint64_t most; /* the largest value that stays inside */
    } words[] = {
        {offsetof(struct kvca_pool, slots), KVCA_CLEAN, 4},
        {offsetof(struct kvca_pool, free_hint), KVCA_CLEAN, 4},
        {offsetof(struct kvca_pool, journal.slot), KVCA_CLEAN, UINT64_MAX},
        {offsetof(struct kvca_pool, journal.slot), KVCA_DIRTY, UINT64_MAX},
        {offsetof(struct kvca_pool, journal.slot), KVCA_DIRTY_PUT, 3},
        {offsetof(struct kvca_pool, journal.slot), KVCA_DIRTY_BOOKING, 3},
        {offsetof(struct kvca_pool, journal.owner), KVCA_DIRTY_PUT, UINT64_MAX},
        {offsetof(struct kvca_pool, journal.owner), KVCA_DIRTY_BOOKING, 1},
        {offsetof(struct kvca_pool, dirty), KVCA_CLEAN, UINT64_MAX},
    };
    size_t bytes = kvca_pool_bytes(4, 2);
    for (size_t i = 0; i < COUNT(words); i++) {
        struct kvca_pool *pool = fixture->pool;
        uint64_t *word = (uint64_t *)((char *)pool + words[i].offset);
        uint64_t was = *word;
        kvca_pool *attached = NULL;
        pool->dirty = words[i].dirty;
        *word = words[i].most;
        assert_int_equal(kvca_pool_attach(pool, bytes, &attached), KVCA_OK);
        *word = words[i].most + 1;
        if (words[i].most != UINT64_MAX && kvca_pool_attach(pool, bytes, &attached) != KVCA_ERR_POOL_LAYOUT) {
            fail_msg("row %zu was attached", i);
        }
        *word = was;
        pool->dirty = KVCA_CLEAN;
    }
}

/* A block may move, because nothing in it points into it. */
static void a_copied_block_is_a_pool(void **state)
{
    struct fixture *fixture = *state;
    put(fixture->pool, 1, 1000);
    kvca_booking booking = place(fixture, 10);
    size_t bytes = kvca_pool_bytes(4, 2);
    void *memory = aligned_alloc(KVCA_POOL_ALIGNMENT, bytes);
    memcpy(memory, fixture->pool, bytes);
    memset(fixture->pool, 0xa5, bytes);
    kvca_pool *moved;
    assert_int_equal(kvca_pool_attach(memory, bytes, &moved), KVCA_OK);
    check_rank(moved, 1, 10, 1);
    assert_int_equal(kvca_pool_release(moved, &booking), KVCA_OK);
    check_rank(moved, 1, 0, 0);
    free(memory);
}

static void snapshot_puts_draining_ranks_last(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t worker = 0; worker < 3; worker++) {
        put(fixture->pool, worker, 10 + worker);
        place(fixture, worker);
    }
    assert_int_equal(kvca_pool_drain(fixture->pool, 1, 0), KVCA_OK);
    size_t bytes = kvca_pool_snapshot_bytes(fixture->pool);
    uint64_t *buffer = malloc(bytes);
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    assert_int_equal(kvca_pool_snapshot(fixture->pool, buffer, bytes - 1, &snapshot), KVCA_ERR_POOL_MEMORY);
    assert_int_equal(kvca_pool_snapshot(fixture->pool, buffer, bytes, &snapshot), KVCA_OK);
    static const uint64_t workers[] = {0, 2, 1};
    assert_int_equal(snapshot.ranks->count, 2);
    assert_int_equal(snapshot.count, 3);
    for (size_t row = 0; row < 3; row++) {
        assert_int_equal(snapshot.ranks->worker_id[row], workers[row]);
        assert_int_equal(snapshot.slot[row], workers[row]);
        assert_int_equal(snapshot.ranks->dp_rank[row], 0);
        assert_int_equal(snapshot.ranks->decode_cost_blocks[row], workers[row]);
        assert_int_equal(snapshot.ranks->active_requests[row], 1);
        assert_int_equal(snapshot.ranks->total_kv_blocks[row], 10 + workers[row]);
    }
    free(buffer);
}

static void tokens_make_blocks(void **state)
{
    (void)state;
    static const uint64_t rows[][3] = {
        {0, 16, 0},
        {1, 16, 1},
        {16, 16, 1},
        {17, 16, 2},
        {UINT64_MAX, 1, UINT64_MAX},
        {UINT64_MAX, 2, UINT64_C(1) << 63},
        {UINT64_MAX, UINT64_MAX, 1},
        {5, 0, UINT64_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(kvca_blocks_for_tokens(rows[i][0], rows[i][1]), rows[i][2]);
    }
}

static void null_pointers_are_refused(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool *pool = fixture->pool;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    const kvca_params faulty = PARAMS(7, true, 0, 0);
    kvca_request request = {.size = sizeof request, .blocks = 1};
    kvca_booking booking = {0};
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    kvca_pool *made;
    uint64_t buffer[64];
    uint32_t slot;
    assert_int_equal(kvca_pool_init(NULL, 1, 1, 1, &params, &made), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_init(buffer, 1, 1, 1, NULL, &made), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_init(buffer, 1, 1, 1, &params, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_init(buffer, 1, UINT32_MAX, 1, &params, &made), KVCA_ERR_POOL_SIZE);
    assert_int_equal(kvca_pool_new(1, 1, NULL, &made), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_new(1, 1, &faulty, &made), KVCA_ERR_CAPACITY_FRACTION);
    assert_int_equal(kvca_pool_new(1, 1, &params, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_attach(NULL, 1, &made), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_attach(buffer, 1, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_max_ranks(NULL), 0);
    assert_int_equal(kvca_pool_max_owners(NULL), 0);
    assert_int_equal(kvca_pool_set_params(NULL, &params), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_set_params(pool, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_set_seed(NULL, 1), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_put(pool, NULL, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_put(NULL, &(kvca_rank){.size = sizeof(kvca_rank), .worker_id = 1}, NULL),
                     KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_drain(NULL, 1, 0), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_drop(NULL, 1, 0), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_find(NULL, 1, 0, &slot), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_find(pool, 1, 0, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_owner_claim(NULL, 1, &fixture->owner), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_owner_claim(pool, 1, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_owner_void(NULL, 1, NULL, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_owner_void(pool, 0, NULL, NULL), KVCA_ERR_OWNER);
    assert_int_equal(kvca_pool_owner_at(NULL, 0, &(kvca_owner_info){.size = sizeof(kvca_owner_info)}), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_owner_at(pool, 0, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_place(NULL, fixture->owner, &request, &booking, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_place(pool, fixture->owner, NULL, &booking, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, NULL, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_grow(NULL, &booking, 1), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_grow(pool, NULL, 1), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_release(NULL, &booking), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_release(pool, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_repair(NULL, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_snapshot_bytes(NULL), 0);
    assert_int_equal(kvca_pool_snapshot(NULL, buffer, sizeof buffer, &snapshot), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_snapshot(pool, NULL, sizeof buffer, &snapshot), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_snapshot(pool, buffer, sizeof buffer, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_pool_snapshot(pool, (char *)buffer + 1, sizeof buffer - 8, &snapshot),
                     KVCA_ERR_POOL_MEMORY);
    kvca_pool_free(NULL);
}

/*
 * What a pool keeps about its slots must stay right while they are large or small, over or not, draining or not, with
 * any parameters. Each place is compared with kvca_tie_set() on a snapshot, over more slots than a group has.
 */
#define MANY_SLOTS 150
#define HELD 400

struct crowd {
    kvca_pool *pool;
    kvca_owner owner;
    kvca_booking held[HELD];
    uint64_t random;
    _Alignas(8) uint64_t buffer[MANY_SLOTS * 5 + 32]; /* on 32-bit x86 the alignment would be 4 */
    size_t rows[MANY_SLOTS];
};

static uint64_t some_blocks(uint64_t *random)
{
    static const uint64_t large[] = {UINT32_MAX - 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 40,
                                     UINT64_MAX / 8};
    return random_below(random, 40) == 0 ? large[random_below(random, COUNT(large))] : random_below(random, 60);
}

static void compare_place(struct crowd *crowd)
{
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    kvca_selection expected = {.size = sizeof expected};
    kvca_selection selection = {.size = sizeof selection};
    kvca_request request = {.size = sizeof request, .blocks = some_blocks(&crowd->random)};
    kvca_booking *booking = &crowd->held[random_below(&crowd->random, HELD)];
    kvca_pool_release(crowd->pool, booking);
    assert_int_equal(kvca_pool_snapshot(crowd->pool, crowd->buffer, sizeof crowd->buffer, &snapshot), KVCA_OK);
    kvca_ranks ranks = *snapshot.ranks;
    ranks.request_blocks = request.blocks;
    kvca_policy *policy = make_policy(*snapshot.params);
    assert_int_equal(kvca_tie_set(policy, &ranks, crowd->rows, MANY_SLOTS, &expected), KVCA_OK);
    kvca_policy_free(policy);
    kvca_status status = kvca_pool_place(crowd->pool, crowd->owner, &request, booking, &selection);
    if (status == KVCA_ERR_OVERFLOW) {
        return;
    }
    assert_int_equal(status, KVCA_OK);
    bool tied = false;
    for (size_t i = 0; i < expected.ties; i++) {
        tied |= snapshot.slot[crowd->rows[i]] == selection.row;
    }
    if (!tied || selection.ties != expected.ties || selection.fits != expected.fits ||
        selection.outcome != expected.outcome || selection.unknown_capacity != expected.unknown_capacity) {
        fail_msg("slot %zu, ties %zu, fits %zu, unknown %zu; by the snapshot ties %zu, fits %zu, unknown %zu",
                 selection.row, selection.ties, selection.fits, selection.unknown_capacity, expected.ties,
                 expected.fits, expected.unknown_capacity);
    }
}

static void change_something(struct crowd *crowd)
{
    static const kvca_params params[] = {
        PARAMS(1.0, true, 0.0, 0),
        PARAMS(0.5, true, 0.3, 90),
        PARAMS(1.0, false, 0.0, 0),
        PARAMS(1.0, false, 2.5, 7),
        PARAMS(KVCA_NO_CAPACITY_FILTER, true, 0.0, 0),
        PARAMS(1.0, true, 0x1p40, 0),
    };
    kvca_rank rank = {.size = sizeof rank, .worker_id = random_below(&crowd->random, MANY_SLOTS)};
    switch (random_below(&crowd->random, 8)) {
    case 0:
        kvca_pool_set_params(crowd->pool, &params[random_below(&crowd->random, COUNT(params))]);
        break;
    case 1:
        kvca_pool_drain(crowd->pool, rank.worker_id, 0);
        break;
    case 2:
        kvca_pool_drop(crowd->pool, rank.worker_id, 0);
        break;
    default:
        rank.total_kv_blocks = random_below(&crowd->random, 4) == 0 ? 0 : 20 + random_below(&crowd->random, 200);
        assert_int_equal(kvca_pool_put(crowd->pool, &rank, NULL), KVCA_OK);
    }
}

static void places_are_those_of_the_snapshot(void **state)
{
    (void)state;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    struct crowd *crowd = calloc(1, sizeof *crowd);
    crowd->random = 4;
    assert_int_equal(kvca_pool_new(MANY_SLOTS, 1, &params, &crowd->pool), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(crowd->pool, 1, &crowd->owner), KVCA_OK);
    for (uint64_t worker = 0; worker < MANY_SLOTS; worker++) {
        put(crowd->pool, worker, 100);
    }
    for (size_t i = 0; i < rounds(20000); i++) {
        if (i % 16 == 0) {
            change_something(crowd);
        }
        put(crowd->pool, 0, 100); /* so that one rank always takes requests */
        compare_place(crowd);
    }
    kvca_pool_free(crowd->pool);
    free(crowd);
}

/* A request that is larger than every limit never fits. That is said of the slots that it may be picked for. */
static void never_is_told_from_not_now(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool *pool = fixture->pool;
    const uint64_t first = 1;
    const uint64_t both = 3;
    put(pool, 1, 1000);
    put(pool, 2, 2000);
    kvca_request fill = {.size = sizeof fill, .blocks = 1000, .eligible = &first};
    kvca_booking booking;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &fill, &booking, NULL), KVCA_OK);
    fill.blocks = 2000;
    fill.eligible = &(uint64_t){2};
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &fill, &booking, NULL), KVCA_OK);
    const struct {
        uint64_t blocks;
        const uint64_t *eligible;
        kvca_status status;
        kvca_outcome outcome;
        uint32_t row;
    } rows[] = {
        {1, &first, KVCA_NONE_FITS, KVCA_FALLBACK, 0},
        {1000, &first, KVCA_NONE_FITS, KVCA_FALLBACK, 0},
        {1001, &first, KVCA_NEVER_FITS, KVCA_FALLBACK_NEVER, 0},
        {1001, &both, KVCA_NONE_FITS, KVCA_FALLBACK, 0},
        {2000, NULL, KVCA_NONE_FITS, KVCA_FALLBACK, 0},
        {2001, NULL, KVCA_NEVER_FITS, KVCA_FALLBACK_NEVER, 0},
        {UINT64_C(1) << 40, NULL, KVCA_NEVER_FITS, KVCA_FALLBACK_NEVER, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("%llu blocks\n", (unsigned long long)rows[i].blocks);
        kvca_selection selection = {.size = sizeof selection, .row = SIZE_MAX};
        kvca_request request = {
            .size = sizeof request, .blocks = rows[i].blocks, .eligible = rows[i].eligible, .only_if_fits = true};
        assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), rows[i].status);
        assert_int_equal(selection.outcome, rows[i].outcome);
        assert_int_equal(selection.row, rows[i].row);
        request.only_if_fits = false;
        kvca_booking placed;
        assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &placed, &selection), KVCA_OK);
        assert_int_equal(selection.outcome, rows[i].outcome);
        assert_int_equal(kvca_pool_release(pool, &placed), KVCA_OK);
    }
}

/* What a place saw is explained before and after it has booked. */
static void a_place_is_explained(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool *pool = fixture->pool;
    put(pool, 1, 1000);
    put(pool, 2, 1000);
    put(pool, 3, 100);
    place(fixture, 50); /* on any of the three */
    uint32_t draining = put(pool, 4, 1000);
    const uint64_t only[] = {UINT64_C(1) << draining};
    kvca_request request = {.size = sizeof request, .blocks = 10, .eligible = only};
    kvca_booking held;
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &held, NULL), KVCA_OK);
    assert_int_equal(kvca_pool_drain(pool, 4, 0), KVCA_OK);

    kvca_selection selection = {.size = sizeof selection};
    kvca_booking booking;
    request = (kvca_request){.size = sizeof request, .blocks = 200};
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    size_t ties = 0;
    for (uint32_t slot = 0; slot < 4; slot++) {
        kvca_explanation told = {.size = sizeof told};
        assert_int_equal(kvca_pool_explain(pool, &request, &booking, &selection, slot, &told), KVCA_OK);
        ties += told.reason == KVCA_REASON_TIED;
        assert_int_equal(told.reason == KVCA_REASON_NOT_ELIGIBLE, slot == draining);
        if (slot == selection.row) {
            assert_int_equal(told.reason, KVCA_REASON_TIED);
            assert_int_equal(told.decode_cost_blocks, 200);
            assert_int_equal(told.active_requests, 0);
        }
        if (slot == 2) {
            assert_int_equal(told.reason, KVCA_REASON_DOES_NOT_FIT);
            assert_int_equal(told.limit, 100);
        }
    }
    assert_int_equal(ties, selection.ties);
    request.eligible = &(uint64_t){UINT64_C(1) << 2};
    for (uint32_t slot = 0; slot < 4; slot++) {
        kvca_explanation told = {.size = sizeof told};
        assert_int_equal(kvca_pool_explain(pool, &request, &booking, &selection, slot, &told), KVCA_OK);
        assert_int_equal(told.reason == KVCA_REASON_NOT_ELIGIBLE, slot != 2);
    }
}

static void explaining_a_place_refuses_what_it_cannot_explain(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool *pool = fixture->pool;
    put(pool, 1, 1000);
    kvca_request request = {.size = sizeof request, .blocks = 200};
    kvca_selection selection = {.size = sizeof selection};
    kvca_selection elsewhere = {.size = sizeof elsewhere, .row = 3};
    kvca_selection unsized = {.row = 0};
    kvca_booking booking;
    kvca_booking empty = {0};
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    kvca_booking foreign = booking;
    foreign.blocks++;
    const struct {
        kvca_pool *pool;
        const kvca_request *request;
        const kvca_booking *booking;
        const kvca_selection *selection;
        uint32_t slot;
        kvca_status status;
    } rows[] = {
        {pool, &request, &booking, &selection, 0, KVCA_OK},
        {pool, &request, NULL, &selection, 0, KVCA_OK},
        {NULL, &request, &booking, &selection, 0, KVCA_ERR_NULL},
        {pool, NULL, &booking, &selection, 0, KVCA_ERR_NULL},
        {pool, &request, &booking, NULL, 0, KVCA_ERR_NULL},
        {pool, &request, &booking, &unsized, 0, KVCA_ERR_SIZE},
        {pool, &request, &booking, &selection, 1, KVCA_ERR_NO_SUCH_RANK},
        {pool, &request, &booking, &selection, UINT32_MAX, KVCA_ERR_NO_SUCH_RANK},
        {pool, &request, &booking, &elsewhere, 0, KVCA_ERR_ROW},
        {pool, &request, &empty, &selection, 0, KVCA_ERR_NO_BOOKING},
        {pool, &request, &foreign, &selection, 0, KVCA_ERR_FOREIGN_BOOKING},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("row %zu\n", i);
        kvca_explanation told = {.size = sizeof told, .limit = 77};
        assert_int_equal(
            kvca_pool_explain(rows[i].pool, rows[i].request, rows[i].booking, rows[i].selection, rows[i].slot, &told),
            rows[i].status);
        assert_int_equal(told.limit, rows[i].status == KVCA_OK ? 1000 : 77);
    }
    const double multipliers[4] = {0.0, 1.0, 1.0, 1.0};
    request.preferred_taint_multiplier = multipliers;
    kvca_explanation told = {.size = sizeof told};
    assert_int_equal(kvca_pool_explain(pool, &request, &booking, &selection, 0, &told),
                     KVCA_ERR_PREFERRED_TAINT_MULTIPLIER);
    assert_int_equal(kvca_pool_explain(pool, &request, &booking, &selection, 0, NULL), KVCA_ERR_NULL);
}

/* A rank whose D would pass the largest integer may not be picked, and may have room later. */
static void a_rank_that_would_overflow_is_explained_and_waited_for(void **state)
{
    struct fixture *fixture = *state;
    kvca_pool *pool = fixture->pool;
    put(pool, 1, 0); /* of unknown capacity */
    put(pool, 2, 10);
    kvca_request request = {.size = sizeof request, .blocks = UINT64_MAX - 5, .eligible = &(uint64_t){1}};
    kvca_booking large;
    kvca_booking booking;
    kvca_selection selection = {.size = sizeof selection};
    kvca_explanation told = {.size = sizeof told};
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &large, NULL), KVCA_OK);
    request = (kvca_request){.size = sizeof request, .blocks = 10};
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    assert_int_equal(selection.row, 1);
    assert_int_equal(kvca_pool_explain(pool, &request, &booking, &selection, 0, &told), KVCA_OK);
    assert_int_equal(told.reason, KVCA_REASON_NOT_ELIGIBLE);
    request = (kvca_request){.size = sizeof request, .blocks = 100, .only_if_fits = true};
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_NONE_FITS);
    assert_int_equal(kvca_pool_release(pool, &large), KVCA_OK);
    assert_int_equal(kvca_pool_place(pool, fixture->owner, &request, &booking, &selection), KVCA_OK);
    assert_int_equal(selection.row, 0);
}

#define POOL_TEST(test) cmocka_unit_test_setup_teardown(test, make_pool, free_pool)

int main(void)
{
    require_variant();
    const struct CMUnitTest tests[] = {
        POOL_TEST(never_is_told_from_not_now),
        POOL_TEST(a_place_is_explained),
        POOL_TEST(a_rank_that_would_overflow_is_explained_and_waited_for),
        POOL_TEST(explaining_a_place_refuses_what_it_cannot_explain),
        POOL_TEST(place_books_and_release_gives_back),
        POOL_TEST(answer_tells_what_happened),
        POOL_TEST(multipliers_are_by_slot),
        cmocka_unit_test(any_single_multiplier_is_looked_at),
        POOL_TEST(drained_rank_frees_its_slot_when_its_last_request_ends),
        POOL_TEST(draining_rank_that_is_put_again_keeps_slot_and_bookings),
        POOL_TEST(dropped_rank_makes_its_bookings_stale),
        POOL_TEST(repeated_and_foreign_bookings_are_told_apart),
        POOL_TEST(voided_owner_gives_back_all_it_booked),
        POOL_TEST(owners_are_listed),
        POOL_TEST(pool_is_full_and_has_room_again),
        POOL_TEST(put_tells_the_generation_of_bookings),
        POOL_TEST(put_tells_unknown_capacity),
        POOL_TEST(changed_parameters_change_limits),
        POOL_TEST(blocks_do_not_wrap),
        POOL_TEST(ranks_that_would_overflow_are_passed_over),
        cmocka_unit_test(parts_of_a_full_pool_are_apart),
        POOL_TEST(blocks_given_back_are_counted_up_to_the_largest_integer),
        POOL_TEST(used_up_generations_are_retired),
        POOL_TEST(every_call_puts_a_dirty_pool_right_first),
        POOL_TEST(repair_clears_what_nobody_has),
        POOL_TEST(same_seed_gives_same_placements),
        POOL_TEST(a_burst_does_not_over_book),
        cmocka_unit_test(places_are_those_of_the_snapshot),
        POOL_TEST(a_million_releases),
        cmocka_unit_test(ranks_are_found_among_many),
        cmocka_unit_test(smallest_pools_work),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(only_a_pool_is_attached),
        POOL_TEST(a_head_that_leads_outside_is_not_attached),
        POOL_TEST(a_copied_block_is_a_pool),
        POOL_TEST(snapshot_puts_draining_ranks_last),
        cmocka_unit_test(tokens_make_blocks),
        POOL_TEST(null_pointers_are_refused),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
