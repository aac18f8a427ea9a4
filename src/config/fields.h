/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings whose keys are known: a value for each key, or an error for a key that is unknown or stands twice. */
#ifndef KVCA_FIELDS_H
#define KVCA_FIELDS_H

#include "config/document.h"

#define KVCA_FIELDS_MAX 8

/* The keys that a kind of mapping may have. */
struct kvca_schema {
    const char *what;         /* what a key is called in messages: "... is not a WHAT" */
    const char *const *known; /* at most KVCA_FIELDS_MAX, in the order of kvca_fields */
    size_t count;
    bool open; /* other keys are somebody else's and are passed over */
};

/* Where each known key and its value stand; NULL for a key that is absent. */
struct kvca_fields {
    const struct kvca_node *keys[KVCA_FIELDS_MAX];
    const struct kvca_node *values[KVCA_FIELDS_MAX];
};

/* Reads the keys of a node that must be a mapping. `name` is what messages call the node. */
kvca_status kvca_fields_read(const struct kvca_document *document, const struct kvca_node *node, const char *name,
                             const struct kvca_schema *schema, struct kvca_fields *fields, kvca_error *error);

/* Fails with KVCA_ERR_CONFIG at the place of a node. */
kvca_status kvca_fields_fail(const struct kvca_document *document, const struct kvca_node *node, kvca_error *error,
                             const char *format, ...) KVCA_PRINTF(4, 5);

/* Fails at `node`, which `name` tells: "NAME must be ACCEPTED; found ...". */
kvca_status kvca_fields_refuse(const struct kvca_document *document, const struct kvca_node *node, const char *name,
                               const char *accepted, kvca_error *error);

#endif
