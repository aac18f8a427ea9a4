/* SPDX-License-Identifier: Apache-2.0 */
/* Placing, growing and releasing requests. */
#include "pool/booking.h"
#include "pool/ledger.h"
#include "pool/repair.h"
#include "pool/slots.h"
#include "size.h"

static void count(uint64_t *counter)
{
    kvca_store(counter, *counter + 1);
}

/* Sets what an owner has booked on a slot: both numbers or neither. The pool stays dirty until settle(). */
static inline __attribute__((always_inline)) void book(kvca_pool *pool, const struct kvca_journal *entry)
{
    uint64_t *blocks = &kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, entry->owner)[entry->slot];
    uint64_t *requests = &kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, entry->owner)[entry->slot];
    uint64_t all_blocks = kvca_words(pool, KVCA_PART_BLOCKS)[entry->slot] - *blocks + entry->blocks;
    uint64_t all_requests = kvca_words(pool, KVCA_PART_REQUESTS)[entry->slot] - *requests + entry->requests;
    kvca_store(&pool->journal.owner, entry->owner);
    kvca_store(&pool->journal.slot, entry->slot);
    kvca_store(&pool->journal.blocks, entry->blocks);
    kvca_store(&pool->journal.requests, entry->requests);
    kvca_store(&pool->dirty, KVCA_DIRTY_BOOKING);
    kvca_store(blocks, entry->blocks);
    kvca_store(requests, entry->requests);
    kvca_pool_set_totals(pool, entry->slot, all_blocks, all_requests);
}

static void settle(kvca_pool *pool)
{
    kvca_store(&pool->dirty, KVCA_CLEAN);
}

static bool overflows(kvca_pool *pool, uint64_t slot, uint64_t blocks)
{
    return kvca_words(pool, KVCA_PART_BLOCKS)[slot] > UINT64_MAX - blocks;
}

/*
 * Returns the slots that take requests, except those whose D this request would raise above UINT64_MAX. Sets
 * `*overflow` if one of these could otherwise be picked.
 */
static const uint64_t *without_overflowing(kvca_pool *pool, const kvca_request *request, bool *overflow)
{
    uint64_t *slots = kvca_words(pool, KVCA_PART_SCRATCH);
    const uint64_t *placeable = kvca_words(pool, KVCA_PART_PLACEABLE);
    for (uint64_t slot = 0; slot < pool->slots; slot++) {
        uint64_t bit = UINT64_C(1) << (slot % 64);
        uint64_t eligible = request->eligible ? request->eligible[slot / 64] : UINT64_MAX;
        slots[slot / 64] = slot % 64 == 0 ? placeable[slot / 64] : slots[slot / 64];
        if (overflows(pool, slot, request->blocks)) {
            *overflow |= (slots[slot / 64] & eligible & bit) != 0;
            slots[slot / 64] &= ~bit;
        }
    }
    return slots;
}

/* If no total is large, only a large request can cause an overflow. */
static bool may_overflow(const kvca_pool *pool, const kvca_request *request)
{
    return pool->large != 0 || request->blocks > UINT64_MAX - INT32_MAX;
}

/* Whether the ready keys and rooms are all that the rule needs for this request. */
static bool is_ready(kvca_pool *pool, const kvca_request *request)
{
    return pool->large == 0 && request->blocks <= INT32_MAX && !request->preferred_taint_multiplier &&
           kvca_pool_terms(pool)->packs;
}

static __attribute__((noinline)) kvca_status choose_by_columns(kvca_pool *pool, const kvca_request *request,
                                                               bool nothing_fits, kvca_selection *selection)
{
    bool overflow = false;
    const kvca_ranks ranks = {
        .count = (size_t)pool->slots,
        .decode_cost_blocks = kvca_words(pool, KVCA_PART_BLOCKS),
        .active_requests = kvca_words(pool, KVCA_PART_REQUESTS),
        .total_kv_blocks = kvca_words(pool, KVCA_PART_CAPACITIES),
        .preferred_taint_multiplier = request->preferred_taint_multiplier,
        .request_blocks = request->blocks,
    };
    const kvca_params params = kvca_pool_params(pool);
    const struct kvca_view view = {
        .params = &params,
        .terms = kvca_pool_terms(pool),
        .candidates = {.ranks = &ranks,
                       .placeable = may_overflow(pool, request) ? without_overflowing(pool, request, &overflow)
                                                                : kvca_words(pool, KVCA_PART_PLACEABLE),
                       .eligible = request->eligible},
        .only_if_fits = request->only_if_fits,
        .nothing_fits = nothing_fits,
    };
    kvca_selection picked;
    if (!kvca_view_select(&view, &pool->generator, &picked)) {
        return KVCA_ERR_PREFERRED_TAINT_MULTIPLIER;
    }
    if (picked.ties == 0) {
        return overflow ? KVCA_ERR_OVERFLOW : KVCA_NONE_ELIGIBLE;
    }
    if (overflow && picked.outcome == KVCA_FALLBACK_NEVER) { /* a rank that overflows now may have room later */
        const struct kvca_candidates later = {&ranks, kvca_words(pool, KVCA_PART_PLACEABLE), request->eligible};
        picked.outcome = kvca_rule_fallback_outcome(&params, &later);
    }
    *selection = picked;
    if (picked.outcome == KVCA_FIT || !request->only_if_fits) {
        return KVCA_OK;
    }
    return picked.outcome == KVCA_FALLBACK ? KVCA_NONE_FITS : KVCA_NEVER_FITS;
}

/* Applies the rule to the slots that may be picked, and draws. Writes the selection if there is a slot to pick. */
static kvca_status choose(kvca_pool *pool, const kvca_request *request, kvca_selection *selection)
{
    if (pool->slots == 0) {
        return KVCA_NONE_ELIGIBLE;
    }
    bool ready = is_ready(pool, request);
    if (ready && kvca_ready_select(kvca_pool_ready(pool), (size_t)pool->slots, request->blocks, request->eligible,
                                   &pool->generator, selection)) {
        return KVCA_OK;
    }
    return choose_by_columns(pool, request, ready, selection);
}

/* Whether `status` says that the request fits no rank and that only_if_fits is set. */
static bool fits_nowhere(kvca_status status)
{
    return status == KVCA_NONE_FITS || status == KVCA_NEVER_FITS;
}

static KVCA_OUT_OF_LINE kvca_status place_other_sizes(kvca_pool *pool, kvca_owner owner, const kvca_request *request,
                                                      kvca_booking *booking, kvca_selection *selection)
{
    kvca_request own;
    kvca_selection picked = {.size = sizeof picked};
    kvca_status status = kvca_read_request(&own, request);
    if (status == KVCA_OK && selection) {
        status = kvca_check_selection(selection);
    }
    if (status != KVCA_OK) {
        return status;
    }
    status = kvca_pool_place(pool, owner, &own, booking, &picked);
    if (selection && (status == KVCA_OK || fits_nowhere(status))) {
        kvca_write_selection(selection, &picked);
    }
    return status;
}

kvca_status kvca_pool_place(kvca_pool *pool, kvca_owner owner, const kvca_request *request, kvca_booking *booking,
                            kvca_selection *selection)
{
    if (!pool || !request || !booking) {
        return KVCA_ERR_NULL;
    }
    if (request->size != sizeof *request || (selection && selection->size != sizeof *selection)) {
        return place_other_sizes(pool, owner, request, booking, selection);
    }
    kvca_pool_heal(pool);
    uint64_t index;
    if (!kvca_pool_find_owner(pool, owner, &index)) {
        return KVCA_ERR_OWNER;
    }
    kvca_selection unwanted;
    /* cppcheck-suppress uninitvar ; choose() writes it before it is read */
    kvca_selection *picked = selection ? selection : &unwanted;
    kvca_status status = choose(pool, request, picked);
    if (status == KVCA_NONE_ELIGIBLE || fits_nowhere(status)) {
        count(&pool->counters.none);
    }
    if (status != KVCA_OK) {
        return status;
    }
    size_t slot = picked->row;
    struct kvca_journal entry = kvca_pool_entry(pool, index, slot);
    entry.blocks += request->blocks;
    entry.requests += 1;
    book(pool, &entry);
    count(&pool->counters.placed);
    if (picked->outcome != KVCA_FIT) {
        count(&pool->counters.fallbacks);
    }
    settle(pool);
    *booking = (kvca_booking){
        .slot = (uint32_t)slot,
        .generation = kvca_slot_generation(pool, slot),
        .owner = owner,
        .blocks = request->blocks,
    };
    return KVCA_OK;
}

/* The common start of kvca_pool_grow() and kvca_pool_release(). */
static kvca_status begin(kvca_pool *pool, const kvca_booking *booking, struct kvca_journal *entry)
{
    if (!pool || !booking) {
        return KVCA_ERR_NULL;
    }
    kvca_pool_heal(pool);
    kvca_status status = kvca_pool_find_booking(pool, booking, entry);
    if (status == KVCA_STALE) {
        count(&pool->counters.stale);
    }
    return status;
}

kvca_status kvca_pool_grow(kvca_pool *pool, kvca_booking *booking, uint64_t blocks)
{
    struct kvca_journal entry;
    kvca_status status = begin(pool, booking, &entry);
    if (status != KVCA_OK) {
        return status;
    }
    if (overflows(pool, booking->slot, blocks)) {
        return KVCA_ERR_OVERFLOW;
    }
    entry.blocks += blocks;
    book(pool, &entry);
    settle(pool);
    booking->blocks += blocks;
    return KVCA_OK;
}

kvca_status kvca_pool_release(kvca_pool *pool, kvca_booking *booking)
{
    struct kvca_journal entry;
    kvca_status status = begin(pool, booking, &entry);
    if (status == KVCA_STALE) {
        *booking = (kvca_booking){0};
    }
    if (status != KVCA_OK) {
        return status;
    }
    entry.blocks -= booking->blocks;
    entry.requests -= 1;
    book(pool, &entry);
    kvca_pool_free_if_drained(pool, booking->slot);
    settle(pool);
    *booking = (kvca_booking){0};
    return KVCA_OK;
}

uint64_t kvca_blocks_for_tokens(uint64_t tokens, uint64_t block_size)
{
    if (block_size == 0) {
        return UINT64_MAX;
    }
    return tokens / block_size + (tokens % block_size != 0);
}
