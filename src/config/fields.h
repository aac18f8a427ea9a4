/* SPDX-License-Identifier: Apache-2.0 */
/* Reads mappings with known keys. An unknown key or a key that stands twice is an error. */
#ifndef KVCA_FIELDS_H
#define KVCA_FIELDS_H

#include "config/document.h"

#define KVCA_FIELDS_MAX 8

struct kvca_schema {
    const char *what;         /* what a key is called in messages: "... is not a WHAT" */
    const char *const *known; /* at most KVCA_FIELDS_MAX, in the order of kvca_fields */
    size_t count;
    bool open; /* unknown keys belong to other programs and are skipped */
};

/* The nodes of each known key and its value; NULL if the key is absent. */
struct kvca_fields {
    const struct kvca_node *keys[KVCA_FIELDS_MAX];
    const struct kvca_node *values[KVCA_FIELDS_MAX];
};

/* Reads the keys of a node, which must be a mapping. Messages call the node `name`. */
kvca_status kvca_fields_read(const struct kvca_document *document, const struct kvca_node *node, const char *name,
                             const struct kvca_schema *schema, struct kvca_fields *fields, kvca_error *error);

/* Fails with KVCA_ERR_CONFIG, at the place of `node`. */
kvca_status kvca_fields_fail(const struct kvca_document *document, const struct kvca_node *node, kvca_error *error,
                             const char *format, ...) KVCA_PRINTF(4, 5);

/* The same, with the message "NAME must be ACCEPTED; found ...". */
kvca_status kvca_fields_refuse(const struct kvca_document *document, const struct kvca_node *node, const char *name,
                               const char *accepted, kvca_error *error);

#endif
