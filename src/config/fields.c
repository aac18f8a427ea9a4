/* SPDX-License-Identifier: Apache-2.0 */
#include "config/fields.h"

#include <stdio.h>
#include <string.h>

#include "config/names.h"
#include "config/scalar.h"

kvca_status kvca_fields_fail(const struct kvca_document *document, const struct kvca_node *node, kvca_error *error,
                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    kvca_error_vset(error, KVCA_ERR_CONFIG, document->name, node->line, node->column, format, arguments);
    va_end(arguments);
    return KVCA_ERR_CONFIG;
}

kvca_status kvca_fields_refuse(const struct kvca_document *document, const struct kvca_node *node, const char *name,
                               const char *accepted, kvca_error *error)
{
    return kvca_fields_fail(document, node, error, "%s must be %s; found %s", name, accepted, kvca_found(node).text);
}

/* "a, b, c": the known keys, for messages. */
struct list {
    char text[256];
};

static struct list list_known(const struct kvca_schema *schema)
{
    struct list list = {""};
    size_t used = 0;
    for (size_t i = 0; i < schema->count && used < sizeof list.text; i++) {
        used +=
            (size_t)snprintf(list.text + used, sizeof list.text - used, "%s%s", i == 0 ? "" : ", ", schema->known[i]);
    }
    return list;
}

static kvca_status refuse_unknown(const struct kvca_document *document, const struct kvca_node *key,
                                  const struct kvca_schema *schema, kvca_error *error)
{
    const char *nearest = kvca_nearest(key->text, key->length, schema->known, schema->count);
    return kvca_fields_fail(document, key, error, "\"%s\" is not a %s%s%s%s; accepted are %s",
                            kvca_excerpt(key->text, key->length).text, schema->what, nearest ? " (did you mean " : "",
                            nearest ? nearest : "", nearest ? "?)" : "", list_known(schema).text);
}

static kvca_status refuse_duplicate(const struct kvca_document *document, const struct kvca_node *key, uint32_t line,
                                    kvca_error *error)
{
    return kvca_fields_fail(document, key, error,
                            "%s stands here a second time; the first is in line %u: remove one of them",
                            kvca_excerpt(key->text, key->length).text, (unsigned)line);
}

static kvca_status check_key(const struct kvca_document *document, const struct kvca_node *key,
                             const struct kvca_schema *schema, kvca_error *error)
{
    if (key->kind != KVCA_NODE_SCALAR || key->tagged) {
        return kvca_fields_refuse(document, key, "a key", "plain text", error);
    }
    if (key->plain && kvca_node_is(key, "<<")) {
        return kvca_fields_fail(document, key, error,
                                "the merge key << is not supported; write each %s out, or use an alias for the whole "
                                "mapping",
                                schema->what);
    }
    return KVCA_OK;
}

static size_t index_of(const struct kvca_schema *schema, const struct kvca_node *key)
{
    size_t index = 0;
    while (index < schema->count && !kvca_node_is(key, schema->known[index])) {
        index++;
    }
    return index;
}

/* An unknown key in an open mapping. It is only checked that it does not stand twice. */
static kvca_status pass_over(const struct kvca_document *document, const struct kvca_node *key,
                             struct kvca_names *others, kvca_error *error)
{
    const struct kvca_name *first = kvca_names_find(others, key->text, key->length);
    if (first) {
        return refuse_duplicate(document, key, document->nodes[first->node].line, error);
    }
    if (kvca_names_add(others, key->text, key->length, (size_t)(key - document->nodes)) != KVCA_OK) {
        return kvca_error_no_memory(error, document->name);
    }
    return KVCA_OK;
}

static kvca_status take_field(const struct kvca_document *document, const struct kvca_node *key,
                              const struct kvca_schema *schema, struct kvca_fields *fields, struct kvca_names *others,
                              kvca_error *error)
{
    kvca_status status = check_key(document, key, schema, error);
    if (status != KVCA_OK) {
        return status;
    }
    size_t index = index_of(schema, key);
    if (index == schema->count) {
        return schema->open ? pass_over(document, key, others, error) : refuse_unknown(document, key, schema, error);
    }
    if (fields->keys[index]) {
        return refuse_duplicate(document, key, fields->keys[index]->line, error);
    }
    fields->keys[index] = key;
    fields->values[index] = kvca_node_next(document, key);
    return KVCA_OK;
}

kvca_status kvca_fields_read(const struct kvca_document *document, const struct kvca_node *node, const char *name,
                             const struct kvca_schema *schema, struct kvca_fields *fields, kvca_error *error)
{
    if (node->kind != KVCA_NODE_MAPPING || node->tagged) {
        return kvca_fields_refuse(document, node, name, "a mapping", error);
    }
    *fields = (struct kvca_fields){0};
    struct kvca_names others = {0};
    kvca_status status = KVCA_OK;
    const struct kvca_node *key = kvca_node_first(document, node);
    while (key && status == KVCA_OK) {
        status = take_field(document, key, schema, fields, &others, error);
        key = kvca_node_next(document, kvca_node_next(document, key));
    }
    kvca_names_free(&others);
    return status;
}
