/* SPDX-License-Identifier: Apache-2.0 */
#include "support/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vectors_load(yaml_document_t *document, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", KVCA_TEST_VECTORS, file);
    FILE *stream = fopen(path, "rb");
    yaml_parser_t parser;
    if (!stream || !yaml_parser_initialize(&parser)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    yaml_parser_set_input_file(&parser, stream);
    int loaded = yaml_parser_load(&parser, document);
    yaml_node_t *root = loaded ? yaml_document_get_root_node(document) : NULL;
    if (!root || root->type != YAML_SEQUENCE_NODE) {
        fprintf(stderr, "%s: is not a list of cases\n", path);
        exit(1);
    }
    yaml_parser_delete(&parser);
    fclose(stream);
}

size_t vectors_count(yaml_document_t *document)
{
    yaml_node_t *root = yaml_document_get_root_node(document);
    return (size_t)(root->data.sequence.items.top - root->data.sequence.items.start);
}

yaml_node_t *vectors_case(yaml_document_t *document, size_t index)
{
    return vector_at(document, yaml_document_get_root_node(document), index);
}

yaml_node_t *vector_get(yaml_document_t *document, yaml_node_t *mapping, const char *key)
{
    if (!mapping || mapping->type != YAML_MAPPING_NODE) {
        return NULL;
    }
    for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
        if (strcmp(vector_text(yaml_document_get_node(document, pair->key)), key) == 0) {
            return yaml_document_get_node(document, pair->value);
        }
    }
    return NULL;
}

yaml_node_t *vector_at(yaml_document_t *document, yaml_node_t *list, size_t index)
{
    if (!list || list->type != YAML_SEQUENCE_NODE) {
        return NULL;
    }
    yaml_node_item_t *item = list->data.sequence.items.start + index;
    return item < list->data.sequence.items.top ? yaml_document_get_node(document, *item) : NULL;
}

const char *vector_text(yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "";
}

uint64_t vector_uint64(yaml_node_t *node, uint64_t fallback)
{
    return node ? strtoull(vector_text(node), NULL, 10) : fallback;
}

double vector_double(yaml_node_t *node, double fallback)
{
    return node ? strtod(vector_text(node), NULL) : fallback;
}

bool vector_bool(yaml_node_t *node, bool fallback)
{
    return node ? strcmp(vector_text(node), "true") == 0 : fallback;
}

bool vector_is_null(yaml_node_t *node)
{
    return node && strcmp(vector_text(node), "null") == 0;
}
