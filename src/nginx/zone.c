/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared memory of a zone. The first configuration with the zone makes it. Later ones find it with all bookings.
 * Workers of several configurations use it at the same time.
 */
#include "ngx_http_kvca.h"

#include <sys/wait.h>

/* The pool has room for the workers of this configuration, and of some earlier ones that still have open streams. */
#define GENERATIONS 4
#define LEAST_OWNERS 16

/* Each request and each look at the status goes over all slots, so their number is limited. */
#define MOST_RANKS 65536

/* How long the master tries to lock a zone, and how often. */
#define LOCK_TRIES 5000
#define LOCK_PAUSE_MS 1

void ngx_http_kvca_lock(ngx_http_kvca_zone_t *zone)
{
    ngx_shmtx_lock(&zone->slab->mutex);
}

void ngx_http_kvca_unlock(ngx_http_kvca_zone_t *zone)
{
    ngx_shmtx_unlock(&zone->slab->mutex);
}

static size_t entries_bytes(uint32_t ranks)
{
    size_t units = (ranks * sizeof(ngx_http_kvca_entry_t) + KVCA_POOL_ALIGNMENT - 1) / KVCA_POOL_ALIGNMENT;
    return units * KVCA_POOL_ALIGNMENT;
}

/* Saturates at SIZE_MAX if this machine cannot address so much. */
static size_t bytes_for(uint32_t ranks, uint32_t owners)
{
    size_t pool = kvca_pool_bytes(ranks, owners);
    return pool != 0 ? entries_bytes(ranks) + pool : SIZE_MAX;
}

static uint32_t ranks_in(size_t bytes, uint32_t owners)
{
    uint32_t fit = 0;
    uint32_t too_many = MOST_RANKS + 1;
    while (too_many - fit > 1) {
        uint32_t middle = fit + (too_many - fit) / 2;
        if (bytes_for(middle, owners) <= bytes) {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    return fit;
}

static ngx_uint_t worker_count(const ngx_http_kvca_zone_t *zone)
{
    const ngx_core_conf_t *core = (const ngx_core_conf_t *)ngx_get_conf(zone->cycle->conf_ctx, ngx_core_module);
    return (ngx_uint_t)ngx_max(core->worker_processes, 1);
}

static uint32_t owner_count(const ngx_http_kvca_zone_t *zone)
{
    ngx_uint_t owners = GENERATIONS * worker_count(zone);
    return (uint32_t)ngx_min(ngx_max(owners, LEAST_OWNERS), KVCA_POOL_MAX_OWNERS);
}

/* The size that kvca_zone needs for the ranks. nginx keeps some of it for itself, in pages. */
static size_t zone_size_for(uint32_t ranks, uint32_t owners)
{
    size_t pages = (bytes_for(ranks, owners) + ngx_pagesize - 1) / ngx_pagesize;
    size_t bytes = (pages + 3) * (ngx_pagesize + sizeof(ngx_slab_page_t));
    return (bytes / ngx_pagesize + 1) * ngx_pagesize;
}

static ngx_int_t refuse_size(ngx_http_kvca_zone_t *zone, ngx_log_t *log, uint32_t room, uint32_t owners)
{
    ngx_log_error(NGX_LOG_EMERG, log, 0,
                  "zone \"%V\" is too small: it has room for %uD ranks, and %ui are configured; "
                  "they need \"kvca_zone %V %uzk\", and twice that lets all of them be replaced in a reload",
                  &zone->name, room, zone->ranks.nelts, &zone->name,
                  zone_size_for((uint32_t)ngx_max(zone->ranks.nelts, 1), owners) / 1024);
    return NGX_ERROR;
}

static void lead_to(ngx_http_kvca_zone_t *zone, void *block, kvca_pool *pool)
{
    zone->entries = block;
    zone->pool = pool;
}

static ngx_int_t make(ngx_http_kvca_zone_t *zone, ngx_log_t *log)
{
    uint32_t owners = owner_count(zone);
    uint32_t ranks = ranks_in(zone->slab->pfree * ngx_pagesize, owners);
    kvca_pool *pool;
    if (ranks == 0 || ranks < zone->ranks.nelts) {
        return refuse_size(zone, log, ranks, owners);
    }
    size_t bytes = bytes_for(ranks, owners);
    u_char *block = ngx_slab_calloc(zone->slab, bytes);
    if (!block) {
        return NGX_ERROR; /* nginx has logged it */
    }
    size_t offset = entries_bytes(ranks);
    kvca_status status = kvca_pool_init(block + offset, bytes - offset, ranks, owners, &zone->params, &pool);
    if (status != KVCA_OK) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "zone \"%V\": %s", &zone->name, kvca_strerror(status));
        return NGX_ERROR;
    }
    lead_to(zone, block, pool);
    return NGX_OK;
}

/* Takes over the zone of an earlier configuration. */
static ngx_int_t keep(ngx_http_kvca_zone_t *zone, const ngx_http_kvca_zone_t *old, ngx_log_t *log)
{
    if (zone->block_size != old->block_size) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "zone \"%V\" counts in blocks of %ui tokens while it is in use: "
                      "block_size=%ui needs another zone, or a restart",
                      &zone->name, old->block_size, zone->block_size);
        return NGX_ERROR;
    }
    uint32_t room = kvca_pool_max_ranks(old->pool);
    if (room < zone->ranks.nelts) {
        return refuse_size(zone, log, room, owner_count(zone));
    }
    if (kvca_pool_max_owners(old->pool) < worker_count(zone)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "zone \"%V\" has room for the bookings of %uD processes while it is in use: "
                      "worker_processes %ui needs another zone, or a restart",
                      &zone->name, kvca_pool_max_owners(old->pool), worker_count(zone));
        return NGX_ERROR;
    }
    lead_to(zone, old->entries, old->pool);
    zone->owner = old->owner; /* without a master the process stays the same */
    return NGX_OK;
}

ngx_int_t ngx_http_kvca_init_zone(ngx_shm_zone_t *shm, void *data)
{
    ngx_http_kvca_zone_t *zone = shm->data;
    zone->slab = (ngx_slab_pool_t *)(void *)shm->shm.addr;
    return data ? keep(zone, data, shm->shm.log) : make(zone, shm->shm.log);
}

/*
 * While the master reads a configuration it does not notice that a worker died, and could wait for that worker's lock
 * for ever. waitid() shows a child that has ended and was not waited for.
 */
static bool lock_as_master(ngx_http_kvca_zone_t *zone)
{
    for (ngx_uint_t tries = 0; tries < LOCK_TRIES; tries++) {
        if (ngx_shmtx_trylock(&zone->slab->mutex)) {
            return true;
        }
        ngx_pid_t holder = (ngx_pid_t)*zone->slab->mutex.lock;
        siginfo_t info = {.si_pid = 0};
        if (holder > 0 && waitid(P_PID, (id_t)holder, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == holder) {
            ngx_shmtx_force_unlock(&zone->slab->mutex, holder);
        }
        ngx_msleep(LOCK_PAUSE_MS);
    }
    return false;
}

static bool in_pool(ngx_http_kvca_zone_t *zone, uint32_t entry)
{
    uint32_t slot;
    return kvca_pool_find(zone->pool, entry, 0, &slot) == KVCA_OK;
}

static bool has_address(const ngx_http_kvca_entry_t *entry, const ngx_str_t *address)
{
    return entry->length == address->len && ngx_memcmp(entry->address, address->data, address->len) == 0;
}

/* The entry of a rank in the pool; max_ranks if it has none. */
static uint32_t find_entry(ngx_http_kvca_zone_t *zone, const ngx_str_t *address)
{
    uint32_t count = kvca_pool_max_ranks(zone->pool);
    uint32_t entry = 0;
    while (entry < count && !(has_address(&zone->entries[entry], address) && in_pool(zone, entry))) {
        entry++;
    }
    return entry;
}

/* A free entry for a rank that is not in the pool; max_ranks if there is none. */
static uint32_t new_entry(ngx_http_kvca_zone_t *zone, const ngx_str_t *address)
{
    uint32_t count = kvca_pool_max_ranks(zone->pool);
    uint32_t entry = 0;
    while (entry < count && in_pool(zone, entry)) {
        entry++;
    }
    if (entry < count) {
        zone->entries[entry] = (ngx_http_kvca_entry_t){.length = ngx_min(address->len, NGX_SOCKADDR_STRLEN)};
        ngx_memcpy(zone->entries[entry].address, address->data, zone->entries[entry].length);
    }
    return entry;
}

/* What a rank reports goes before what the configuration says. */
static kvca_status put_entry(ngx_http_kvca_zone_t *zone, uint32_t number, kvca_put *put)
{
    const ngx_http_kvca_entry_t *entry = &zone->entries[number];
    const kvca_rank rank = {
        .size = sizeof rank,
        .worker_id = number,
        .total_kv_blocks = entry->reported_blocks != 0 ? entry->reported_blocks : entry->configured_blocks,
    };
    return kvca_pool_put(zone->pool, &rank, put);
}

/* Puts a configured rank. Returns true if its capacity has become unknown. */
static bool put_rank(ngx_http_kvca_zone_t *zone, ngx_http_kvca_rank_t *rank)
{
    uint32_t number = find_entry(zone, &rank->address);
    if (number == kvca_pool_max_ranks(zone->pool)) {
        number = new_entry(zone, &rank->address);
    }
    kvca_put put = {.size = sizeof put};
    rank->in_pool = false;
    if (number == kvca_pool_max_ranks(zone->pool)) {
        return false;
    }
    ngx_http_kvca_entry_t *entry = &zone->entries[number];
    entry->configured_blocks = rank->total_kv_blocks;
    entry->in_config = true;
    if (put_entry(zone, number, &put) != KVCA_OK) {
        return false;
    }
    rank->in_pool = true;
    rank->slot = put.slot;
    rank->generation = put.generation;
    bool warns = put.unknown_capacity && !entry->warned;
    entry->warned = put.unknown_capacity;
    return warns;
}

static void drain_others(ngx_http_kvca_zone_t *zone)
{
    for (uint32_t number = 0; number < kvca_pool_max_ranks(zone->pool); number++) {
        if (!zone->entries[number].in_config) {
            (void)kvca_pool_drain(zone->pool, number, 0); /* fails if there is no such rank */
        }
    }
}

/* Applies the configuration to the pool. `unknown` marks the ranks to warn about. */
static void apply(ngx_http_kvca_zone_t *zone, bool *unknown)
{
    ngx_http_kvca_rank_t *ranks = zone->ranks.elts;
    (void)kvca_pool_set_params(zone->pool, &zone->params); /* valid, because they were loaded */
    for (uint32_t number = 0; number < kvca_pool_max_ranks(zone->pool); number++) {
        zone->entries[number].in_config = false;
    }
    for (ngx_uint_t i = 0; i < zone->ranks.nelts; i++) {
        unknown[i] = put_rank(zone, &ranks[i]);
    }
    drain_others(zone);
}

static void tell_ranks(const ngx_http_kvca_zone_t *zone, const bool *unknown, ngx_log_t *log)
{
    const ngx_http_kvca_rank_t *ranks = zone->ranks.elts;
    for (ngx_uint_t i = 0; i < zone->ranks.nelts; i++) {
        if (!ranks[i].in_pool) {
            ngx_log_error(
                NGX_LOG_ALERT, log, 0,
                "zone \"%V\" has no room for rank %V while removed ones finish, and it gets only requests that "
                "no other rank can take, unbooked: reload again later, or restart with a larger zone",
                &zone->name, &ranks[i].address);
        } else if (unknown[i]) {
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "rank %V of zone \"%V\" has no known capacity, so that every request fits it: "
                          "give it a \"kvca_rank\", post what it reports, or set capacity_blocks in the policy",
                          &ranks[i].address, &zone->name);
        }
    }
}

void ngx_http_kvca_reload_zone(ngx_http_kvca_zone_t *zone, ngx_log_t *log)
{
    bool *unknown = ngx_pcalloc(zone->cycle->pool, (zone->ranks.nelts + 1) * sizeof *unknown);
    if (!unknown || !lock_as_master(zone)) {
        ngx_log_error(NGX_LOG_ALERT, log, 0,
                      "zone \"%V\" could not be locked, and requests of new workers are not booked: reload again",
                      &zone->name);
        return;
    }
    apply(zone, unknown);
    ngx_http_kvca_unlock(zone);
    tell_ranks(zone, unknown, log);
}

bool ngx_http_kvca_report(ngx_http_kvca_zone_t *zone, const ngx_str_t *address, uint64_t blocks)
{
    ngx_http_kvca_lock(zone);
    uint32_t number = find_entry(zone, address);
    bool found = number < kvca_pool_max_ranks(zone->pool) && zone->entries[number].in_config;
    if (found) {
        zone->entries[number].reported_blocks = blocks;
        (void)put_entry(zone, number, NULL); /* it is in the pool, and so there is room */
    }
    ngx_http_kvca_unlock(zone);
    return found;
}
