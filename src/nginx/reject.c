/* SPDX-License-Identifier: Apache-2.0 */
/* overflow=reject: the answer to a request that fits no rank. */
#include "ngx_http_kvca.h"

static ngx_http_output_header_filter_pt next_filter;

/* As nginx does when it finalizes an upstream request: others may wait for this one to fill the cache. */
static void let_go_of_cache(ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)
    if (r->cache) {
        ngx_http_file_cache_free(r->cache, r->upstream->pipe->temp_file);
    }
#else
    (void)r;
#endif
}

/*
 * If get gives no peer, nginx answers 502 and logs an error. So the request is finalized here, with the operator's
 * status and error_page. nginx then drops a reference to the request, and this leaves it one.
 */
ngx_int_t ngx_http_kvca_reject(ngx_http_kvca_request_t *request)
{
    ngx_http_request_t *r = request->request;
    ngx_http_upstream_t *u = r->upstream;
    ngx_int_t status = request->conf->status;
    request->outcome = NGX_HTTP_KVCA_NONE_FITS;
    u->state->peer = request->rrp.peers->name; /* for $upstream_addr and similar variables */
    u->state->status = (ngx_uint_t)status;
    u->state->response_time = ngx_current_msec - u->start_time;
    *u->cleanup = NULL;
    u->cleanup = NULL;
    let_go_of_cache(r);
    r->read_event_handler = ngx_http_block_reading; /* nginx's own would finalize again when the client leaves */
    r->connection->log->action = "sending to client";
    r->main->count++;
    ngx_http_finalize_request(r, status);
    return NGX_ERROR;
}

static ngx_int_t add_retry_after(ngx_http_request_t *r, time_t seconds)
{
    ngx_table_elt_t *header = ngx_list_push(&r->headers_out.headers);
    u_char *text = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
    if (!header || !text) {
        return NGX_ERROR;
    }
    ngx_memzero(header, sizeof *header); /* its fields differ among versions of nginx */
    header->hash = 1;
    ngx_str_set(&header->key, "Retry-After");
    header->value = (ngx_str_t){.len = (size_t)(ngx_sprintf(text, "%T", seconds) - text), .data = text};
    return NGX_OK;
}

/* The answer may be the operator's own page, but not one to which error_page gave another status. */
static bool is_rejection(const ngx_http_kvca_request_t *request, ngx_uint_t status)
{
    return request && request->outcome == NGX_HTTP_KVCA_NONE_FITS && (ngx_uint_t)request->conf->status == status;
}

static ngx_int_t filter(ngx_http_request_t *r)
{
    if (r->headers_out.status < NGX_HTTP_BAD_REQUEST) {
        return next_filter(r); /* nearly all answers: do not search them for a request of ours */
    }
    const ngx_http_kvca_request_t *request = ngx_http_kvca_request_of(r);
    if (is_rejection(request, r->headers_out.status) && request->conf->retry_after > 0 &&
        add_retry_after(r, request->conf->retry_after) != NGX_OK) {
        return NGX_ERROR;
    }
    return next_filter(r);
}

void ngx_http_kvca_init_reject(void)
{
    next_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = filter;
}
