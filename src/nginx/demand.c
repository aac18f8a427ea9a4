/* SPDX-License-Identifier: Apache-2.0 */
/* How many tokens, and so how many KV blocks, a request takes. */
#include "ngx_http_kvca.h"

bool ngx_http_kvca_number(const ngx_str_t *text, uint64_t *number)
{
    off_t value = ngx_atoof(text->data, text->len);
    if (value == NGX_ERROR) {
        return false;
    }
    *number = (uint64_t)value;
    return true;
}

uint64_t ngx_http_kvca_blocks(const ngx_http_kvca_srv_conf_t *conf, uint64_t tokens)
{
    uint64_t blocks = kvca_blocks_for_tokens(ngx_min(tokens, conf->max_tokens), conf->zone->block_size);
    return ngx_max(blocks, 1);
}

/* Evaluates a value. `told` is false if it is empty or not a number, as when the client does not send the header. */
static ngx_int_t evaluate(ngx_http_request_t *r, ngx_http_complex_value_t *value, bool *told, uint64_t *number)
{
    ngx_str_t text;
    *told = false;
    if (!value) {
        return NGX_OK;
    }
    if (ngx_http_complex_value(r, value, &text) != NGX_OK) {
        return NGX_ERROR;
    }
    *told = ngx_http_kvca_number(&text, number);
    if (!*told && text.len > 0) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "kvca: \"%V\" is not a number of tokens", &text);
    }
    return NGX_OK;
}

/* Known for chunked requests too, unless proxy_request_buffering is off. */
static uint64_t body_length(const ngx_http_request_t *r)
{
    return r->headers_in.content_length_n > 0 ? (uint64_t)r->headers_in.content_length_n : 0;
}

ngx_int_t ngx_http_kvca_estimate(ngx_http_request_t *r, ngx_http_kvca_request_t *request)
{
    const ngx_http_kvca_srv_conf_t *conf = request->conf;
    bool told;
    uint64_t output = 0;
    if (evaluate(r, conf->prompt_tokens, &told, &request->tokens) != NGX_OK) {
        return NGX_ERROR;
    }
    if (!told) {
        request->tokens = kvca_blocks_for_tokens(body_length(r), conf->bytes_per_token);
    }
    if (evaluate(r, conf->output_tokens, &told, &output) != NGX_OK) {
        return NGX_ERROR;
    }
    request->blocks = ngx_http_kvca_blocks(conf, request->tokens + output); /* each below 2^63 */
    return NGX_OK;
}
