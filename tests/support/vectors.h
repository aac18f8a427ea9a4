/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in tests/vectors/. They are read with libyaml's own tree, not with the library under test, so that a fault
 * in one does not hide a fault in the other.
 */
#ifndef KVCA_VECTORS_H
#define KVCA_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yaml.h>

/* Loads a file of tests/vectors/, or ends the program with a message. The root is a list of cases. */
void vectors_load(yaml_document_t *document, const char *file);

size_t vectors_count(yaml_document_t *document);
yaml_node_t *vectors_case(yaml_document_t *document, size_t index);

yaml_node_t *vector_get(yaml_document_t *document, yaml_node_t *mapping, const char *key);

/* Element `index` of a list; NULL past its end. */
yaml_node_t *vector_at(yaml_document_t *document, yaml_node_t *list, size_t index);

/* The text, value or truth of a scalar; the fallback if the node is NULL. */
const char *vector_text(yaml_node_t *node);
uint64_t vector_uint64(yaml_node_t *node, uint64_t fallback);
double vector_double(yaml_node_t *node, double fallback);
bool vector_bool(yaml_node_t *node, bool fallback);
bool vector_is_null(yaml_node_t *node);

#endif
