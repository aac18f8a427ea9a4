/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept for a request of nginx's that goes through an upstream of ours: found again, and given back in the
 * end.
 */
#include "ngx_http_kvca.h"

void ngx_http_kvca_release(ngx_http_kvca_request_t *request)
{
    ngx_http_kvca_zone_t *zone = request->conf->zone;
    if (request->booking.owner == 0) {
        return;
    }
    ngx_http_kvca_lock(zone);
    (void)kvca_pool_release(zone->pool, &request->booking); /* stale after this process was given up for dead */
    ngx_http_kvca_unlock(zone);
    request->booking = (kvca_booking){0};
}

/* nginx gives every peer back before; should it once not, nothing stays booked. */
static void clean_up(void *data)
{
    ngx_http_kvca_release(data);
}

ngx_int_t ngx_http_kvca_keep_request(ngx_http_request_t *r, ngx_http_kvca_request_t *request)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, 0);
    if (!cleanup) {
        return NGX_ERROR;
    }
    cleanup->handler = clean_up;
    cleanup->data = request;
    ngx_http_set_ctx(r, request, ngx_http_kvca_module);
    return NGX_OK;
}

/* An internal redirect, such as error_page makes, forgets the contexts of modules; the clean-up is still there. */
ngx_http_kvca_request_t *ngx_http_kvca_request_of(ngx_http_request_t *r)
{
    ngx_http_kvca_request_t *request = ngx_http_get_module_ctx(r, ngx_http_kvca_module);
    for (ngx_pool_cleanup_t *cleanup = r->pool->cleanup; !request && cleanup; cleanup = cleanup->next) {
        ngx_http_kvca_request_t *other = cleanup->handler == clean_up ? cleanup->data : NULL;
        request = other && other->request == r ? other : NULL;
    }
    return request;
}
