/* SPDX-License-Identifier: Apache-2.0 */
/* What nginx reads from a loaded object. nginx's own build generates this file. */
#include "ngx_http_kvca.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED ngx_module_t *ngx_modules[] = {&ngx_http_kvca_module, NULL};
EXPORTED char *ngx_module_names[] = {"ngx_http_kvca_module", NULL};
/* The filter stands after the one that compresses, and so nginx calls it before that one. */
EXPORTED char *ngx_module_order[] = {"ngx_http_kvca_module", "ngx_http_copy_filter_module", NULL};
