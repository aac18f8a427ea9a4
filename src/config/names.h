/* SPDX-License-Identifier: Apache-2.0 */
/* A map from names to nodes, for anchors, keys and instances. It is a balanced tree, so no choice of names is slow. */
#ifndef KVCA_NAMES_H
#define KVCA_NAMES_H

#include <stddef.h>

#include <kvca/kvca.h>

struct kvca_name {
    const char *text; /* borrowed */
    size_t length;
    size_t node; /* what the name stands for: the index of a node in its document */
    struct kvca_name *next;
};

/* All zero is the empty map. */
struct kvca_names {
    void *tree;
    struct kvca_name *all;
};

/* The entry of a name, or NULL. It does not move. The caller may change its node. */
struct kvca_name *kvca_names_find(const struct kvca_names *names, const char *text, size_t length);

/* Adds a new name. Returns KVCA_OK or KVCA_ERR_NO_MEMORY. */
kvca_status kvca_names_add(struct kvca_names *names, const char *text, size_t length, size_t node);

void kvca_names_free(struct kvca_names *names);

#endif
