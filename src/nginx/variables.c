/* SPDX-License-Identifier: Apache-2.0 */
/* $kvca_rank, $kvca_outcome, $kvca_booked */
#include "ngx_http_kvca.h"

static void tell(ngx_http_variable_value_t *value, const u_char *text, size_t length)
{
    *value = (ngx_http_variable_value_t){.valid = 1, .no_cacheable = 1, .not_found = 0};
    value->len = (unsigned)length & 0xfffffff; /* the width of this bit-field */
    value->data = (u_char *)text;
}

static void tell_nothing(ngx_http_variable_value_t *value)
{
    *value = (ngx_http_variable_value_t){.not_found = 1};
}

static ngx_int_t tell_rank(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t unused)
{
    (void)unused;
    const ngx_http_kvca_request_t *request = ngx_http_kvca_request_of(r);
    if (request && request->rank.len > 0) {
        tell(value, request->rank.data, request->rank.len);
    } else {
        tell_nothing(value);
    }
    return NGX_OK;
}

static ngx_int_t tell_outcome(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t unused)
{
    (void)unused;
    static const ngx_str_t names[] = {
        [NGX_HTTP_KVCA_FIT] = ngx_string("fit"),
        [NGX_HTTP_KVCA_FALLBACK] = ngx_string("fallback"),
        [NGX_HTTP_KVCA_NONE_FITS] = ngx_string("none_fits"),
        [NGX_HTTP_KVCA_NONE_ELIGIBLE] = ngx_string("none_eligible"),
        [NGX_HTTP_KVCA_UNBOOKED] = ngx_string("unbooked"),
    };
    const ngx_http_kvca_request_t *request = ngx_http_kvca_request_of(r);
    if (request && request->outcome != NGX_HTTP_KVCA_UNTRIED) {
        tell(value, names[request->outcome].data, names[request->outcome].len);
    } else {
        tell_nothing(value);
    }
    return NGX_OK;
}

static ngx_int_t tell_booked(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t unused)
{
    (void)unused;
    const ngx_http_kvca_request_t *request = ngx_http_kvca_request_of(r);
    if (!request || request->booked == 0) {
        tell_nothing(value);
        return NGX_OK;
    }
    u_char *text = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (!text) {
        return NGX_ERROR;
    }
    tell(value, text, (size_t)(ngx_sprintf(text, "%uL", request->booked) - text));
    return NGX_OK;
}

ngx_int_t ngx_http_kvca_add_variables(ngx_conf_t *cf)
{
    static const struct {
        ngx_str_t name;
        ngx_http_get_variable_pt get;
    } variables[] = {
        {ngx_string("kvca_rank"), tell_rank},
        {ngx_string("kvca_outcome"), tell_outcome},
        {ngx_string("kvca_booked"), tell_booked},
    };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        ngx_str_t name = variables[i].name;
        ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE);
        if (!variable) {
            return NGX_ERROR;
        }
        variable->get_handler = variables[i].get;
    }
    return NGX_OK;
}
