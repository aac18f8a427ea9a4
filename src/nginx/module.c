/* SPDX-License-Identifier: Apache-2.0 */
/* What nginx calls, and when. */
#include "ngx_http_kvca.h"

/* How often a process looks for dead owners. The worker that replaces a dead one looks at once. */
#define SWEEP_MS 1000

static ngx_event_t sweep_timer;
static ngx_connection_t sweep_connection; /* nginx's debug log needs one for a timer */

static ngx_http_kvca_zone_t **zones_of(ngx_cycle_t *cycle, ngx_uint_t *count)
{
    ngx_http_kvca_main_conf_t *conf = NULL;
    if (ngx_get_conf(cycle->conf_ctx, ngx_http_module)) {
        conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_kvca_module);
    }
    *count = conf ? conf->zones.nelts : 0;
    return conf ? conf->zones.elts : NULL;
}

static void *create_main_conf(ngx_conf_t *cf)
{
    ngx_http_kvca_main_conf_t *conf = ngx_pcalloc(cf->pool, sizeof *conf);
    if (!conf || ngx_array_init(&conf->zones, cf->pool, 1, sizeof(ngx_http_kvca_zone_t *)) != NGX_OK) {
        return NULL;
    }
    return conf;
}

static void *create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_kvca_srv_conf_t *conf = ngx_pcalloc(cf->pool, sizeof *conf);
    if (!conf || ngx_array_init(&conf->capacities, cf->pool, 4, sizeof(ngx_http_kvca_capacity_t)) != NGX_OK) {
        return NULL;
    }
    conf->bytes_per_token = 4;
    conf->max_tokens = UINT64_MAX;
    return conf;
}

/*
 * Runs in the master when nothing in a new configuration can fail any more, so one that fails leaves the ledgers alone.
 * It always succeeds, because nginx ends if it fails, even in a reload.
 */
static ngx_int_t init_module(ngx_cycle_t *cycle)
{
    ngx_uint_t count;
    ngx_http_kvca_zone_t **zones = zones_of(cycle, &count);
    for (ngx_uint_t i = 0; i < count; i++) {
        ngx_http_kvca_reload_zone(zones[i], cycle->log);
    }
    return NGX_OK;
}

static void sweep(ngx_event_t *event)
{
    ngx_uint_t count;
    ngx_http_kvca_zone_t **zones = zones_of((ngx_cycle_t *)ngx_cycle, &count);
    for (ngx_uint_t i = 0; i < count; i++) {
        ngx_http_kvca_void_dead_owners(zones[i], event->log);
        (void)ngx_http_kvca_own(zones[i]); /* if there was no room before */
    }
    ngx_add_timer(event, SWEEP_MS);
}

static ngx_int_t init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t count;
    ngx_http_kvca_zone_t **zones = zones_of(cycle, &count);
    if (count == 0 || (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)) {
        return NGX_OK; /* the processes that look after caches take no requests */
    }
    for (ngx_uint_t i = 0; i < count; i++) {
        ngx_http_kvca_void_dead_owners(zones[i], cycle->log);
        if (!ngx_http_kvca_own(zones[i])) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                          "zone \"%V\" has no room for this process, and its requests are not booked for now: "
                          "too many workers of earlier configurations are still finishing",
                          &zones[i]->name);
        }
    }
    sweep_connection.fd = (ngx_socket_t)-1;
    sweep_timer = (ngx_event_t){.handler = sweep, .data = &sweep_connection, .log = cycle->log, .cancelable = 1};
    ngx_add_timer(&sweep_timer, SWEEP_MS);
    return NGX_OK;
}

static void exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t count;
    ngx_http_kvca_zone_t **zones = zones_of(cycle, &count);
    for (ngx_uint_t i = 0; i < count; i++) {
        ngx_http_kvca_disown(zones[i]);
    }
}

static ngx_int_t finish_configuration(ngx_conf_t *cf)
{
    ngx_http_kvca_init_reject();
    ngx_http_kvca_init_growth();
    return ngx_http_kvca_check_upstreams(cf);
}

static ngx_http_module_t context = {
    .preconfiguration = ngx_http_kvca_add_variables,
    .postconfiguration = finish_configuration,
    .create_main_conf = create_main_conf,
    .create_srv_conf = create_srv_conf,
};

ngx_module_t ngx_http_kvca_module = {
    NGX_MODULE_V1,
    .ctx = &context,
    .commands = ngx_http_kvca_commands,
    .type = NGX_HTTP_MODULE,
    .init_module = init_module,
    .init_process = init_process,
    .exit_process = exit_process,
};
