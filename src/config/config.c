/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the tree of a policy file (document.c) into parameters. docs/configuration.md has the grammar. */
#include <kvca/config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/fields.h"
#include "config/file.h"
#include "config/names.h"
#include "config/policy_file.h"
#include "config/scalar.h"
#include "size.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define WORKER_SELECTION "worker_selection"
#define DEFAULT_SELECTOR "default"

/* The top-level keys that we read: the parameters, in the order of enum kvca_parameter, then worker_selection. */
static const char *const PARAMETERS[] = {
    [KVCA_CAPACITY_FRACTION] = "capacity_fraction",
    [KVCA_COUNT_PRIORITY] = "count_priority",
    [KVCA_DECODE_ACTIVE_REQUEST_WEIGHT] = "decode_active_request_weight",
    [KVCA_CAPACITY_BLOCKS] = "capacity_blocks",
    [KVCA_PARAMETERS] = WORKER_SELECTION,
};
static const struct kvca_schema PARAMETER_SCHEMA = {"parameter", PARAMETERS, KVCA_PARAMETERS, false};
static const struct kvca_schema BARE_SCHEMA = {"parameter, and the file has no " WORKER_SELECTION, PARAMETERS,
                                               KVCA_PARAMETERS + 1, false};

static const char *const ACCEPTED[KVCA_PARAMETERS] = {
    [KVCA_CAPACITY_FRACTION] = "a number above 0 and at most 1 (0.95 for 95 %), or null to turn the filter off",
    [KVCA_COUNT_PRIORITY] = "true or false",
    [KVCA_DECODE_ACTIVE_REQUEST_WEIGHT] = "a finite number from 0 on",
    [KVCA_CAPACITY_BLOCKS] = "an integer from 1 to 18446744073709551615, or null to leave it unset",
};

/* A document with worker_selection may also have keys of the router. */
static const struct kvca_schema SECTION_SCHEMA = {"section", PARAMETERS, KVCA_PARAMETERS + 1, true};

/* The keys of worker_selection: the roles, in the order of kvca_role, then the instances. */
enum { INSTANCES = 4 };
static const char *const SELECTION[] = {
    [KVCA_ROLE_DECODE] = "decode", [KVCA_ROLE_PREFILL] = "prefill", [KVCA_ROLE_AGGREGATED] = "aggregated",
    [KVCA_ROLE_ENCODE] = "encode", [INSTANCES] = "instances",
};
static const struct kvca_schema SELECTION_SCHEMA = {"key of " WORKER_SELECTION, SELECTION, COUNT(SELECTION), false};

enum { INSTANCE_NAME, INSTANCE_TYPE, INSTANCE_PARAMETERS };
static const char *const INSTANCE[] = {"name", "type", "parameters"};
static const struct kvca_schema INSTANCE_SCHEMA = {"key of an instance", INSTANCE, COUNT(INSTANCE), false};

struct reading {
    const struct kvca_document *document;
    kvca_role role;
    struct kvca_names instances; /* the node of each instance, by name */
    kvca_error *error;
};

const char *kvca_parameter_name(enum kvca_parameter parameter)
{
    return PARAMETERS[parameter];
}

const char *kvca_role_name(kvca_role role)
{
    return (unsigned)role < INSTANCES ? SELECTION[role] : NULL;
}

kvca_status kvca_role_parse(const char *name, kvca_role *role)
{
    if (!name || !role) {
        return KVCA_ERR_NULL;
    }
    for (int i = 0; i < INSTANCES; i++) {
        if (strcmp(name, SELECTION[i]) == 0) {
            *role = (kvca_role)i;
            return KVCA_OK;
        }
    }
    return KVCA_ERR_ROLE;
}

/* Reads a number into a parameter and checks its range. */
static kvca_status read_number(const struct kvca_node *value, double *parameter, const kvca_params *params)
{
    enum kvca_scalar_type type = kvca_scalar_type(value);
    if (type != KVCA_SCALAR_INTEGER && type != KVCA_SCALAR_FLOAT) {
        return KVCA_ERR_CONFIG;
    }
    if (kvca_scalar_double(value, parameter) != KVCA_OK) {
        return KVCA_ERR_NO_MEMORY;
    }
    /* A file says null where kvca_params has infinity. */
    bool accepted = *parameter < HUGE_VAL && kvca_params_validate(params) == KVCA_OK;
    return accepted ? KVCA_OK : KVCA_ERR_CONFIG;
}

static kvca_status read_blocks(const struct kvca_node *value, uint64_t *blocks)
{
    bool accepted =
        kvca_scalar_type(value) == KVCA_SCALAR_INTEGER && kvca_scalar_uint64(value, blocks) && *blocks != 0;
    return accepted ? KVCA_OK : KVCA_ERR_CONFIG;
}

static kvca_status read_value(enum kvca_parameter parameter, const struct kvca_node *value, kvca_params *params)
{
    bool is_null = kvca_scalar_type(value) == KVCA_SCALAR_NULL;
    switch (parameter) {
    case KVCA_CAPACITY_FRACTION:
        params->capacity_fraction = KVCA_NO_CAPACITY_FILTER;
        return is_null ? KVCA_OK : read_number(value, &params->capacity_fraction, params);
    case KVCA_COUNT_PRIORITY:
        if (kvca_scalar_type(value) != KVCA_SCALAR_BOOL) {
            return KVCA_ERR_CONFIG;
        }
        params->count_priority = kvca_scalar_bool(value);
        return KVCA_OK;
    case KVCA_DECODE_ACTIVE_REQUEST_WEIGHT:
        return read_number(value, &params->decode_active_request_weight, params);
    default: /* KVCA_CAPACITY_BLOCKS */
        params->capacity_blocks = 0;
        return is_null ? KVCA_OK : read_blocks(value, &params->capacity_blocks);
    }
}

static kvca_status read_parameters(const struct reading *reading, const struct kvca_node *node,
                                   const struct kvca_schema *schema, struct kvca_policy_file *file)
{
    struct kvca_fields fields;
    kvca_status status = kvca_fields_read(reading->document, node, "parameters", schema, &fields, reading->error);
    *file = (struct kvca_policy_file){.params = KVCA_PARAMS_DEFAULT};
    for (int i = 0; i < KVCA_PARAMETERS && status == KVCA_OK; i++) {
        const struct kvca_node *value = fields.values[i];
        if (!value) {
            continue;
        }
        file->lines[i] = value->line;
        status = read_value((enum kvca_parameter)i, value, &file->params);
        if (status == KVCA_ERR_CONFIG) {
            return kvca_fields_refuse(reading->document, value, PARAMETERS[i], ACCEPTED[i], reading->error);
        }
        if (status != KVCA_OK) {
            return kvca_error_no_memory(reading->error, reading->document->name);
        }
    }
    return status;
}

static bool is_name(const struct kvca_node *node)
{
    return kvca_scalar_type(node) == KVCA_SCALAR_STRING && node->length > 0 && strlen(node->text) == node->length;
}

/* Reads the keys of an instance. A name and a type must be there. */
static kvca_status read_instance_fields(const struct reading *reading, const struct kvca_node *node,
                                        struct kvca_fields *fields)
{
    const struct kvca_document *document = reading->document;
    kvca_status status = kvca_fields_read(document, node, "an instance", &INSTANCE_SCHEMA, fields, reading->error);
    for (int i = INSTANCE_NAME; i <= INSTANCE_TYPE && status == KVCA_OK; i++) {
        const struct kvca_node *value = fields->values[i];
        if (!value) {
            status = kvca_fields_fail(reading->document, node, reading->error,
                                      "this instance has no %s; it needs a name and a type", INSTANCE[i]);
        } else if (!is_name(value)) {
            status =
                kvca_fields_refuse(document, value, INSTANCE[i],
                                   "text, in quotes if it reads like a number, true, false or null", reading->error);
        }
    }
    return status;
}

static kvca_status register_instance(struct reading *reading, const struct kvca_node *node,
                                     const struct kvca_node *name)
{
    if (kvca_node_is(name, DEFAULT_SELECTOR)) {
        return kvca_fields_fail(reading->document, name, reading->error,
                                "an instance cannot be named " DEFAULT_SELECTOR
                                ": that stands for the router's own selector; choose another name");
    }
    const struct kvca_name *first = kvca_names_find(&reading->instances, name->text, name->length);
    if (first) {
        return kvca_fields_fail(reading->document, name, reading->error,
                                "a second instance is named %s; the first is in line %u: rename one of them",
                                kvca_excerpt(name->text, name->length).text,
                                (unsigned)reading->document->nodes[first->node].line);
    }
    if (kvca_names_add(&reading->instances, name->text, name->length, (size_t)(node - reading->document->nodes)) !=
        KVCA_OK) {
        return kvca_error_no_memory(reading->error, reading->document->name);
    }
    return KVCA_OK;
}

/* Reads the parameters of an instance of our type. Other types have other parameters. */
static kvca_status read_instance_parameters(const struct reading *reading, const struct kvca_fields *fields,
                                            struct kvca_policy_file *file)
{
    *file = (struct kvca_policy_file){.params = KVCA_PARAMS_DEFAULT};
    const struct kvca_node *parameters = fields->values[INSTANCE_PARAMETERS];
    if (!parameters || !kvca_node_is(fields->values[INSTANCE_TYPE], KVCA_CONFIG_TYPE)) {
        return KVCA_OK;
    }
    return read_parameters(reading, parameters, &PARAMETER_SCHEMA, file);
}

static kvca_status check_instances(struct reading *reading, const struct kvca_node *list)
{
    if (!list) {
        return KVCA_OK;
    }
    if (list->kind != KVCA_NODE_LIST || list->tagged) {
        return kvca_fields_refuse(reading->document, list, SELECTION[INSTANCES], "a list of instances",
                                  reading->error);
    }
    kvca_status status = KVCA_OK;
    const struct kvca_node *node = kvca_node_first(reading->document, list);
    for (; node && status == KVCA_OK; node = kvca_node_next(reading->document, node)) {
        struct kvca_fields fields;
        struct kvca_policy_file ignored;
        status = read_instance_fields(reading, node, &fields);
        status = status == KVCA_OK ? register_instance(reading, node, fields.values[INSTANCE_NAME]) : status;
        status = status == KVCA_OK ? read_instance_parameters(reading, &fields, &ignored) : status;
    }
    return status;
}

/* The instance name, or `default`, that is most like `name`, for "did you mean". NULL if none is close. */
static const char *nearest_name(const struct reading *reading, const struct kvca_node *list,
                                const struct kvca_node *name)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    const struct kvca_node *node = list ? kvca_node_first(reading->document, list) : NULL;
    for (; node; node = kvca_node_next(reading->document, node)) {
        struct kvca_fields fields;
        bool read = read_instance_fields(reading, node, &fields) == KVCA_OK;
        size_t slips = read ? kvca_slips(name->text, name->length, fields.values[INSTANCE_NAME]->text) : SIZE_MAX;
        if (slips < least) {
            least = slips;
            nearest = fields.values[INSTANCE_NAME]->text;
        }
    }
    return kvca_slips(name->text, name->length, DEFAULT_SELECTOR) < least ? DEFAULT_SELECTOR : nearest;
}

static kvca_status check_selected(const struct reading *reading, const char *role, const struct kvca_node *name,
                                  const struct kvca_node *list)
{
    if (!is_name(name)) {
        return kvca_fields_refuse(reading->document, name, role,
                                  "the name of an instance, or " DEFAULT_SELECTOR " for the router's own selector",
                                  reading->error);
    }
    if (kvca_node_is(name, DEFAULT_SELECTOR) || kvca_names_find(&reading->instances, name->text, name->length)) {
        return KVCA_OK;
    }
    const char *near = nearest_name(reading, list, name);
    return kvca_fields_fail(reading->document, name, reading->error,
                            "%s names the instance %s, but no instance has that name%s%s%s", role,
                            kvca_excerpt(name->text, name->length).text, near ? "; did you mean " : "",
                            near ? kvca_excerpt(near, strlen(near)).text : "", near ? "?" : "");
}

static kvca_status check_roles(const struct reading *reading, const struct kvca_fields *selection)
{
    kvca_status status = KVCA_OK;
    for (int i = 0; i < INSTANCES && status == KVCA_OK; i++) {
        if (selection->values[i]) {
            status = check_selected(reading, SELECTION[i], selection->values[i], selection->values[INSTANCES]);
        }
    }
    return status;
}

static kvca_status not_selected(const struct reading *reading, const struct kvca_node *at, const char *why)
{
    return kvca_error_set(reading->error, KVCA_NOT_SELECTED, reading->document->name, at->line, at->column,
                          "the %s pool is not served by " KVCA_CONFIG_TYPE ": %s", kvca_role_name(reading->role),
                          why);
}

static kvca_status other_type(const struct reading *reading, const struct kvca_node *name,
                              const struct kvca_node *type)
{
    static const char *const ours[] = {KVCA_CONFIG_TYPE};
    char why[192];
    snprintf(why, sizeof why, "the instance %s is of type %s%s", kvca_excerpt(name->text, name->length).text,
             kvca_excerpt(type->text, type->length).text,
             kvca_nearest(type->text, type->length, ours, 1) ? " (is that a slip?)" : "");
    return not_selected(reading, type, why);
}

/* Reads the instance that the role names. The file was checked. `key` is the key worker_selection. */
static kvca_status read_selected(const struct reading *reading, const struct kvca_node *key,
                                 const struct kvca_fields *selection, struct kvca_policy_file *file)
{
    const struct kvca_node *name = selection->values[reading->role];
    if (!name) {
        return not_selected(reading, key, WORKER_SELECTION " names no instance for it");
    }
    if (kvca_node_is(name, DEFAULT_SELECTOR)) {
        return not_selected(reading, name, DEFAULT_SELECTOR " leaves it to the router's own selector");
    }
    struct kvca_fields fields;
    const struct kvca_name *instance = kvca_names_find(&reading->instances, name->text, name->length);
    kvca_status status = read_instance_fields(reading, &reading->document->nodes[instance->node], &fields);
    if (status != KVCA_OK) {
        return status;
    }
    if (!kvca_node_is(fields.values[INSTANCE_TYPE], KVCA_CONFIG_TYPE)) {
        return other_type(reading, name, fields.values[INSTANCE_TYPE]);
    }
    status = read_instance_parameters(reading, &fields, file);
    snprintf(file->instance, sizeof file->instance, "%s", kvca_excerpt(name->text, name->length).text);
    return status;
}

static kvca_status read_selection(struct reading *reading, const struct kvca_node *key,
                                  const struct kvca_node *section, struct kvca_policy_file *file)
{
    struct kvca_fields selection;
    kvca_status status =
        kvca_fields_read(reading->document, section, WORKER_SELECTION, &SELECTION_SCHEMA, &selection, reading->error);
    status = status == KVCA_OK ? check_instances(reading, selection.values[INSTANCES]) : status;
    status = status == KVCA_OK ? check_roles(reading, &selection) : status;
    return status == KVCA_OK ? read_selected(reading, key, &selection, file) : status;
}

static bool has_worker_selection(const struct kvca_document *document, const struct kvca_node *root)
{
    const struct kvca_node *key = kvca_node_first(document, root);
    while (key && !kvca_node_is(key, WORKER_SELECTION)) {
        key = kvca_node_next(document, kvca_node_next(document, key));
    }
    return key != NULL;
}

/* A parameter beside worker_selection would silently have no effect. */
static kvca_status refuse_stray_parameters(const struct reading *reading, const struct kvca_fields *sections)
{
    for (int i = 0; i < KVCA_PARAMETERS; i++) {
        if (sections->keys[i]) {
            return kvca_fields_fail(reading->document, sections->keys[i], reading->error,
                                    "%s has no effect beside " WORKER_SELECTION
                                    "; move it into the parameters of an instance",
                                    PARAMETERS[i]);
        }
    }
    return KVCA_OK;
}

static kvca_status read_root(struct reading *reading, struct kvca_policy_file *file)
{
    const struct kvca_node *root = kvca_document_root(reading->document);
    if (root->kind != KVCA_NODE_MAPPING || root->tagged) {
        return kvca_fields_refuse(reading->document, root, "a policy file",
                                  "a mapping: either of " WORKER_SELECTION " or of the parameters alone",
                                  reading->error);
    }
    if (!has_worker_selection(reading->document, root)) {
        return read_parameters(reading, root, &BARE_SCHEMA, file);
    }
    struct kvca_fields sections;
    kvca_status status =
        kvca_fields_read(reading->document, root, "a policy file", &SECTION_SCHEMA, &sections, reading->error);
    status = status == KVCA_OK ? refuse_stray_parameters(reading, &sections) : status;
    if (status != KVCA_OK) {
        return status;
    }
    return read_selection(reading, sections.keys[KVCA_PARAMETERS], sections.values[KVCA_PARAMETERS], file);
}

kvca_status kvca_policy_file_read(const char *text, size_t size, const char *name, kvca_role role,
                                  struct kvca_policy_file *file, kvca_error *error)
{
    if (!kvca_role_name(role)) {
        return kvca_error_set(error, KVCA_ERR_ROLE, name, 0, 0, "%s", kvca_strerror(KVCA_ERR_ROLE));
    }
    const struct kvca_source source = {.name = name, .text = text, .size = size};
    struct kvca_document document;
    kvca_status status = kvca_document_read(&document, &source, KVCA_CONFIG_MAX_BYTES, error);
    if (status != KVCA_OK) {
        return status;
    }
    struct reading reading = {.document = &document, .role = role, .error = error};
    status = read_root(&reading, file);
    kvca_names_free(&reading.instances);
    kvca_document_free(&document);
    return status;
}

/* Into structures of this library's size, as all functions above. */
static kvca_status load_buffer(const char *text, size_t size, const char *name, kvca_role role, kvca_params *params,
                               kvca_error *error)
{
    struct kvca_policy_file file;
    kvca_status status = kvca_policy_file_read(text, size, name, role, &file, error);
    if (status == KVCA_OK) {
        *params = file.params;
    }
    return status;
}

static kvca_status load_file(const char *path, kvca_role role, kvca_params *params, kvca_error *error)
{
    char *text;
    size_t size;
    kvca_status status = kvca_file_read(path, KVCA_CONFIG_MAX_BYTES, &text, &size, error);
    if (status != KVCA_OK) {
        return status;
    }
    status = load_buffer(text, size, path, role, params, error);
    free(text);
    return status;
}

/* Checks what is handed in; all but its own size an error can tell. */
static kvca_status check_arguments(bool complete, const char *name, const kvca_params *params, kvca_error *error)
{
    kvca_status status = KVCA_ERR_NULL;
    if (complete && name && params) {
        status = kvca_check_params(params);
    }
    return status == KVCA_OK
               ? KVCA_OK
               : kvca_error_set(error, status, name ? name : "(no name)", 0, 0, "%s", kvca_strerror(status));
}

/* Hands out what came of it. */
static kvca_status deliver(kvca_status status, kvca_params *params, const kvca_params *own_params, kvca_error *error,
                           const kvca_error *own_error)
{
    if (status == KVCA_OK) {
        kvca_write_params(params, own_params);
    } else if (error) {
        kvca_write_error(error, own_error);
    }
    return status;
}

kvca_status kvca_config_load_file(const char *path, kvca_role role, kvca_params *params, kvca_error *error)
{
    kvca_params own_params;
    kvca_error own_error;
    if (error && kvca_check_error(error) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    kvca_status status = check_arguments(true, path, params, &own_error);
    status = status == KVCA_OK ? load_file(path, role, &own_params, &own_error) : status;
    return deliver(status, params, &own_params, error, &own_error);
}

kvca_status kvca_config_load_buffer(const char *text, size_t size, const char *name, kvca_role role,
                                    kvca_params *params, kvca_error *error)
{
    kvca_params own_params;
    kvca_error own_error;
    if (error && kvca_check_error(error) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    kvca_status status = check_arguments(text || size == 0, name, params, &own_error);
    status = status == KVCA_OK ? load_buffer(text ? text : "", size, name, role, &own_params, &own_error) : status;
    return deliver(status, params, &own_params, error, &own_error);
}
