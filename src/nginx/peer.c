/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request gets a rank, and gives it back. nginx calls init once for each request, then get and free for each try, a
 * free for each get that gave a peer. A peer's failures and connections stay in nginx's round robin, under the locks
 * there. Our lock is never taken inside one of those.
 */
#include "ngx_http_kvca.h"

#define WORD_BITS (8 * sizeof(uintptr_t))

static bool was_tried(const ngx_http_kvca_request_t *request, ngx_uint_t number)
{
    return (request->rrp.tried[number / WORD_BITS] >> number % WORD_BITS & 1) != 0;
}

static void mark_tried(ngx_http_kvca_request_t *request, ngx_uint_t number)
{
    request->rrp.tried[number / WORD_BITS] |= (uintptr_t)1 << number % WORD_BITS;
}

static bool is_full(const ngx_http_upstream_rr_peer_t *peer)
{
    return peer->max_conns != 0 && peer->conns >= peer->max_conns;
}

static bool failed_lately(const ngx_http_upstream_rr_peer_t *peer)
{
    return peer->max_fails != 0 && peer->fails >= peer->max_fails && ngx_time() - peer->checked <= peer->fail_timeout;
}

/* As nginx's other methods decide. The only peer of an upstream is eligible even after it failed. */
static bool is_eligible(const ngx_http_kvca_request_t *request, const ngx_http_upstream_rr_peer_t *peer,
                        ngx_uint_t number)
{
    if (peer->down || is_full(peer)) {
        return false;
    }
    return request->rrp.peers->single || (!was_tried(request, number) && !failed_lately(peer));
}

static const ngx_http_kvca_rank_t *rank_of(const ngx_http_kvca_request_t *request, ngx_uint_t number)
{
    const ngx_http_kvca_rank_t *ranks = request->conf->zone->ranks.elts;
    return &ranks[request->conf->rank_of_peer[number]];
}

static void set_eligible(ngx_http_kvca_request_t *request, uint32_t slot, bool eligible)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    uint64_t *word = &request->eligible[slot / 64];
    *word = eligible ? *word | bit : *word & ~bit;
}

static size_t eligible_bytes(const ngx_http_kvca_zone_t *zone)
{
    return ((size_t)kvca_pool_max_ranks(zone->pool) + 63) / 64 * sizeof(uint64_t);
}

static void find_eligible(ngx_http_kvca_request_t *request)
{
    ngx_http_upstream_rr_peers_t *peers = request->rrp.peers;
    ngx_uint_t number = 0;
    ngx_memzero(request->eligible, eligible_bytes(request->conf->zone));
    ngx_http_upstream_rr_peers_rlock(peers);
    for (const ngx_http_upstream_rr_peer_t *peer = peers->peer; peer; peer = peer->next, number++) {
        const ngx_http_kvca_rank_t *rank = rank_of(request, number);
        if (rank->in_pool && is_eligible(request, peer, number)) {
            set_eligible(request, rank->slot, true);
        }
    }
    ngx_http_upstream_rr_peers_unlock(peers);
}

static kvca_status place(ngx_http_kvca_request_t *request, kvca_selection *selection)
{
    ngx_http_kvca_zone_t *zone = request->conf->zone;
    const kvca_request wanted = {
        .size = sizeof wanted,
        .blocks = request->blocks,
        .eligible = request->eligible,
        .only_if_fits = request->conf->reject,
    };
    ngx_http_kvca_lock(zone);
    kvca_status status = kvca_pool_place(zone->pool, zone->owner, &wanted, &request->booking, selection);
    ngx_http_kvca_unlock(zone);
    return status;
}

/* Takes a connection of the peer, unless other processes took its last one meanwhile. */
static bool take_connection(ngx_http_kvca_request_t *request, ngx_http_upstream_rr_peer_t *peer)
{
    ngx_http_upstream_rr_peers_t *peers = request->rrp.peers;
    time_t now = ngx_time();
    ngx_http_upstream_rr_peer_lock(peers, peer);
    bool free = !is_full(peer);
    if (free) {
        peer->conns++;
        peer->checked = now - peer->checked > peer->fail_timeout ? now : peer->checked;
#ifdef ngx_http_upstream_rr_peer_ref /* since nginx 1.27.3 */
        ngx_http_upstream_rr_peer_ref(peers, peer);
#endif
    }
    ngx_http_upstream_rr_peer_unlock(peers, peer);
    return free;
}

/*
 * Finds the peer whose rank was booked, and takes a connection of it. Returns NULL if a reload removed the rank and its
 * slot now belongs to another rank. This process still has the old configuration then.
 */
static ngx_http_upstream_rr_peer_t *take_peer(ngx_http_kvca_request_t *request)
{
    ngx_http_upstream_rr_peers_t *peers = request->rrp.peers;
    ngx_http_upstream_rr_peer_t *taken = NULL;
    ngx_uint_t number = 0;
    ngx_http_upstream_rr_peers_rlock(peers);
    for (ngx_http_upstream_rr_peer_t *peer = peers->peer; peer; peer = peer->next, number++) {
        const ngx_http_kvca_rank_t *rank = rank_of(request, number);
        if (rank->in_pool && rank->slot == request->booking.slot && rank->generation == request->booking.generation) {
            taken = take_connection(request, peer) ? peer : NULL;
            break;
        }
    }
    ngx_http_upstream_rr_peers_unlock(peers);
    if (taken) {
        mark_tried(request, number);
        request->rrp.current = taken;
        request->rank = rank_of(request, number)->address;
    }
    return taken;
}

static ngx_int_t connect_to(ngx_peer_connection_t *pc, ngx_http_upstream_rr_peer_t *peer)
{
    pc->sockaddr = peer->sockaddr;
    pc->socklen = peer->socklen;
    pc->name = &peer->name;
    return NGX_OK;
}

static ngx_int_t find_none(ngx_peer_connection_t *pc, ngx_http_kvca_request_t *request)
{
    request->outcome = NGX_HTTP_KVCA_NONE_ELIGIBLE;
    pc->name = request->rrp.peers->name;
    return NGX_BUSY;
}

/*
 * Sends a request on unbooked, which is better than not at all. Round robin finds the same peers eligible as we do, but
 * the pool may lack them: a reload removed all ranks of this process, or could not add them.
 */
static ngx_int_t get_unbooked(ngx_peer_connection_t *pc, ngx_http_kvca_request_t *request)
{
    ngx_int_t result = ngx_http_upstream_get_round_robin_peer(pc, &request->rrp);
    request->outcome = result == NGX_OK ? NGX_HTTP_KVCA_UNBOOKED : NGX_HTTP_KVCA_NONE_ELIGIBLE;
    if (result == NGX_OK) {
        request->rank = *pc->name;
    }
    return result;
}

static ngx_int_t get_booked(ngx_peer_connection_t *pc, ngx_http_kvca_request_t *request)
{
    kvca_selection selection = {.size = sizeof selection};
    kvca_status status;
    find_eligible(request);
    while ((status = place(request, &selection)) == KVCA_OK) {
        uint32_t slot = request->booking.slot;
        ngx_http_upstream_rr_peer_t *peer = take_peer(request);
        if (peer) {
            request->outcome = selection.outcome == KVCA_FIT ? NGX_HTTP_KVCA_FIT : NGX_HTTP_KVCA_FALLBACK;
            request->booked = request->booking.blocks;
            return connect_to(pc, peer);
        }
        ngx_http_kvca_release(request);
        set_eligible(request, slot, false);
    }
    if (status == KVCA_ERR_OWNER) { /* this process was taken for dead */
        request->conf->zone->owner = 0;
    }
    /* A request whose size makes the sums overflow does not fit either. */
    bool fits_none = status == KVCA_NONE_FITS || status == KVCA_NEVER_FITS ||
                     (status == KVCA_ERR_OVERFLOW && request->conf->reject);
    if (fits_none) {
        return ngx_http_kvca_reject(request);
    }
    return status == KVCA_ERR_OVERFLOW ? find_none(pc, request) : get_unbooked(pc, request);
}

ngx_int_t ngx_http_kvca_get_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kvca_request_t *request = data;
    pc->cached = 0;
    pc->connection = NULL;
    request->rank.len = 0;
    request->booked = 0;
    request->stream = (ngx_http_kvca_stream_t){.events = 0};
    return request->conf->zone->owner != 0 ? get_booked(pc, request) : get_unbooked(pc, request);
}

void ngx_http_kvca_free_peer(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
    ngx_http_kvca_request_t *request = data;
    ngx_http_kvca_release(request);
    ngx_http_upstream_free_round_robin_peer(pc, &request->rrp, state);
}

ngx_int_t ngx_http_kvca_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_kvca_request_t *request = ngx_pcalloc(r->pool, sizeof *request);
    if (!request) {
        return NGX_ERROR;
    }
    request->request = r;
    request->conf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kvca_module);
    request->eligible = ngx_palloc(r->pool, eligible_bytes(request->conf->zone));
    r->upstream->peer.data = request;
    if (!request->eligible || ngx_http_kvca_estimate(r, request) != NGX_OK ||
        ngx_http_upstream_init_round_robin_peer(r, us) != NGX_OK) {
        return NGX_ERROR;
    }
    r->upstream->peer.get = ngx_http_kvca_get_peer;
    r->upstream->peer.free = ngx_http_kvca_free_peer;
    return ngx_http_kvca_keep_request(r, request);
}
