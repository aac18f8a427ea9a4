/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings in the ledger. A booking is a part of the sum that its owner has booked on its slot. */
#ifndef KVCA_BOOKING_H
#define KVCA_BOOKING_H

#include "pool/ledger.h"

/* What an owner, given by its index, has booked on a slot. It is a journal entry that would change nothing. */
static inline struct kvca_journal kvca_pool_entry(kvca_pool *pool, uint64_t owner, uint64_t slot)
{
    return (struct kvca_journal){
        .owner = owner,
        .slot = slot,
        .blocks = kvca_owner_row(pool, KVCA_PART_OWNER_BLOCKS, owner)[slot],
        .requests = kvca_owner_row(pool, KVCA_PART_OWNER_REQUESTS, owner)[slot],
    };
}

/*
 * Finds the entry that a booking is a part of. If there is none, returns why: KVCA_ERR_NO_BOOKING,
 * KVCA_ERR_FOREIGN_BOOKING or KVCA_STALE.
 */
kvca_status kvca_pool_find_booking(kvca_pool *pool, const kvca_booking *booking, struct kvca_journal *entry);

#endif
