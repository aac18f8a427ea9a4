/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool in any state in which a call may leave it. Each call is shown to be sound from all of these states and to end
 * in one of them, so every sequence of calls is sound. The exception is the index, of which only some layouts are
 * analysed. Such a state is:
 *
 *     the head      as kvca_pool_new() lays it out; `slots` and `free_hint` are within the pool; parameters are sound
 *     slots         free, active or draining, of any generation; each rank is there once
 *     the index     leads to each rank that is there, and to no other slot
 *     all else      any words: D and N, as totals and by owner, limits, keys, rooms, bitmaps, capacities, owners and
 *                   counters
 *
 * After a death the pool is also dirty, what the journal redoes lies in the pool, and all that follows from the truth
 * is any bytes, including the index.
 *
 * Nothing was ever written between the parts of the block, nor to the scratch. So reading there is an alarm, and
 * check_gaps() finds what is written behind a part.
 *
 * A pool asks two things of identities: where the search for them begins, and whether they are the same. The layouts of
 * the index: both searches begin at the last bucket, with either rank put first; or they do not meet.
 */
#ifndef KVCA_EVA_POOL_H
#define KVCA_EVA_POOL_H

#include <stdlib.h>
#include <string.h>

#include <kvca/pool.h>

#include "any.h"
#include "pool/ledger.h"
#include "rule/random.h"

#define RANKS 2
#define OWNERS 2
#define BUCKETS 4
#define STRANGER RANKS /* instead of a slot: a rank that is not there */

/* Where a search begins, by layout. The last row is for the rank that is not there. */
static const uint64_t HOMES[RANKS + 1][2] = {{3, 1}, {3, 2}, {3, 1}};
/* What it looks for, with a dp_rank of 0: check_identities(). */
static const uint64_t IDENTITIES[RANKS + 1][2] = {{7, 1}, {9, 8}, {11, 5}};

static void check_identities(void)
{
    for (int slot = 0; slot <= RANKS; slot++) {
        for (int layout = 0; layout < 2; layout++) {
            uint64_t home = kvca_hash_rank(IDENTITIES[slot][layout], 0) % BUCKETS;
            uint64_t expected = HOMES[slot][layout];
            //@ assert home: home == expected;
        }
    }
}

/* Analysed separately: the slots, and what a call is given. */
static int slots_case;
static int call_case;

static int states[RANKS]; /* enum kvca_slot_state */
static int layout;        /* of HOMES */
static int last;          /* the slot whose rank was put last */

static bool is_taken(int slot)
{
    return states[slot] != KVCA_SLOT_FREE;
}

/* Each case is analysed separately. Without identities all are analysed together. */
static void choose_slots(bool identities)
{
    for (int slot = 0; slot < RANKS; slot++) {
        states[slot] = identities ? any_of(KVCA_SLOT_FREE, KVCA_SLOT_DRAINING)
                                  : Frama_C_interval(KVCA_SLOT_FREE, KVCA_SLOT_DRAINING);
    }
    if (identities) {
        layout = is_taken(0) || is_taken(1) ? any_of(0, 1) : 0;
        last = is_taken(0) && is_taken(1) && layout == 0 ? any_of(0, 1) : 1;
        slots_case = ((states[0] * 3 + states[1]) * 2 + layout) * 2 + last;
    }
}

/* The lower half of a slot's word is its state. */
static uint32_t *state_word(kvca_pool *pool, int slot)
{
    return &kvca_half_words(pool, KVCA_PART_STATES)[2 * slot];
}

/* How many bytes of a part are used, without those that round it up. */
static size_t used(enum kvca_part part)
{
    switch (part) {
    case KVCA_PART_READY:
        return sizeof(struct kvca_ready);
    case KVCA_PART_DP_RANKS:
        return RANKS * sizeof(uint32_t);
    case KVCA_PART_PLACEABLE:
    case KVCA_PART_SCRATCH:
        return sizeof(uint64_t);
    case KVCA_PART_INDEX:
        return BUCKETS * sizeof(uint32_t);
    case KVCA_PART_OWNERS:
        return OWNERS * sizeof(struct kvca_owner_entry);
    case KVCA_PART_OWNER_BLOCKS:
    case KVCA_PART_OWNER_REQUESTS:
        return (size_t)OWNERS * RANKS * sizeof(uint64_t);
    default:
        return RANKS * sizeof(uint64_t);
    }
}

/* Fills both sets of parameters, and says which is in force. */
static bool fill_params(kvca_pool *pool)
{
    kvca_params params = any_params();
    if (kvca_params_validate(&params) != KVCA_OK) {
        return false;
    }
    for (int bank = 0; bank < 2; bank++) {
        pool->params[bank] = (struct kvca_stored_params){
            .capacity_fraction = params.capacity_fraction,
            .decode_active_request_weight = params.decode_active_request_weight,
            .capacity_blocks = params.capacity_blocks,
            .count_priority = params.count_priority,
        };
        pool->terms[bank] = kvca_terms_of(&params);
    }
    pool->bank = (uint64_t)Frama_C_interval(0, 1);
    return true;
}

static bool fill_head(kvca_pool *pool, const kvca_pool *made)
{
    make_any(pool, sizeof *pool);
    memcpy(pool, made, offsetof(kvca_pool, dirty));
    pool->dirty = KVCA_CLEAN;
    pool->slots = (uint64_t)Frama_C_interval(0, RANKS);
    pool->free_hint = (uint64_t)Frama_C_interval(0, RANKS);
    return fill_params(pool);
}

static void fill_identity(kvca_pool *pool, int slot)
{
    if (is_taken(slot)) {
        kvca_words(pool, KVCA_PART_WORKERS)[slot] = IDENTITIES[slot][layout];
        kvca_half_words(pool, KVCA_PART_DP_RANKS)[slot] = 0;
    }
}

/* Puts the rank of a slot into the first empty bucket from its home on. */
static void fill_bucket(kvca_pool *pool, int slot)
{
    uint32_t *index = kvca_half_words(pool, KVCA_PART_INDEX);
    uint64_t bucket = HOMES[slot][layout];
    if (is_taken(slot)) {
        while (index[bucket] != 0) {
            bucket = (bucket + 1) % BUCKETS;
        }
        index[bucket] = (uint32_t)slot + 1;
    }
}

static void fill_index(kvca_pool *pool)
{
    memset(kvca_half_words(pool, KVCA_PART_INDEX), 0, used(KVCA_PART_INDEX));
    fill_bucket(pool, RANKS - 1 - last);
    fill_bucket(pool, last);
}

/* The parts that a place must neither read nor write. */
static bool is_of_identities(enum kvca_part part)
{
    return part == KVCA_PART_INDEX || part == KVCA_PART_WORKERS || part == KVCA_PART_DP_RANKS;
}

static void fill_parts(kvca_pool *pool, bool identities)
{
    for (int i = 0; i < KVCA_PARTS; i++) {
        enum kvca_part part = (enum kvca_part)i;
        if (part != KVCA_PART_SCRATCH && (identities || !is_of_identities(part))) {
            make_any(kvca_part(pool, part), used(part));
        }
    }
    for (int slot = 0; slot < RANKS; slot++) {
        *state_word(pool, slot) = (uint32_t)states[slot];
    }
}

static void fill_identities(kvca_pool *pool)
{
    for (int slot = 0; slot < RANKS; slot++) {
        fill_identity(pool, slot);
    }
    fill_index(pool);
}

/* NULL if there is no memory or no such pool. Without identities their parts are not written. */
static kvca_pool *any_pool(bool identities)
{
    kvca_pool *made;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    if (kvca_pool_new(RANKS, OWNERS, &params, &made) != KVCA_OK) {
        return NULL;
    }
    kvca_pool *pool = malloc((size_t)made->bytes);
    if (!pool || !fill_head(pool, made)) {
        return NULL;
    }
    choose_slots(identities);
    fill_parts(pool, identities);
    if (identities) {
        fill_identities(pool);
    }
    return pool;
}

/* The holder of the lock dies in some call. */
static void die(kvca_pool *pool)
{
    make_any(kvca_part(pool, KVCA_PART_INDEX), used(KVCA_PART_INDEX));
    make_any(&pool->slots, sizeof pool->slots);
    make_any(&pool->free_hint, sizeof pool->free_hint);
    pool->dirty = (uint64_t)Frama_C_interval(KVCA_DIRTY, KVCA_DIRTY_BOOKING);
    pool->journal.owner = (uint64_t)Frama_C_interval(0, OWNERS - 1);
    pool->journal.slot = (uint64_t)Frama_C_interval(0, RANKS - 1);
    call_case = any_of(0, RANKS);
    if (call_case < RANKS && is_taken(call_case)) {
        pool->journal.slot = (uint64_t)call_case;
        pool->dirty = KVCA_DIRTY_PUT;
    }
}

/* How many buckets lead to the slot, on the way from where the search for its rank begins to an empty bucket. */
static int times_found(kvca_pool *pool, int slot)
{
    const uint32_t *index = kvca_half_words(pool, KVCA_PART_INDEX);
    uint64_t bucket =
        kvca_hash_rank(kvca_words(pool, KVCA_PART_WORKERS)[slot], kvca_half_words(pool, KVCA_PART_DP_RANKS)[slot]) %
        BUCKETS;
    int times = 0;
    for (int i = 0; i < BUCKETS && index[bucket] != 0; i++) {
        times += index[bucket] == (uint32_t)slot + 1;
        bucket = (bucket + 1) % BUCKETS;
    }
    return times;
}

/* Each rank is there once. The index leads to it and nowhere else. */
static void check_index(kvca_pool *pool)
{
    int found = 0;
    int full = 0;
    for (int slot = 0; slot < RANKS; slot++) {
        if (kvca_slot_state(pool, (uint64_t)slot) != KVCA_SLOT_FREE) {
            int times = times_found(pool, slot);
            //@ assert found_once: times == 1;
            found++;
        }
    }
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        full += kvca_half_words(pool, KVCA_PART_INDEX)[bucket] != 0;
    }
    //@ assert no_other: full == found;
    if (found == RANKS) {
        bool same = kvca_words(pool, KVCA_PART_WORKERS)[0] == kvca_words(pool, KVCA_PART_WORKERS)[1] &&
                    kvca_half_words(pool, KVCA_PART_DP_RANKS)[0] == kvca_half_words(pool, KVCA_PART_DP_RANKS)[1];
        //@ assert there_once: !same;
    }
}

static void check_gap(const kvca_pool *pool, uint64_t from, uint64_t to)
{
    for (const char *byte = (const char *)pool + from; byte < (const char *)pool + to; byte += sizeof(uint32_t)) {
        //@ assert untouched: !\initialized(byte);
    }
}

/* Nothing was written between the parts, nor, without identities, to their parts. */
static void check_gaps(const kvca_pool *pool, bool identities)
{
    check_gap(pool, sizeof *pool, KVCA_POOL_READY_OFFSET);
    for (int i = 0; i < KVCA_PARTS; i++) {
        enum kvca_part part = (enum kvca_part)i;
        bool filled = identities || !is_of_identities(part);
        uint64_t end = i + 1 < KVCA_PARTS ? pool->offsets[i + 1] : pool->bytes;
        check_gap(pool, pool->offsets[i] + (filled ? used(part) : 0), end);
    }
}

/* The state of a pool between two calls. */
static void check_pool(kvca_pool *pool)
{
    //@ assert clean: pool->dirty == 0;
    //@ assert slots: pool->slots <= RANKS;
    //@ assert free_hint: pool->free_hint <= RANKS;
    //@ assert bank: pool->bank <= 1;
    for (int slot = 0; slot < RANKS; slot++) {
        uint32_t state = *state_word(pool, slot);
        //@ assert state: state <= 2;
    }
}

#endif
