/* SPDX-License-Identifier: Apache-2.0 */
/* An upstream's servers become ranks of its zone. This runs after all lines are read, so each message names a place. */
#include "ngx_http_kvca.h"

static ngx_http_kvca_srv_conf_t *conf_of(ngx_http_upstream_srv_conf_t *us)
{
    return ngx_http_conf_upstream_srv_conf(us, ngx_http_kvca_module);
}

static ngx_int_t find_zone(ngx_conf_t *cf, ngx_http_kvca_srv_conf_t *conf)
{
    const ngx_http_kvca_main_conf_t *main_conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kvca_module);
    ngx_http_kvca_zone_t **zones = main_conf->zones.elts;
    for (ngx_uint_t i = 0; i < main_conf->zones.nelts; i++) {
        if (ngx_http_kvca_same(&zones[i]->name, &conf->zone_name)) {
            conf->zone = zones[i];
            return NGX_OK;
        }
    }
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "there is no \"kvca_zone %V\" in %V:%ui", &conf->zone_name,
                  &conf->place.file, conf->place.line);
    return NGX_ERROR;
}

/* A pool has one set of parameters. */
static ngx_int_t agree_on_params(ngx_conf_t *cf, ngx_http_kvca_srv_conf_t *conf, ngx_str_t *upstream)
{
    ngx_http_kvca_zone_t *zone = conf->zone;
    const kvca_params *ours = &conf->params;
    if (!zone->params_from) {
        zone->params = *ours;
        zone->params_from = upstream;
        return NGX_OK;
    }
    if (ours->capacity_fraction == zone->params.capacity_fraction &&
        ours->count_priority == zone->params.count_priority &&
        ours->decode_active_request_weight == zone->params.decode_active_request_weight &&
        ours->capacity_blocks == zone->params.capacity_blocks) {
        return NGX_OK;
    }
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "upstreams of one zone must have the same policy: \"%V\" and \"%V\" share \"%V\" in %V:%ui",
                  zone->params_from, upstream, &zone->name, &conf->place.file, conf->place.line);
    return NGX_ERROR;
}

/* Checks a server here because one above `kvca` was read before `kvca` said which parameters it supports. */
static ngx_int_t check_server(ngx_conf_t *cf, const ngx_http_upstream_server_t *server,
                              const ngx_http_kvca_place_t *place)
{
    if (server->backup || server->weight != 1) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "balancing method does not support \"%s\" of server \"%V\" in %V:%ui",
                      server->backup ? "backup" : "weight", &server->name, &place->file, place->line);
        return NGX_ERROR;
    }
    if (server->naddrs > 1) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "server \"%V\" has %ui addresses, and is as many ranks: give it one, if it is one in %V:%ui",
                      &server->name, server->naddrs, &place->file, place->line);
    }
    return NGX_OK;
}

static ngx_int_t check_servers(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    const ngx_http_upstream_server_t *servers = us->servers ? us->servers->elts : NULL;
    for (ngx_uint_t i = 0; servers && i < us->servers->nelts; i++) {
        if (check_server(cf, &servers[i], &conf_of(us)->place) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

/* Finds or adds a rank of the zone and returns its index, or NGX_ERROR if memory runs out. */
static ngx_int_t add_rank(ngx_http_kvca_zone_t *zone, const ngx_str_t *address)
{
    const ngx_http_kvca_rank_t *ranks = zone->ranks.elts;
    for (ngx_uint_t i = 0; i < zone->ranks.nelts; i++) {
        if (ngx_http_kvca_same(&ranks[i].address, address)) {
            return (ngx_int_t)i;
        }
    }
    ngx_http_kvca_rank_t *rank = ngx_array_push(&zone->ranks);
    if (!rank) {
        return NGX_ERROR;
    }
    *rank = (ngx_http_kvca_rank_t){.address = *address};
    return (ngx_int_t)zone->ranks.nelts - 1;
}

static bool has_peer(const ngx_http_kvca_srv_conf_t *conf, ngx_uint_t rank)
{
    for (ngx_uint_t i = 0; i < conf->peers; i++) {
        if (conf->rank_of_peer[i] == rank) {
            return true;
        }
    }
    return false;
}

static ngx_int_t add_ranks(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us, ngx_http_kvca_srv_conf_t *conf)
{
    const ngx_http_upstream_rr_peers_t *peers = us->peer.data;
    conf->rank_of_peer = ngx_pcalloc(cf->pool, peers->number * sizeof *conf->rank_of_peer);
    if (!conf->rank_of_peer) {
        return NGX_ERROR;
    }
    for (const ngx_http_upstream_rr_peer_t *peer = peers->peer; peer; peer = peer->next) {
        ngx_int_t rank = add_rank(conf->zone, &peer->name);
        if (rank == NGX_ERROR) {
            return NGX_ERROR;
        }
        if (has_peer(conf, (ngx_uint_t)rank)) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "two servers of upstream \"%V\" have the address %V in %V:%ui",
                          &us->host, &peer->name, &conf->place.file, conf->place.line);
            return NGX_ERROR;
        }
        conf->rank_of_peer[conf->peers++] = (ngx_uint_t)rank;
    }
    return NGX_OK;
}

/* Gives the capacity of a kvca_rank line to each rank of the upstream that it names. */
static ngx_int_t set_capacity(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us, ngx_http_kvca_srv_conf_t *conf,
                              const ngx_http_kvca_capacity_t *capacity)
{
    const ngx_http_upstream_rr_peers_t *peers = us->peer.data;
    const ngx_http_kvca_place_t *place = &capacity->place;
    ngx_uint_t i = 0;
    bool found = false;
    for (const ngx_http_upstream_rr_peer_t *peer = peers->peer; peer; peer = peer->next, i++) {
        ngx_http_kvca_rank_t *rank = (ngx_http_kvca_rank_t *)conf->zone->ranks.elts + conf->rank_of_peer[i];
        bool named = false;
        for (ngx_uint_t j = 0; j < capacity->url.naddrs; j++) {
            const ngx_addr_t *address = &capacity->url.addrs[j];
            named |=
                ngx_cmp_sockaddr(address->sockaddr, address->socklen, peer->sockaddr, peer->socklen, 1) == NGX_OK;
        }
        if (named && rank->total_kv_blocks != 0 && rank->total_kv_blocks != capacity->total_kv_blocks) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "rank %V of zone \"%V\" is given total_kv_blocks=%uL and total_kv_blocks=%uL in %V:%ui",
                          &rank->address, &conf->zone->name, rank->total_kv_blocks, capacity->total_kv_blocks,
                          &place->file, place->line);
            return NGX_ERROR;
        }
        rank->total_kv_blocks = named ? capacity->total_kv_blocks : rank->total_kv_blocks;
        found |= named;
    }
    if (!found) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "no server of upstream \"%V\" has the address of rank \"%V\" in %V:%ui", &us->host,
                      &capacity->url.url, &place->file, place->line);
        return NGX_ERROR;
    }
    return NGX_OK;
}

ngx_int_t ngx_http_kvca_init_upstream(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_kvca_srv_conf_t *conf = conf_of(us);
    if (check_servers(cf, us) != NGX_OK || ngx_http_upstream_init_round_robin(cf, us) != NGX_OK ||
        find_zone(cf, conf) != NGX_OK || agree_on_params(cf, conf, &us->host) != NGX_OK ||
        add_ranks(cf, us, conf) != NGX_OK) {
        return NGX_ERROR;
    }
    const ngx_http_kvca_capacity_t *capacities = conf->capacities.elts;
    for (ngx_uint_t i = 0; i < conf->capacities.nelts; i++) {
        if (set_capacity(cf, us, conf, &capacities[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    us->peer.init = ngx_http_kvca_init_peer;
    return NGX_OK;
}

/* nginx only warns if a later line replaces our method by another. */
ngx_int_t ngx_http_kvca_check_upstreams(ngx_conf_t *cf)
{
    const ngx_http_upstream_main_conf_t *upstreams = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    ngx_http_upstream_srv_conf_t **us = upstreams->upstreams.elts;
    for (ngx_uint_t i = 0; i < upstreams->upstreams.nelts; i++) {
        const ngx_http_kvca_srv_conf_t *conf = us[i]->srv_conf ? conf_of(us[i]) : NULL;
        if (conf && conf->enabled && !conf->zone) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "another balancing method takes the place of \"kvca\" in upstream \"%V\" in %V:%ui",
                          &us[i]->host, &conf->place.file, conf->place.line);
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}
