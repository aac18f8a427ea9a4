/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a YAML document into a tree of nodes with their places in the text. What keys and values mean is up to the
 * readers of the tree: config.c, and the command's readers of ranks files and traces.
 */
#ifndef KVCA_DOCUMENT_H
#define KVCA_DOCUMENT_H

#include "config/error.h"

enum kvca_node_kind { KVCA_NODE_SCALAR, KVCA_NODE_LIST, KVCA_NODE_MAPPING };

/* An alias has its own node, with the place of the alias and the content of its target. */
struct kvca_node {
    enum kvca_node_kind kind;
    bool plain;  /* a scalar without quotes */
    bool block;  /* a scalar written as a block, after | or > */
    bool tagged; /* has an explicit tag */
    bool open;   /* its end has not been read yet */
    uint32_t line;
    uint32_t column;
    uint32_t first; /* index of the first child, 0: none; the children of a mapping are key, value, key, value, ... */
    uint32_t next;  /* index of the next node with the same parent, 0: none */
    const char *text; /* of a scalar; terminated, but it may also contain NUL */
    size_t length;
};

struct kvca_document {
    const char *name;        /* what messages call it; borrowed */
    struct kvca_node *nodes; /* nodes[0] is unused; nodes[1] is the root */
    size_t count;
    size_t room;
    char *text; /* the text of all scalars */
    size_t text_used;
    size_t text_room;
};

struct kvca_source {
    const char *name; /* what messages call the file; borrowed */
    const char *text;
    size_t size;
    size_t line;   /* 0: the text is a whole file; otherwise it is a JSON object in this line of the file, */
    size_t column; /* from this column on, with only blanks before it */
};

/* Reads exactly one document, of at most `max_bytes` bytes and KVCA_CONFIG_MAX_DEPTH levels. Free it after KVCA_OK. */
kvca_status kvca_document_read(struct kvca_document *document, const struct kvca_source *source, size_t max_bytes,
                               kvca_error *error);

void kvca_document_free(struct kvca_document *document);

const struct kvca_node *kvca_document_root(const struct kvca_document *document);

/* The first child, and the one after a child. NULL at the end. */
const struct kvca_node *kvca_node_first(const struct kvca_document *document, const struct kvca_node *parent);
const struct kvca_node *kvca_node_next(const struct kvca_document *document, const struct kvca_node *node);

/* Whether the node is a scalar with this text, quoted or not. */
bool kvca_node_is(const struct kvca_node *node, const char *text);

#endif
