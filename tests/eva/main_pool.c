/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call that takes a pool, except a place, with any arguments, from any state that the pool may be in (pool.h).
 *
 * eva: -eva-auto-loop-unroll 16 -eva-alloc-builtin fresh -eva-slevel 5000
 * eva: -eva-partition-value slots_case,call_case,left_case -eva-split-limit 1000
 * eva: -cpp-extra-args=-DKVCA_FAULT_POINTS
 * eva: -eva-split-return-function kvca_pool_new:0,fill_params:0,fill_head:0,any_pool:0
 * eva: -eva-split-return-function begin:0,kvca_pool_find_booking:0,kvca_pool_find:0,kvca_pool_snapshot:0
 */
#include "pool.h"

/* Either of the two; they are analysed together. */
static void *or_null(void *pointer)
{
    return any_bool() ? pointer : NULL;
}

static kvca_pool *the_pool;
static int left_case; /* which slots are free */

/*
 * Runs before each store. A draining rank leaves when it has no request left. Eva does not know the sums, so it must
 * analyse both cases separately from there on.
 */
void kvca_fault_point(void)
{
    left_case = 0;
    for (uint64_t slot = 0; the_pool && slot < RANKS; slot++) {
        left_case = left_case * 2 + (kvca_slot_state(the_pool, slot) == KVCA_SLOT_FREE);
    }
}

/* The identity of a slot's rank, or that of a stranger. */
static uint64_t any_identity(void)
{
    int slot = any_of(0, STRANGER);
    if (slot != STRANGER && is_taken(slot)) {
        call_case = slot;
        return IDENTITIES[slot][layout];
    }
    int its_layout = any_of(0, 1);
    call_case = STRANGER + its_layout;
    return IDENTITIES[STRANGER][its_layout];
}

/* Which slot a put finds free depends on where it begins to look and on which slots are used up. */
static void choose_free_slot(kvca_pool *pool)
{
    pool->free_hint = (uint64_t)any_of(0, RANKS);
    call_case = STRANGER + call_case * (RANKS + 1) + (int)pool->free_hint;
    for (int slot = 0; slot < RANKS; slot++) {
        if (!is_taken(slot)) {
            int used_up = any_of(0, 1);
            uint32_t generation = used_up ? UINT32_MAX : any_half_word() % UINT32_MAX;
            kvca_words(pool, KVCA_PART_STATES)[slot] = kvca_slot_word(generation, KVCA_SLOT_FREE);
            call_case = call_case * 2 + used_up;
        }
    }
}

static void put(kvca_pool *pool)
{
    kvca_put put = {.size = sizeof put};
    kvca_rank rank = {.size = sizeof rank, .worker_id = any_identity(), .total_kv_blocks = any_word()};
    if (call_case >= STRANGER) {
        choose_free_slot(pool);
    }
    kvca_pool_put(pool, &rank, or_null(&put));
}

static void drop(kvca_pool *pool)
{
    kvca_pool_drop(pool, any_identity(), 0);
}

static void find(kvca_pool *pool)
{
    uint32_t slot;
    if (kvca_pool_find(pool, any_identity(), 0, &slot) == KVCA_OK) {
        //@ assert is_there: slot < RANKS;
    }
}

static void repair(kvca_pool *pool)
{
    bool repaired;
    die(pool);
    kvca_pool_repair(pool, or_null(&repaired));
}

static void drain(kvca_pool *pool)
{
    kvca_pool_drain(pool, any_identity(), 0);
}

static void claim(kvca_pool *pool)
{
    kvca_owner owner;
    kvca_pool_owner_claim(pool, any_word(), &owner);
}

static void end_owner(kvca_pool *pool)
{
    uint64_t blocks;
    uint64_t requests;
    kvca_pool_owner_void(pool, any_word(), or_null(&blocks), or_null(&requests));
}

static void look_at_owner(kvca_pool *pool)
{
    kvca_owner_info info = {.size = sizeof info};
    kvca_pool_owner_at(pool, any_half_word(), &info);
}

static void grow(kvca_pool *pool)
{
    kvca_booking booking;
    make_any(&booking, sizeof booking);
    kvca_pool_grow(pool, &booking, any_word());
}

static void release(kvca_pool *pool)
{
    kvca_booking booking;
    make_any(&booking, sizeof booking);
    call_case = any_of(0, RANKS);
    if (call_case < RANKS) {
        booking.slot = (uint32_t)call_case;
    } else if (booking.slot < RANKS) {
        return;
    }
    kvca_pool_release(pool, &booking);
}

static void set_params(kvca_pool *pool)
{
    kvca_params params = any_params();
    kvca_pool_set_params(pool, &params);
    kvca_pool_set_seed(pool, any_word());
}

static void copy(kvca_pool *pool)
{
    static uint64_t buffer[RANKS * 5 + 32];
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    pool->slots = (uint64_t)any_of(0, RANKS);
    size_t bytes = (size_t)Frama_C_interval(0, sizeof buffer);
    if (kvca_pool_snapshot(pool, buffer, bytes, &snapshot) == KVCA_OK) {
        //@ assert rows: snapshot.ranks->count <= snapshot.count;
        //@ assert all: snapshot.count <= RANKS;
    }
}

/* Either one pointer is NULL, or all are. */
static void give_null(kvca_pool *pool)
{
    uint32_t slot;
    kvca_owner owner;
    kvca_booking booking;
    const kvca_rank rank = {.size = sizeof rank, .worker_id = any_word()};
    const kvca_request request = {.size = sizeof request, .blocks = any_word()};
    kvca_pool *no_pool = NULL;
    kvca_pool *null_or_not = or_null(pool);
    kvca_pool_put(no_pool, &rank, NULL);
    kvca_pool_put(null_or_not, NULL, NULL);
    kvca_pool_drain(no_pool, any_word(), any_half_word());
    kvca_pool_drop(no_pool, any_word(), any_half_word());
    kvca_pool_find(no_pool, any_word(), any_half_word(), &slot);
    kvca_pool_find(null_or_not, any_word(), any_half_word(), NULL);
    kvca_pool_owner_claim(no_pool, any_word(), &owner);
    kvca_pool_owner_claim(null_or_not, any_word(), NULL);
    kvca_pool_owner_void(no_pool, any_word(), NULL, NULL);
    kvca_pool_owner_at(no_pool, any_half_word(), &(kvca_owner_info){.size = sizeof(kvca_owner_info)});
    kvca_pool_owner_at(null_or_not, any_half_word(), NULL);
    kvca_pool_place(no_pool, any_word(), &request, &booking, NULL);
    kvca_pool_place(null_or_not, any_word(), NULL, &booking, NULL);
    kvca_pool_place(null_or_not, any_word(), &request, NULL, NULL);
    kvca_pool_grow(no_pool, &booking, any_word());
    kvca_pool_grow(null_or_not, NULL, any_word());
    kvca_pool_release(no_pool, &booking);
    kvca_pool_release(null_or_not, NULL);
    kvca_pool_repair(no_pool, NULL);
    kvca_pool_set_params(no_pool, &(kvca_params)KVCA_PARAMS_DEFAULT);
    kvca_pool_set_params(null_or_not, NULL);
    kvca_pool_set_seed(no_pool, any_word());
    kvca_pool_snapshot(no_pool, &slot, any_word(), &(kvca_snapshot){.size = sizeof(kvca_snapshot)});
    kvca_pool_snapshot(null_or_not, NULL, any_word(), &(kvca_snapshot){.size = sizeof(kvca_snapshot)});
    kvca_pool_snapshot(null_or_not, &owner, any_word(), NULL);
}

static void (*const CALLS[])(kvca_pool *pool) = {put,  drop,    find,   drain,      claim, end_owner, look_at_owner,
                                                 grow, release, repair, set_params, copy,  give_null};

int main(void)
{
    check_identities();
    kvca_pool *pool = any_pool(true);
    if (!pool) {
        return 1;
    }
    the_pool = pool;
    CALLS[any_of(0, sizeof CALLS / sizeof *CALLS - 1)](pool);
    check_pool(pool);
    check_index(pool);
    slots_case = call_case = left_case = 0; /* from here on all cases are analysed together */
    check_gaps(pool, true);
    return 0;
}
