/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process has booked what. Each worker is an owner in the pool, and its process number is its id. A worker that
 * ends gives its bookings back. For a killed one, the next process that looks does it.
 */
#include "ngx_http_kvca.h"

#include <signal.h>

/*
 * A dead worker's number cannot belong to another process yet: the system would have had to give out all others since
 * the last look, a second ago. EPERM means that the process is alive and belongs to another user.
 */
static bool is_dead(uint64_t id)
{
    return kill((pid_t)id, 0) != 0 && errno == ESRCH;
}

/* Voids an owner. Logs outside the lock. */
static void give_back(ngx_http_kvca_zone_t *zone, const kvca_owner_info *owner, ngx_log_t *log)
{
    uint64_t blocks;
    uint64_t requests;
    ngx_http_kvca_lock(zone);
    kvca_status status = kvca_pool_owner_void(zone->pool, owner->owner, &blocks, &requests);
    ngx_http_kvca_unlock(zone);
    if (status == KVCA_OK) { /* if not, another process was first */
        ngx_log_error(NGX_LOG_WARN, log, 0, "zone \"%V\": process %uL died, and gave back %uL requests, %uL blocks",
                      &zone->name, owner->id, requests, blocks);
    }
}

/* Copies owners from `*index` on, as many as `room` allows, and returns how many. */
static size_t list_owners(ngx_http_kvca_zone_t *zone, uint32_t *index, kvca_owner_info *owners, size_t room)
{
    size_t count = 0;
    ngx_http_kvca_lock(zone);
    for (; *index < kvca_pool_max_owners(zone->pool) && count < room; ++*index) {
        owners[count].size = sizeof owners[count];
        count += kvca_pool_owner_at(zone->pool, *index, &owners[count]) == KVCA_OK;
    }
    ngx_http_kvca_unlock(zone);
    return count;
}

void ngx_http_kvca_void_dead_owners(ngx_http_kvca_zone_t *zone, ngx_log_t *log)
{
    kvca_owner_info owners[64];
    uint32_t index = 0;
    while (index < kvca_pool_max_owners(zone->pool)) {
        size_t count = list_owners(zone, &index, owners, sizeof owners / sizeof owners[0]);
        for (size_t i = 0; i < count; i++) { /* outside the lock: kill() is a system call */
            bool namesake = owners[i].id == (uint64_t)ngx_pid && owners[i].owner != zone->owner;
            if (namesake || is_dead(owners[i].id)) {
                give_back(zone, &owners[i], log);
            }
        }
    }
}

bool ngx_http_kvca_own(ngx_http_kvca_zone_t *zone)
{
    if (zone->owner != 0) {
        return true;
    }
    ngx_http_kvca_lock(zone);
    kvca_status status = kvca_pool_owner_claim(zone->pool, (uint64_t)ngx_pid, &zone->owner);
    ngx_http_kvca_unlock(zone);
    return status == KVCA_OK;
}

void ngx_http_kvca_disown(ngx_http_kvca_zone_t *zone)
{
    if (zone->owner == 0) {
        return;
    }
    ngx_http_kvca_lock(zone);
    (void)kvca_pool_owner_void(zone->pool, zone->owner, NULL, NULL);
    ngx_http_kvca_unlock(zone);
    zone->owner = 0;
}
