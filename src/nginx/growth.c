/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bookings that grow with streamed output. One server-sent event with data counts as one token. The filter sees the
 * answer in pieces that end anywhere.
 */
#include "ngx_http_kvca.h"

static ngx_http_output_body_filter_pt next_filter;

/* Ends a line. An empty line ends an event. */
static void end_line(ngx_http_kvca_stream_t *stream)
{
    bool empty = stream->line == NGX_HTTP_KVCA_LINE_EMPTY || stream->line == NGX_HTTP_KVCA_LINE_CR;
    if (stream->line == NGX_HTTP_KVCA_LINE_DATA) {
        stream->has_data = true;
    } else if (empty && stream->has_data) {
        stream->events++;
        stream->has_data = false;
    }
    stream->line = NGX_HTTP_KVCA_LINE_EMPTY;
}

/* Adds text to a line. "data" is the only field of an event that begins with a d. */
static void add_to_line(ngx_http_kvca_stream_t *stream, const u_char *text, size_t length)
{
    if (length == 0) {
        return;
    }
    if (stream->line == NGX_HTTP_KVCA_LINE_CR) {
        stream->line = NGX_HTTP_KVCA_LINE_OTHER;
    } else if (stream->line == NGX_HTTP_KVCA_LINE_EMPTY && text[0] == 'd') {
        stream->line = NGX_HTTP_KVCA_LINE_DATA;
    } else if (stream->line == NGX_HTTP_KVCA_LINE_EMPTY) {
        stream->line = text[0] == '\r' && length == 1 ? NGX_HTTP_KVCA_LINE_CR : NGX_HTTP_KVCA_LINE_OTHER;
    }
}

static void count_events(ngx_http_kvca_stream_t *stream, const u_char *text, const u_char *end)
{
    const u_char *newline;
    while ((newline = memchr(text, '\n', (size_t)(end - text)))) {
        add_to_line(stream, text, (size_t)(newline - text));
        end_line(stream);
        text = newline + 1;
    }
    add_to_line(stream, text, (size_t)(end - text));
}

static void grow(ngx_http_kvca_request_t *request)
{
    ngx_http_kvca_zone_t *zone = request->conf->zone;
    uint64_t needed = ngx_http_kvca_blocks(request->conf, request->tokens + request->stream.events);
    if (needed <= request->booking.blocks) {
        return;
    }
    ngx_http_kvca_lock(zone);
    (void)kvca_pool_grow(zone->pool, &request->booking, needed - request->booking.blocks); /* it may be gone */
    ngx_http_kvca_unlock(zone);
    request->booked = request->booking.blocks;
}

static bool is_event_stream(const ngx_http_request_t *r)
{
    static const ngx_str_t type = ngx_string("text/event-stream");
    const ngx_str_t *given = &r->headers_out.content_type;
    return given->len >= type.len && ngx_strncasecmp(given->data, type.data, type.len) == 0;
}

static ngx_int_t filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_kvca_request_t *request = ngx_http_get_module_ctx(r, ngx_http_kvca_module);
    if (!request || !request->conf->grows || request->booking.owner == 0 || !is_event_stream(r)) {
        return next_filter(r, in);
    }
    for (const ngx_chain_t *link = in; link; link = link->next) {
        if (ngx_buf_in_memory(link->buf)) { /* temporary files are not read */
            count_events(&request->stream, link->buf->pos, link->buf->last);
        }
    }
    grow(request);
    return next_filter(r, in);
}

void ngx_http_kvca_init_growth(void)
{
    next_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = filter;
}
