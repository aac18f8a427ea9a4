/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/booking.h"

static bool is_empty(const kvca_booking *booking)
{
    return booking->owner == 0 && booking->slot == 0 && booking->generation == 0 && booking->blocks == 0;
}

/* Whether the booking can be part of the sum in the entry. If the entry has one request, they must be equal. */
static bool is_part_of(const kvca_booking *booking, const struct kvca_journal *entry)
{
    return entry->requests == 1 ? entry->blocks == booking->blocks
                                : entry->requests > 1 && entry->blocks >= booking->blocks;
}

kvca_status kvca_pool_find_booking(kvca_pool *pool, const kvca_booking *booking, struct kvca_journal *entry)
{
    uint64_t owner;
    if (is_empty(booking)) {
        return KVCA_ERR_NO_BOOKING;
    }
    if (booking->slot >= pool->max_ranks || booking->generation > kvca_slot_generation(pool, booking->slot) ||
        !kvca_pool_knew_owner(pool, booking->owner)) {
        return KVCA_ERR_FOREIGN_BOOKING;
    }
    if (booking->generation != kvca_slot_generation(pool, booking->slot) ||
        !kvca_pool_find_owner(pool, booking->owner, &owner)) {
        return KVCA_STALE;
    }
    *entry = kvca_pool_entry(pool, owner, booking->slot);
    return is_part_of(booking, entry) ? KVCA_OK : KVCA_ERR_FOREIGN_BOOKING;
}
