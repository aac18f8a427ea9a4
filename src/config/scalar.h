/* SPDX-License-Identifier: Apache-2.0 */
/* The type and value of a scalar under YAML's core schema, in any locale. */
#ifndef KVCA_SCALAR_H
#define KVCA_SCALAR_H

#include "config/document.h"

enum kvca_scalar_type {
    KVCA_SCALAR_NULL,    /* empty, ~, null, Null, NULL */
    KVCA_SCALAR_BOOL,    /* true, True, TRUE, false, False, FALSE */
    KVCA_SCALAR_INTEGER, /* decimal with an optional sign, 0x and 0o */
    KVCA_SCALAR_FLOAT,   /* decimal with a point or an exponent, .inf, .nan */
    KVCA_SCALAR_STRING,  /* everything else, and everything in quotes */
    KVCA_SCALAR_NONE     /* not a scalar, or one with an explicit tag */
};

enum kvca_scalar_type kvca_scalar_type(const struct kvca_node *node);

/* The value of a KVCA_SCALAR_BOOL. */
bool kvca_scalar_bool(const struct kvca_node *node);

/* Reads a KVCA_SCALAR_INTEGER. Returns false if it is not from 0 to UINT64_MAX. */
bool kvca_scalar_uint64(const struct kvca_node *node, uint64_t *value);

/* Reads an INTEGER or FLOAT as the nearest double, infinite if too large. Returns KVCA_OK or KVCA_ERR_NO_MEMORY. */
kvca_status kvca_scalar_double(const struct kvca_node *node, double *value);

/* Describes a node for "...; found %s". */
struct kvca_found {
    char text[128];
};
struct kvca_found kvca_found(const struct kvca_node *node);

#endif
