/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ranks file has one of two forms. Its keys are the columns of kvca_ranks:
 *
 *     request_blocks: 40                            request_blocks: 40
 *     ranks:                                        decode_cost_blocks: [990, 960]
 *       - {decode_cost_blocks: 990, ...}            active_requests: [0, 3]
 *       - {decode_cost_blocks: 960, ...}            ...
 *
 * The first form may also be just the list, without `ranks:`.
 */
#include "tool/ranks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "config/fields.h"
#include "config/scalar.h"
#include "program/fail.h"
#include "program/input.h"
#include "rule/rule.h"

enum column {
    WORKER_ID,
    DP_RANK,
    DECODE_COST_BLOCKS,
    ACTIVE_REQUESTS,
    TOTAL_KV_BLOCKS,
    PREFERRED_TAINT_MULTIPLIER,
    COLUMNS, /* how many there are */
    REQUEST_BLOCKS = COLUMNS,
    RANKS,
    KEYS
};

static const char *const NAMES[KEYS] = {
    [WORKER_ID] = "worker_id",
    [DP_RANK] = "dp_rank",
    [DECODE_COST_BLOCKS] = "decode_cost_blocks",
    [ACTIVE_REQUESTS] = "active_requests",
    [TOTAL_KV_BLOCKS] = "total_kv_blocks",
    [PREFERRED_TAINT_MULTIPLIER] = "preferred_taint_multiplier",
    [REQUEST_BLOCKS] = "request_blocks",
    [RANKS] = "ranks",
};
static const struct kvca_schema RANK_SCHEMA = {"column of a rank", NAMES, COLUMNS, false};
static const struct kvca_schema FILE_SCHEMA = {"key of a ranks file", NAMES, KEYS, false};

struct reading {
    const struct kvca_document *document;
    struct ranks_file *file;
    bool workers_given; /* whether the first rank of a list has a worker_id */
    kvca_error *error;
};

static kvca_status refuse(const struct reading *reading, const struct kvca_node *node, const char *name,
                          const char *accepted)
{
    return kvca_fields_refuse(reading->document, node, name, accepted, reading->error);
}

static size_t count_children(const struct kvca_document *document, const struct kvca_node *list)
{
    size_t count = 0;
    const struct kvca_node *node = kvca_node_first(document, list);
    for (; node; node = kvca_node_next(document, node)) {
        count++;
    }
    return count;
}

static void make_columns(struct ranks_file *file, size_t count)
{
    file->worker_id = program_resize(NULL, count * sizeof *file->worker_id);
    file->dp_rank = program_resize(NULL, count * sizeof *file->dp_rank);
    file->decode_cost_blocks = program_resize(NULL, count * sizeof *file->decode_cost_blocks);
    file->active_requests = program_resize(NULL, count * sizeof *file->active_requests);
    file->total_kv_blocks = program_resize(NULL, count * sizeof *file->total_kv_blocks);
    file->preferred_taint_multiplier = program_resize(NULL, count * sizeof *file->preferred_taint_multiplier);
    for (size_t row = 0; row < count; row++) {
        file->worker_id[row] = row;
        file->dp_rank[row] = 0;
        file->total_kv_blocks[row] = 0;
        file->preferred_taint_multiplier[row] = 1.0;
    }
    file->ranks.size = sizeof file->ranks;
    file->ranks.count = count;
    file->ranks.worker_id = file->worker_id;
    file->ranks.dp_rank = file->dp_rank;
    file->ranks.decode_cost_blocks = file->decode_cost_blocks;
    file->ranks.active_requests = file->active_requests;
    file->ranks.total_kv_blocks = file->total_kv_blocks;
    file->ranks.preferred_taint_multiplier = file->preferred_taint_multiplier;
}

/* Reads an integer from 0 to `most`. `accepted` says the same in words. */
static kvca_status read_integer(const struct reading *reading, const struct kvca_node *node, const char *name,
                                uint64_t most, const char *accepted, uint64_t *value)
{
    bool integer = kvca_scalar_type(node) == KVCA_SCALAR_INTEGER && kvca_scalar_uint64(node, value);
    return integer && *value <= most ? KVCA_OK : refuse(reading, node, name, accepted);
}

static kvca_status read_uint64(const struct reading *reading, const struct kvca_node *node, const char *name,
                               uint64_t *value)
{
    return read_integer(reading, node, name, UINT64_MAX, "an integer from 0 to 18446744073709551615", value);
}

static kvca_status read_dp_rank(const struct reading *reading, const struct kvca_node *node, uint32_t *dp_rank)
{
    uint64_t value = 0;
    kvca_status status =
        read_integer(reading, node, NAMES[DP_RANK], UINT32_MAX, "an integer from 0 to 4294967295", &value);
    *dp_rank = (uint32_t)value;
    return status;
}

static kvca_status read_capacity(const struct reading *reading, const struct kvca_node *node, uint64_t *blocks)
{
    if (kvca_scalar_type(node) == KVCA_SCALAR_NULL) {
        return KVCA_OK; /* not reported */
    }
    return read_integer(reading, node, NAMES[TOTAL_KV_BLOCKS], UINT64_MAX,
                        "an integer from 0 to 18446744073709551615, or null when not reported", blocks);
}

static kvca_status read_multiplier(const struct reading *reading, const struct kvca_node *node, double *multiplier)
{
    enum kvca_scalar_type type = kvca_scalar_type(node);
    bool number = type == KVCA_SCALAR_INTEGER || type == KVCA_SCALAR_FLOAT;
    if (number && kvca_scalar_double(node, multiplier) != KVCA_OK) {
        return kvca_error_no_memory(reading->error, reading->document->name);
    }
    if (number && kvca_is_multiplier(*multiplier)) {
        return KVCA_OK;
    }
    return refuse(reading, node, NAMES[PREFERRED_TAINT_MULTIPLIER], "a finite number above 0");
}

/* Reads one value, in either form of the file. */
static kvca_status read_cell(const struct reading *reading, enum column column, size_t row,
                             const struct kvca_node *node)
{
    struct ranks_file *file = reading->file;
    switch (column) {
    case WORKER_ID:
        return read_uint64(reading, node, NAMES[column], &file->worker_id[row]);
    case DP_RANK:
        return read_dp_rank(reading, node, &file->dp_rank[row]);
    case DECODE_COST_BLOCKS:
        return read_uint64(reading, node, NAMES[column], &file->decode_cost_blocks[row]);
    case ACTIVE_REQUESTS:
        return read_uint64(reading, node, NAMES[column], &file->active_requests[row]);
    case TOTAL_KV_BLOCKS:
        return read_capacity(reading, node, &file->total_kv_blocks[row]);
    default: /* PREFERRED_TAINT_MULTIPLIER */
        return read_multiplier(reading, node, &file->preferred_taint_multiplier[row]);
    }
}

static kvca_status check_required(const struct reading *reading, const struct kvca_fields *fields,
                                  const struct kvca_node *node, const char *owner)
{
    for (int column = DECODE_COST_BLOCKS; column <= ACTIVE_REQUESTS; column++) {
        if (!fields->values[column]) {
            return kvca_fields_fail(reading->document, node, reading->error,
                                    "%s no %s; decode_cost_blocks and active_requests are needed", owner,
                                    NAMES[column]);
        }
    }
    return KVCA_OK;
}

/* The default worker_id, the row, could be equal to the worker_id of another rank. */
static kvca_status check_identity(struct reading *reading, size_t row, const struct kvca_fields *fields,
                                  const struct kvca_node *node)
{
    bool given = fields->values[WORKER_ID] != NULL;
    if (row == 0) {
        reading->workers_given = given;
    }
    if (given != reading->workers_given) {
        return kvca_fields_fail(
            reading->document, node, reading->error,
            "this rank has %s worker_id, but the first rank has %s; give it for all ranks or none",
            given ? "a" : "no", given ? "none" : "one");
    }
    return KVCA_OK;
}

static kvca_status read_rank(struct reading *reading, size_t row, const struct kvca_node *node)
{
    struct kvca_fields fields;
    kvca_status status = kvca_fields_read(reading->document, node, "a rank", &RANK_SCHEMA, &fields, reading->error);
    if (status == KVCA_OK) {
        status = check_required(reading, &fields, node, "this rank has");
    }
    if (status == KVCA_OK) {
        status = check_identity(reading, row, &fields, node);
    }
    for (int column = 0; column < COLUMNS && status == KVCA_OK; column++) {
        if (fields.values[column]) {
            status = read_cell(reading, (enum column)column, row, fields.values[column]);
        }
    }
    return status;
}

static kvca_status read_rows(struct reading *reading, const struct kvca_node *list)
{
    size_t count = count_children(reading->document, list);
    if (list->kind != KVCA_NODE_LIST || list->tagged || count == 0) {
        return refuse(reading, list, NAMES[RANKS], "a list of at least one rank");
    }
    make_columns(reading->file, count);
    kvca_status status = KVCA_OK;
    size_t row = 0;
    const struct kvca_node *node = kvca_node_first(reading->document, list);
    for (; node && status == KVCA_OK; node = kvca_node_next(reading->document, node)) {
        status = read_rank(reading, row++, node);
    }
    return status;
}

static kvca_status read_column(const struct reading *reading, enum column column, const struct kvca_node *list)
{
    const struct kvca_document *document = reading->document;
    if (list->kind != KVCA_NODE_LIST || list->tagged) {
        return refuse(reading, list, NAMES[column], "a list with a value for each rank");
    }
    size_t count = count_children(document, list);
    if (count != reading->file->ranks.count) {
        return kvca_fields_fail(document, list, reading->error, "%s has %zu values, but decode_cost_blocks has %zu",
                                NAMES[column], count, reading->file->ranks.count);
    }
    kvca_status status = KVCA_OK;
    size_t row = 0;
    const struct kvca_node *node = kvca_node_first(document, list);
    for (; node && status == KVCA_OK; node = kvca_node_next(document, node)) {
        status = read_cell(reading, column, row++, node);
    }
    return status;
}

static kvca_status read_columns(const struct reading *reading, const struct kvca_fields *fields,
                                const struct kvca_node *root)
{
    kvca_status status = check_required(reading, fields, root, "this ranks file has no list of ranks and");
    if (status != KVCA_OK) {
        return status;
    }
    const struct kvca_node *first = fields->values[DECODE_COST_BLOCKS];
    size_t count = count_children(reading->document, first);
    if (first->kind != KVCA_NODE_LIST || count == 0) {
        return refuse(reading, first, NAMES[DECODE_COST_BLOCKS], "a list with a value for each rank");
    }
    make_columns(reading->file, count);
    for (int column = 0; column < COLUMNS && status == KVCA_OK; column++) {
        if (fields->values[column]) {
            status = read_column(reading, (enum column)column, fields->values[column]);
        }
    }
    return status;
}

/* A file with a list of ranks has no columns beside the list. */
static kvca_status refuse_mixture(const struct reading *reading, const struct kvca_fields *fields)
{
    for (int column = 0; column < COLUMNS; column++) {
        if (fields->keys[column]) {
            return kvca_fields_fail(reading->document, fields->keys[column], reading->error,
                                    "%s stands beside ranks; give it for each rank in the list", NAMES[column]);
        }
    }
    return KVCA_OK;
}

static kvca_status read_mapping(struct reading *reading, const struct kvca_node *root)
{
    struct kvca_fields fields;
    kvca_status status =
        kvca_fields_read(reading->document, root, "a ranks file", &FILE_SCHEMA, &fields, reading->error);
    if (status == KVCA_OK && fields.values[REQUEST_BLOCKS]) {
        status = read_uint64(reading, fields.values[REQUEST_BLOCKS], NAMES[REQUEST_BLOCKS],
                             &reading->file->ranks.request_blocks);
    }
    if (status != KVCA_OK) {
        return status;
    }
    if (!fields.values[RANKS]) {
        return read_columns(reading, &fields, root);
    }
    status = refuse_mixture(reading, &fields);
    return status == KVCA_OK ? read_rows(reading, fields.values[RANKS]) : status;
}

struct identity {
    uint64_t worker_id;
    uint32_t dp_rank;
    size_t row;
};

static int compare_identities(const void *a, const void *b)
{
    const struct identity *x = a;
    const struct identity *y = b;
    if (x->worker_id != y->worker_id) {
        return x->worker_id < y->worker_id ? -1 : 1;
    }
    if (x->dp_rank != y->dp_rank) {
        return x->dp_rank < y->dp_rank ? -1 : 1;
    }
    return x->row < y->row ? -1 : 1;
}

static kvca_status check_duplicates(const struct reading *reading)
{
    const struct ranks_file *file = reading->file;
    size_t count = file->ranks.count;
    struct identity *identities = program_resize(NULL, count * sizeof *identities);
    for (size_t row = 0; row < count; row++) {
        identities[row] = (struct identity){file->worker_id[row], file->dp_rank[row], row};
    }
    qsort(identities, count, sizeof *identities, compare_identities);
    kvca_status status = KVCA_OK;
    for (size_t i = 1; i < count && status == KVCA_OK; i++) {
        const struct identity *a = &identities[i - 1];
        const struct identity *b = &identities[i];
        if (a->worker_id == b->worker_id && a->dp_rank == b->dp_rank) {
            status = kvca_fields_fail(reading->document, kvca_document_root(reading->document), reading->error,
                                      "rows %zu and %zu are the same rank, worker %" PRIu64 " and dp_rank %" PRIu32,
                                      a->row, b->row, a->worker_id, a->dp_rank);
        }
    }
    free(identities);
    return status;
}

static kvca_status read_root(struct reading *reading)
{
    const struct kvca_node *root = kvca_document_root(reading->document);
    if (root->kind == KVCA_NODE_LIST) {
        return read_rows(reading, root);
    }
    if (root->kind == KVCA_NODE_MAPPING) {
        return read_mapping(reading, root);
    }
    return refuse(reading, root, "a ranks file", "a mapping or a list of ranks");
}

kvca_status ranks_file_read(const char *text, size_t size, const char *name, struct ranks_file *file,
                            kvca_error *error)
{
    *file = (struct ranks_file){.ranks = {.count = 0}};
    const struct kvca_source source = {.name = name, .text = text, .size = size};
    struct kvca_document document;
    kvca_status status = kvca_document_read(&document, &source, RANKS_MAX_BYTES, error);
    if (status != KVCA_OK) {
        return status;
    }
    struct reading reading = {.document = &document, .file = file, .error = error};
    status = read_root(&reading);
    status = status == KVCA_OK ? check_duplicates(&reading) : status;
    kvca_document_free(&document);
    if (status != KVCA_OK) {
        ranks_file_free(file);
    }
    return status;
}

kvca_status ranks_file_load(const char *argument, struct ranks_file *file, kvca_error *error)
{
    char *text;
    size_t size;
    kvca_status status = program_read_input(argument, RANKS_MAX_BYTES, &text, &size, error);
    if (status != KVCA_OK) {
        return status;
    }
    status = ranks_file_read(text, size, program_input_name(argument), file, error);
    free(text);
    return status;
}

void ranks_file_free(struct ranks_file *file)
{
    free(file->worker_id);
    free(file->dp_rank);
    free(file->decode_cost_blocks);
    free(file->active_requests);
    free(file->total_kv_blocks);
    free(file->preferred_taint_multiplier);
}
