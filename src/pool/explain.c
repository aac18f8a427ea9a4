/* SPDX-License-Identifier: Apache-2.0 */
/* Explains what kvca_pool_place() decided. The two slots that are compared become rows for kvca_explain(). */
#include "pool/booking.h"
#include "pool/ledger.h"
#include "pool/repair.h"
#include "size.h"

/* The rows of the slot to explain and of the slot that was picked. */
enum { ASKED, PICKED, ROWS };

/* The columns of these two rows. */
struct pair {
    uint64_t blocks[ROWS];
    uint64_t requests[ROWS];
    uint64_t capacities[ROWS];
    double multipliers[ROWS];
};

/* Copies a slot to a row, without the booking. */
static void take_slot(kvca_pool *pool, uint64_t slot, const kvca_request *request, const kvca_booking *booking,
                      struct pair *pair, size_t row)
{
    bool booked = booking && booking->slot == slot;
    pair->blocks[row] = kvca_words(pool, KVCA_PART_BLOCKS)[slot] - (booked ? booking->blocks : 0);
    pair->requests[row] = kvca_words(pool, KVCA_PART_REQUESTS)[slot] - (booked ? 1 : 0);
    pair->capacities[row] = kvca_words(pool, KVCA_PART_CAPACITIES)[slot];
    pair->multipliers[row] = request->preferred_taint_multiplier ? request->preferred_taint_multiplier[slot] : 1.0;
}

static bool has_rank(kvca_pool *pool, uint64_t slot)
{
    return slot < pool->max_ranks && kvca_slot_state(pool, slot) != KVCA_SLOT_FREE;
}

static bool may_be_picked(kvca_pool *pool, const kvca_request *request, uint64_t slot, uint64_t blocks)
{
    bool eligible = !request->eligible || (request->eligible[slot / 64] >> slot % 64 & 1) != 0;
    bool overflows = blocks > UINT64_MAX - request->blocks;
    return kvca_slot_state(pool, slot) == KVCA_SLOT_ACTIVE && eligible && !overflows;
}

static kvca_status check_question(kvca_pool *pool, const kvca_booking *booking, const kvca_selection *selection,
                                  uint32_t slot)
{
    struct kvca_journal entry;
    if (!has_rank(pool, slot)) {
        return KVCA_ERR_NO_SUCH_RANK;
    }
    if (!has_rank(pool, selection->row)) {
        return KVCA_ERR_ROW;
    }
    return booking ? kvca_pool_find_booking(pool, booking, &entry) : KVCA_OK;
}

/* kvca_pool_explain() for structures of this library's size. */
static kvca_status explain(kvca_pool *pool, const kvca_request *request, const kvca_booking *booking,
                           const kvca_selection *selection, uint32_t slot, kvca_explanation *explanation)
{
    kvca_status status = check_question(pool, booking, selection, slot);
    if (status != KVCA_OK) {
        return status;
    }
    struct pair pair;
    take_slot(pool, slot, request, booking, &pair, ASKED);
    take_slot(pool, selection->row, request, booking, &pair, PICKED);
    const kvca_params params = kvca_pool_params(pool);
    const kvca_selection picked = {.size = sizeof picked, .row = PICKED, .outcome = selection->outcome};
    const kvca_ranks ranks = {
        .size = sizeof ranks,
        .count = ROWS,
        .decode_cost_blocks = pair.blocks,
        .active_requests = pair.requests,
        .total_kv_blocks = pair.capacities,
        .preferred_taint_multiplier = pair.multipliers,
        .request_blocks = request->blocks,
    };
    status = kvca_explain(&params, &ranks, &picked, ASKED, explanation);
    if (status == KVCA_OK && !may_be_picked(pool, request, slot, pair.blocks[ASKED])) {
        explanation->reason = KVCA_REASON_NOT_ELIGIBLE;
    }
    return status;
}

kvca_status kvca_pool_explain(kvca_pool *pool, const kvca_request *request, const kvca_booking *booking,
                              const kvca_selection *selection, uint32_t slot, kvca_explanation *explanation)
{
    if (!pool || !request || !selection || !explanation) {
        return KVCA_ERR_NULL;
    }
    kvca_request own_request;
    kvca_selection own_selection;
    kvca_explanation told = {.size = sizeof told};
    if (kvca_read_request(&own_request, request) != KVCA_OK ||
        kvca_read_selection(&own_selection, selection) != KVCA_OK || kvca_check_explanation(explanation) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    kvca_pool_heal(pool);
    kvca_status status = explain(pool, &own_request, booking, &own_selection, slot, &told);
    if (status == KVCA_OK) {
        kvca_write_explanation(explanation, &told);
    }
    return status;
}
