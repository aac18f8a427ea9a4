/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as a tree of nodes that know their place in the text. Structure alone is read here; what keys and
 * values mean is for the reader of the tree (config.c, and the command's ranks files and traces).
 */
#ifndef KVCA_DOCUMENT_H
#define KVCA_DOCUMENT_H

#include "config/error.h"

enum kvca_node_kind { KVCA_NODE_SCALAR, KVCA_NODE_LIST, KVCA_NODE_MAPPING };

/* An alias is a node of its own, with the place of the alias and the content of what it stands for. */
struct kvca_node {
    enum kvca_node_kind kind;
    bool plain;  /* a scalar without quotes */
    bool block;  /* a scalar written as a block, after | or > */
    bool tagged; /* carries an explicit tag */
    bool open;   /* while reading: its end has not come yet */
    uint32_t line;
    uint32_t column;
    uint32_t first;   /* index of the first child, 0 for none: of a mapping, key and value in turn */
    uint32_t next;    /* index of the next node with the same parent, 0 for none */
    const char *text; /* of a scalar: terminated, but it may hold a NUL before that */
    size_t length;
};

struct kvca_document {
    const char *name;        /* what messages call it; borrowed */
    struct kvca_node *nodes; /* nodes[0] is unused; nodes[1] is the root */
    size_t count;
    size_t room;
    char *text; /* where the text of all scalars is kept */
    size_t text_used;
    size_t text_room;
};

/* A text that a document is read from. */
struct kvca_source {
    const char *name; /* what messages call the file; borrowed */
    const char *text;
    size_t size;
    size_t line;   /* 0 for a whole file; otherwise the text is an object of JSON in this line of the file, */
    size_t column; /* from this column on, with nothing but blanks before it */
};

/*
 * Reads exactly one document of at most `max_bytes` bytes and KVCA_CONFIG_MAX_DEPTH levels. Free `document` after
 * KVCA_OK; after anything else there is nothing to free.
 */
kvca_status kvca_document_read(struct kvca_document *document, const struct kvca_source *source, size_t max_bytes,
                               kvca_error *error);

void kvca_document_free(struct kvca_document *document);

const struct kvca_node *kvca_document_root(const struct kvca_document *document);

/* The first child and the following one; NULL at the end. */
const struct kvca_node *kvca_node_first(const struct kvca_document *document, const struct kvca_node *parent);
const struct kvca_node *kvca_node_next(const struct kvca_document *document, const struct kvca_node *node);

/* Whether a scalar's text is `text`, quoted or not. */
bool kvca_node_is(const struct kvca_node *node, const char *text);

#endif
