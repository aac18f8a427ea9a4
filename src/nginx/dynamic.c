/* SPDX-License-Identifier: Apache-2.0 */
/* What nginx asks a loaded object for; nginx's own build makes this file by itself. */
#include "ngx_http_kvca.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED ngx_module_t *ngx_modules[] = {&ngx_http_kvca_module, NULL};
EXPORTED char *ngx_module_names[] = {"ngx_http_kvca_module", NULL};
/* As a filter it comes behind (in nginx's order: is called before) the one that compresses. */
EXPORTED char *ngx_module_order[] = {"ngx_http_kvca_module", "ngx_http_copy_filter_module", NULL};
