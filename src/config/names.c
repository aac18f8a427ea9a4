/* SPDX-License-Identifier: Apache-2.0 */
#include "config/names.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct kvca_name *x = a;
    const struct kvca_name *y = b;
    if (x->length != y->length) {
        return x->length < y->length ? -1 : 1;
    }
    return memcmp(x->text, y->text, x->length);
}

struct kvca_name *kvca_names_find(const struct kvca_names *names, const char *text, size_t length)
{
    struct kvca_name wanted = {.text = text, .length = length};
    struct kvca_name **found = tfind(&wanted, &names->tree, compare);
    return found ? *found : NULL;
}

kvca_status kvca_names_add(struct kvca_names *names, const char *text, size_t length, size_t node)
{
    struct kvca_name *name = malloc(sizeof *name);
    if (!name) {
        return KVCA_ERR_NO_MEMORY;
    }
    *name = (struct kvca_name){.text = text, .length = length, .node = node, .next = names->all};
    if (!tsearch(name, &names->tree, compare)) {
        free(name);
        return KVCA_ERR_NO_MEMORY;
    }
    names->all = name;
    return KVCA_OK;
}

void kvca_names_free(struct kvca_names *names)
{
    struct kvca_name *next;
    for (struct kvca_name *name = names->all; name; name = next) {
        next = name->next;
        tdelete(name, &names->tree, compare);
        free(name);
    }
    *names = (struct kvca_names){.tree = NULL};
}
