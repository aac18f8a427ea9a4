/* SPDX-License-Identifier: Apache-2.0 */
/* The location that shows ledgers and takes capacities. */
#include "ngx_http_kvca.h"

static const ngx_array_t *zones_of(ngx_http_request_t *r)
{
    const ngx_http_kvca_main_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_kvca_module);
    return &conf->zones;
}

static ngx_int_t respond(ngx_http_request_t *r, ngx_uint_t status, const char *type, ngx_buf_t *body)
{
    ngx_chain_t chain = {.buf = body};
    if (!body) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    body->last_buf = r == r->main ? 1 : 0;
    body->last_in_chain = 1;
    r->headers_out.status = status;
    r->headers_out.content_length_n = body->last - body->pos;
    r->headers_out.content_type = (ngx_str_t){.len = ngx_strlen(type), .data = (u_char *)type};
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    ngx_int_t result = ngx_http_send_header(r);
    return result == NGX_ERROR || result > NGX_OK || r->header_only ? result : ngx_http_output_filter(r, &chain);
}

static ngx_int_t refuse(ngx_http_request_t *r, const char *message)
{
    size_t length = ngx_strlen(message);
    ngx_buf_t *body = ngx_create_temp_buf(r->pool, length);
    if (body) {
        body->last = ngx_cpymem(body->last, message, length);
    }
    return respond(r, NGX_HTTP_BAD_REQUEST, "text/plain", body);
}

/* Finds an argument of the query string and unescapes it. Returns false if it is not there. */
static bool find_argument(ngx_http_request_t *r, const char *name, ngx_str_t *value)
{
    ngx_str_t raw;
    if (ngx_http_arg(r, (u_char *)name, ngx_strlen(name), &raw) != NGX_OK) {
        return false;
    }
    u_char *text = ngx_pnalloc(r->pool, raw.len + 1);
    if (!text) {
        return false;
    }
    u_char *from = raw.data;
    u_char *to = text;
    ngx_unescape_uri(&to, &from, raw.len, 0);
    *value = (ngx_str_t){.len = (size_t)(to - text), .data = text};
    return true;
}

/*
 * Converts blocks of another size to blocks of the zone. Saturates instead of overflowing. Rounds down, but not to 0: 0
 * would mean that the rank reports nothing.
 */
static uint64_t in_zone_blocks(const ngx_http_kvca_zone_t *zone, uint64_t blocks, uint64_t block_size)
{
    if (block_size == zone->block_size) {
        return blocks;
    }
    uint64_t most = UINT64_MAX / block_size;
    uint64_t whole = ngx_min(blocks, most) * block_size / zone->block_size;
    return blocks == 0 ? 0 : ngx_max(whole, 1);
}

/* Each zone keeps its own capacity for a rank. */
static bool report_to_zones(ngx_http_request_t *r, const ngx_str_t *zone_name, const ngx_str_t *rank, uint64_t blocks,
                            uint64_t block_size)
{
    const ngx_array_t *zones = zones_of(r);
    ngx_http_kvca_zone_t **zone = zones->elts;
    bool found = false;
    for (ngx_uint_t i = 0; i < zones->nelts; i++) {
        bool meant = !zone_name->data || ngx_http_kvca_same(&zone[i]->name, zone_name);
        uint64_t size = block_size != 0 ? block_size : zone[i]->block_size;
        found |= meant && ngx_http_kvca_report(zone[i], rank, in_zone_blocks(zone[i], blocks, size));
    }
    return found;
}

static ngx_int_t post(ngx_http_request_t *r)
{
    ngx_str_t text;
    ngx_str_t rank;
    ngx_str_t zone = ngx_null_string;
    uint64_t blocks;
    uint64_t block_size = 0;
    if (!find_argument(r, "rank", &rank) || rank.len == 0) {
        return refuse(r, "rank=ADDRESS is missing, as \"server\" has it: 10.0.0.1:8000\n");
    }
    if (!find_argument(r, "blocks", &text) || !ngx_http_kvca_number(&text, &blocks)) {
        return refuse(r,
                      "blocks=NUMBER is missing or no number: the KV blocks of the rank, or 0 for none reported\n");
    }
    if (find_argument(r, "block_size", &text) && (!ngx_http_kvca_number(&text, &block_size) || block_size == 0)) {
        return refuse(r, "block_size=NUMBER is no number from 1: the tokens in a block\n");
    }
    (void)find_argument(r, "zone", &zone);
    if (!report_to_zones(r, &zone, &rank, blocks, block_size)) {
        return NGX_HTTP_NOT_FOUND;
    }
    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;
    return ngx_http_send_header(r);
}

/* The two formats differ only in what GET shows. */
static ngx_int_t handle(ngx_http_request_t *r, ngx_buf_t *(*report)(ngx_http_request_t *, const ngx_array_t *),
                        const char *type)
{
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_POST))) {
        return NGX_HTTP_NOT_ALLOWED;
    }
    ngx_int_t result = ngx_http_discard_request_body(r);
    if (result != NGX_OK) {
        return result;
    }
    return r->method == NGX_HTTP_POST ? post(r) : respond(r, NGX_HTTP_OK, type, report(r, zones_of(r)));
}

ngx_int_t ngx_http_kvca_show_json(ngx_http_request_t *r)
{
    return handle(r, ngx_http_kvca_report_json, "application/json");
}

ngx_int_t ngx_http_kvca_show_prometheus(ngx_http_request_t *r)
{
    return handle(r, ngx_http_kvca_report_prometheus, "text/plain; version=0.0.4");
}
