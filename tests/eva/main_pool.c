/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any calls in any order, without end, on a pool of two slots and two owners, with any values but for the identities of
 * ranks. What is in the index, in the slots and on the way to them is known at each moment, in all the combinations that
 * come to be; so no call relies on an order of calls, but each finds the pool as some order leaves it.
 *
 * eva: -eva-auto-loop-unroll 64 -eva-use-spec kvca_unpredictable_seed
 * eva: -eva-interprocedural-splits -eva-split-return full -eva-widening-delay 1
 * eva: -eva-slevel-function main:0,call:3000,place:60,grow:60,count_bits:0,rebuild_totals:0
 * eva: -eva-slevel-function kvca_pool_set_totals:0,kvca_pool_update_slot:0,set_bit:0,kvca_pool_room:0
 * eva: -eva-slevel-function clear_bookings:0,book:0,settle:0,without_overflowing:0
 */
#include <stdlib.h>

#include <kvca/pool.h>

#include "any.h"
#include "../../src/ledger.h"

#define RANKS 2
#define OWNERS 2
#define BYTES 2048

/* Both ranks belong at the last bucket of the index, so that one of them is found past its end, at the first. */
static const kvca_rank known[] = {{.worker_id = 7, .dp_rank = 0}, {.worker_id = 7, .dp_rank = 1}};

static uint64_t block[BYTES / 8];
static kvca_pool *pool;

static uint32_t *index;
static uint64_t *states;
static uint32_t *dp_ranks;

static uint64_t eligible;
static double multipliers[RANKS];
static uint64_t buffer[RANKS * 5];

static void put(void)
{
    kvca_rank rank = known[any_of(0, 1)];
    kvca_put put;
    rank.total_kv_blocks = any_word();
    if (kvca_pool_put(pool, &rank, &put) == KVCA_OK) {
        //@ assert slot: put.slot < RANKS;
    }
}

static void drain(void)
{
    const kvca_rank *rank = &known[any_of(0, 1)];
    kvca_pool_drain(pool, rank->worker_id, rank->dp_rank);
}

static void drop(void)
{
    const kvca_rank *rank = &known[any_of(0, 1)];
    kvca_pool_drop(pool, rank->worker_id, rank->dp_rank);
}

static void place(void)
{
    kvca_booking booking;
    kvca_selection selection;
    make_any(multipliers, sizeof multipliers);
    eligible = any_word();
    const kvca_request request = {
        .blocks = any_word(),
        .eligible = any_bool() ? &eligible : NULL,
        .preferred_taint_multiplier = any_bool() ? multipliers : NULL,
        .only_if_fits = any_bool(),
    };
    if (kvca_pool_place(pool, any_word(), &request, &booking, &selection) == KVCA_OK) {
        //@ assert slot: booking.slot < RANKS;
    }
}

/* Whether it was made by the pool, or is stale, or forged. */
static kvca_booking any_booking(void)
{
    uint32_t slot = (uint32_t)any_of(0, RANKS);
    return (kvca_booking){.slot = slot < RANKS ? slot : Frama_C_unsigned_int_interval(RANKS, UINT32_MAX),
                          .generation = any_half_word(),
                          .owner = any_word(),
                          .blocks = any_word()};
}

static void grow(void)
{
    kvca_booking booking = any_booking();
    kvca_pool_grow(pool, &booking, any_word());
}

static void release(void)
{
    kvca_booking booking = any_booking();
    kvca_pool_release(pool, &booking);
}

static void claim(void)
{
    kvca_owner owner;
    kvca_pool_owner_claim(pool, any_word(), &owner);
}

static void void_owner(void)
{
    uint64_t blocks;
    uint64_t requests;
    kvca_pool_owner_void(pool, any_word(), &blocks, &requests);
}

static void look(void)
{
    uint32_t slot;
    kvca_owner_info info;
    kvca_snapshot snapshot;
    kvca_pool_find(pool, known[0].worker_id, known[0].dp_rank, &slot);
    kvca_pool_owner_at(pool, any_half_word(), &info);
    if (kvca_pool_snapshot(pool, buffer, sizeof buffer, &snapshot) == KVCA_OK) {
        //@ assert rows: snapshot.ranks.count <= snapshot.count <= RANKS;
    }
    kvca_pool_repair(pool, NULL);
}

static void set_params(void)
{
    kvca_params params = any_params();
    kvca_pool_set_params(pool, &params);
    kvca_pool_set_seed(pool, any_word());
}

/* Nothing is known of the numbers in the pool any more, so that Eva need not find out which there may come to be. */
static void forget_numbers(void)
{
    static const enum kvca_part parts[] = {
        KVCA_PART_BLOCKS,    KVCA_PART_REQUESTS, KVCA_PART_LIMITS,  KVCA_PART_CAPACITIES,   KVCA_PART_KEYS,
        KVCA_PART_PLACEABLE, KVCA_PART_UNKNOWN,  KVCA_PART_SCRATCH, KVCA_PART_OWNER_BLOCKS, KVCA_PART_OWNER_REQUESTS,
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        make_any(kvca_words(pool, parts[i]), RANKS * sizeof(uint64_t));
    }
    make_any(kvca_words(pool, KVCA_PART_OWNER_BLOCKS), OWNERS * RANKS * sizeof(uint64_t));
    make_any(kvca_words(pool, KVCA_PART_OWNER_REQUESTS), OWNERS * RANKS * sizeof(uint64_t));
    make_any(kvca_half_words(pool, KVCA_PART_ROOM), RANKS * sizeof(uint32_t));
    make_any(kvca_owner_entry(pool, 0), OWNERS * sizeof(struct kvca_owner_entry));
    make_any(&pool->counters, sizeof pool->counters);
    for (int slot = 0; slot < RANKS; slot++) {
        states[slot] = kvca_slot_word(any_half_word(), kvca_slot_state(pool, slot));
    }
    pool->journal = (struct kvca_journal){any_bool(), any_bool(), any_word(), any_word()};
    pool->bank = any_bool();
    pool->large = any_word();
    pool->first_claim = any_half_word();
}

/*
 * A death in the middle of a call, and a repair. The truth is as some call leaves it, but that a free slot may have been
 * given a name already, and the journal of an update names a rank; nothing is known of what follows from the truth.
 */
static void die(void)
{
    for (int slot = 0; slot < RANKS; slot++) {
        if (kvca_slot_state(pool, slot) == KVCA_SLOT_FREE) {
            kvca_words(pool, KVCA_PART_WORKERS)[slot] = known[0].worker_id;
            dp_ranks[slot] = (uint32_t)any_of(0, 1);
        }
    }
    forget_numbers();
    make_any(index, pool->buckets * sizeof *index);
    pool->slots = any_word();
    pool->free_hint = any_word();
    pool->journal.slot = (uint64_t)any_of(0, RANKS - 1);
    bool taken = kvca_slot_state(pool, pool->journal.slot) != KVCA_SLOT_FREE;
    pool->dirty = (uint64_t)any_of(KVCA_DIRTY, taken ? KVCA_DIRTY_PUT : KVCA_DIRTY_BOOKING);
    kvca_pool_repair(pool, NULL);
}

static void call(void)
{
    switch (any_of(0, 10)) {
    case 0:
        put();
        break;
    case 1:
        drain();
        break;
    case 2:
        drop();
        break;
    case 3:
        place();
        break;
    case 4:
        grow();
        break;
    case 5:
        release();
        break;
    case 6:
        claim();
        break;
    case 7:
        void_owner();
        break;
    case 8:
        set_params();
        break;
    case 9:
        look();
        break;
    default:
        die();
    }
    //@ split index[0];
    //@ split index[1];
    //@ split index[2];
    //@ split index[3];
    //@ split (uint32_t)states[0];
    //@ split (uint32_t)states[1];
    //@ split dp_ranks[0];
    //@ split dp_ranks[1];
    //@ split pool->slots;
    //@ split pool->free_hint;
}

static void init(void)
{
    kvca_params params = any_params();
    if (kvca_pool_init(block, sizeof block, RANKS, OWNERS, &params, &pool) != KVCA_OK) {
        exit(1);
    }
    index = kvca_half_words(pool, KVCA_PART_INDEX);
    states = kvca_words(pool, KVCA_PART_STATES);
    dp_ranks = kvca_half_words(pool, KVCA_PART_DP_RANKS);
    kvca_pool_set_params(pool, &params);
    forget_numbers();
}

int main(void)
{
    init();
    for (;;) {
        call();
    }
}
