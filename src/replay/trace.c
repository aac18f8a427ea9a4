/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads traces. The first line that is not blank shows which of three formats a trace has:
 *
 *     TIMESTAMP,ContextTokens,GeneratedTokens          the Azure LLM inference trace of 2023
 *     2023-11-16 18:17:03.9799600,4808,10
 *
 *     arrival_s,prompt_tokens,output_tokens            plain CSV
 *     0.25,4808,10
 *
 *     {"timestamp": 250, "input_length": 4808, "output_length": 10, ...}        Mooncake, in milliseconds
 */
#include "replay/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/fields.h"
#include "config/scalar.h"
#include "program/fail.h"
#include "program/input.h"
#include "replay/trace_field.h"

#define TRACE_MAX_BYTES ((size_t)1 << 30)

/* Enough for the hash_ids of the longest prompt in a Mooncake trace, even with blocks of 16 tokens. */
#define LINE_MAX_BYTES ((size_t)16 << 20)

#define FIRST_ROOM ((size_t)1024)

enum column { ARRIVAL, PROMPT, OUTPUT, COLUMNS };

struct entry {
    struct replay_arrival arrival;
    uint64_t prompt_tokens;
    uint64_t output_tokens;
    size_t index; /* in the file, from 0 */
};

struct format {
    const char *header; /* the first line; NULL if every line is a JSON object */
    const char *names[COLUMNS];
    double units_per_second; /* of arrival.number */
    /* For CSV: */
    bool (*read_arrival)(const struct replay_field *field, struct replay_arrival *arrival);
    const char *arrival_accepted;
};

struct reading {
    const char *name;
    const char *at; /* the rest of the text */
    const char *end;
    struct replay_field line; /* the current line, without its end */
    size_t line_number;
    const struct format *format;
    struct entry *entries;
    size_t count;
    size_t room;
    kvca_error *error;
};

/* Counts characters: in UTF-8, bytes that continue a character are not counted. */
static size_t column_of(const struct reading *reading, const char *place)
{
    size_t column = 1;
    for (const char *at = reading->line.text; at < place; at++) {
        column += ((unsigned char)*at & 0xc0) != 0x80;
    }
    return column;
}

static kvca_status refuse(const struct reading *reading, const char *place, const char *format, ...)
    KVCA_PRINTF(3, 4);

/* Fails because of what is at `place` in the current line. */
static kvca_status refuse(const struct reading *reading, const char *place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    kvca_error_vset(reading->error, KVCA_ERR_CONFIG, reading->name, reading->line_number, column_of(reading, place),
                    format, arguments);
    va_end(arguments);
    return KVCA_ERR_CONFIG;
}

static bool is_blank_character(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_blank(const struct replay_field *line)
{
    for (size_t i = 0; i < line->length; i++) {
        if (!is_blank_character(line->text[i])) {
            return false;
        }
    }
    return true;
}

/* Moves to the next line that is not blank. Returns false if there is none. */
static bool next_line(struct reading *reading)
{
    while (reading->at < reading->end) {
        const char *start = reading->at;
        const char *newline = memchr(start, '\n', (size_t)(reading->end - start));
        const char *stop = newline ? newline : reading->end;
        reading->at = newline ? newline + 1 : reading->end;
        if (stop > start && stop[-1] == '\r') {
            stop--;
        }
        reading->line = (struct replay_field){start, (size_t)(stop - start)};
        reading->line_number++;
        if (!is_blank(&reading->line)) {
            return true;
        }
    }
    return false;
}

static const struct format AZURE = {
    .header = "TIMESTAMP,ContextTokens,GeneratedTokens",
    .names = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
    .units_per_second = 1,
    .read_arrival = replay_field_date,
    .arrival_accepted = REPLAY_DATE_ACCEPTED,
};
static const struct format PLAIN = {
    .header = "arrival_s,prompt_tokens,output_tokens",
    .names = {"arrival_s", "prompt_tokens", "output_tokens"},
    .units_per_second = 1,
    .read_arrival = replay_field_seconds,
    .arrival_accepted = REPLAY_SECONDS_ACCEPTED,
};
static const struct format MOONCAKE = {
    .names = {"timestamp", "input_length", "output_length"},
    .units_per_second = 1000,
};
static const struct kvca_schema MOONCAKE_SCHEMA = {"key of a request", MOONCAKE.names, COLUMNS, true};

static kvca_status split_line(const struct reading *reading, struct replay_field fields[COLUMNS])
{
    const char *at = reading->line.text;
    const char *end = at + reading->line.length;
    for (int column = 0; column < COLUMNS; column++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        if ((comma != NULL) != (column < COLUMNS - 1)) { /* one field too many or too few */
            return refuse(reading, comma ? comma + 1 : end, "a line must have the 3 fields %s; found \"%s\"",
                          reading->format->header, kvca_excerpt(reading->line.text, reading->line.length).text);
        }
        const char *stop = comma ? comma : end;
        fields[column] = (struct replay_field){at, (size_t)(stop - at)};
        at = comma ? comma + 1 : end;
    }
    return KVCA_OK;
}

static kvca_status refuse_field(const struct reading *reading, enum column column, const struct replay_field *field,
                                const char *accepted)
{
    return refuse(reading, field->text, "%s must be %s; found \"%s\"", reading->format->names[column], accepted,
                  kvca_excerpt(field->text, field->length).text);
}

static kvca_status read_csv(const struct reading *reading, struct entry *entry)
{
    struct replay_field fields[COLUMNS];
    kvca_status status = split_line(reading, fields);
    if (status != KVCA_OK) {
        return status;
    }
    if (!reading->format->read_arrival(&fields[ARRIVAL], &entry->arrival)) {
        return refuse_field(reading, ARRIVAL, &fields[ARRIVAL], reading->format->arrival_accepted);
    }
    if (!replay_field_count(&fields[PROMPT], &entry->prompt_tokens)) {
        return refuse_field(reading, PROMPT, &fields[PROMPT], REPLAY_COUNT_ACCEPTED);
    }
    if (!replay_field_count(&fields[OUTPUT], &entry->output_tokens)) {
        return refuse_field(reading, OUTPUT, &fields[OUTPUT], REPLAY_COUNT_ACCEPTED);
    }
    return KVCA_OK;
}

static kvca_status read_milliseconds(const struct kvca_document *document, const struct kvca_node *node,
                                     double *milliseconds, kvca_error *error)
{
    enum kvca_scalar_type type = kvca_scalar_type(node);
    bool number = type == KVCA_SCALAR_INTEGER || type == KVCA_SCALAR_FLOAT;
    if (number && kvca_scalar_double(node, milliseconds) != KVCA_OK) {
        return kvca_error_no_memory(error, document->name);
    }
    if (number && *milliseconds >= 0 && *milliseconds <= REPLAY_MOST_SECONDS * 1000) {
        return KVCA_OK;
    }
    return kvca_fields_refuse(document, node, MOONCAKE.names[ARRIVAL], REPLAY_MILLISECONDS_ACCEPTED, error);
}

static kvca_status read_tokens(const struct kvca_document *document, enum column column, const struct kvca_node *node,
                               uint64_t *count, kvca_error *error)
{
    bool integer = kvca_scalar_type(node) == KVCA_SCALAR_INTEGER && kvca_scalar_uint64(node, count);
    if (integer && *count <= REPLAY_MOST_TOKENS) {
        return KVCA_OK;
    }
    return kvca_fields_refuse(document, node, MOONCAKE.names[column], REPLAY_COUNT_ACCEPTED, error);
}

static kvca_status find_values(const struct kvca_document *document, struct kvca_fields *fields, kvca_error *error)
{
    const char *const *names = MOONCAKE.names;
    const struct kvca_node *root = kvca_document_root(document);
    kvca_status status = kvca_fields_read(document, root, "a line", &MOONCAKE_SCHEMA, fields, error);
    for (int column = 0; column < COLUMNS && status == KVCA_OK; column++) {
        if (!fields->values[column]) {
            status = kvca_fields_fail(document, root, error, "this object has no %s; %s, %s and %s are needed",
                                      names[column], names[ARRIVAL], names[PROMPT], names[OUTPUT]);
        }
    }
    return status;
}

static kvca_status read_values(const struct kvca_document *document, struct entry *entry, kvca_error *error)
{
    struct kvca_fields fields;
    kvca_status status = find_values(document, &fields, error);
    if (status == KVCA_OK) {
        status = read_milliseconds(document, fields.values[ARRIVAL], &entry->arrival.number, error);
    }
    if (status == KVCA_OK) {
        status = read_tokens(document, PROMPT, fields.values[PROMPT], &entry->prompt_tokens, error);
    }
    if (status == KVCA_OK) {
        status = read_tokens(document, OUTPUT, fields.values[OUTPUT], &entry->output_tokens, error);
    }
    return status;
}

/* The current line without its leading blanks. */
static struct replay_field indented(const struct reading *reading)
{
    struct replay_field rest = reading->line;
    while (is_blank_character(*rest.text)) {
        rest.text++;
        rest.length--;
    }
    return rest;
}

/*
 * Reads the current line as YAML, which includes JSON. So it also accepts some lines that are not JSON, such as
 * {timestamp: 0, input_length: 1, output_length: 2}. libyaml refuses some JSON: \u escapes of surrogates, and keys of
 * more than 1024 characters.
 */
static kvca_status read_object(const struct reading *reading, struct entry *entry)
{
    const struct replay_field object = indented(reading);
    if (*object.text != '{') {
        return refuse(reading, object.text, "each line must be a JSON object; found \"%s\"",
                      kvca_excerpt(object.text, object.length).text);
    }
    const struct kvca_source source = {
        .name = reading->name,
        .text = object.text,
        .size = object.length,
        .line = reading->line_number,
        .column = column_of(reading, object.text),
    };
    struct kvca_document document;
    kvca_status status = kvca_document_read(&document, &source, LINE_MAX_BYTES, reading->error);
    if (status == KVCA_OK) {
        status = read_values(&document, entry, reading->error);
        kvca_document_free(&document);
    }
    return status;
}

static kvca_status read_entry(const struct reading *reading, struct entry *entry)
{
    return reading->format->header ? read_csv(reading, entry) : read_object(reading, entry);
}

static struct entry *add_entry(struct reading *reading)
{
    if (reading->count == reading->room) {
        reading->room *= 2;
        reading->entries = program_resize(reading->entries, reading->room * sizeof *reading->entries);
    }
    struct entry *entry = &reading->entries[reading->count];
    *entry = (struct entry){.index = reading->count};
    reading->count++;
    return entry;
}

/* Reads the current line and all lines after it. */
static kvca_status read_entries(struct reading *reading)
{
    kvca_status status = KVCA_OK;
    bool more = true;
    while (more && status == KVCA_OK) {
        struct entry *entry = add_entry(reading);
        status = read_entry(reading, entry);
        more = next_line(reading);
    }
    return status;
}

static bool line_is(const struct reading *reading, const char *text)
{
    return reading->line.length == strlen(text) && memcmp(reading->line.text, text, reading->line.length) == 0;
}

/* The format that begins with the current line, or NULL. */
static const struct format *find_format(const struct reading *reading)
{
    if (*indented(reading).text == '{') {
        return &MOONCAKE;
    }
    if (line_is(reading, AZURE.header)) {
        return &AZURE;
    }
    return line_is(reading, PLAIN.header) ? &PLAIN : NULL;
}

/* `found` ends the sentence "a trace must begin with ...; found". */
static kvca_status refuse_format(const struct reading *reading, const char *found)
{
    return refuse(reading, reading->line.text,
                  "a trace must begin with the line %s (Azure LLM inference trace), the line %s (plain CSV), or a "
                  "JSON object with %s, %s and %s (Mooncake, one a line); found %s",
                  AZURE.header, PLAIN.header, MOONCAKE.names[ARRIVAL], MOONCAKE.names[PROMPT], MOONCAKE.names[OUTPUT],
                  found);
}

static kvca_status read_trace(struct reading *reading)
{
    if (!next_line(reading)) {
        reading->line_number = 1;
        reading->line = (struct replay_field){reading->end, 0};
        return refuse_format(reading, "nothing");
    }
    reading->format = find_format(reading);
    if (!reading->format) {
        char found[sizeof(struct kvca_excerpt) + 2];
        snprintf(found, sizeof found, "\"%s\"", kvca_excerpt(reading->line.text, reading->line.length).text);
        return refuse_format(reading, found);
    }
    if (reading->format->header && !next_line(reading)) {
        return refuse(reading, reading->line.text, "this trace has no requests; at least one is needed");
    }
    return read_entries(reading);
}

static int compare_arrivals(const struct replay_arrival *a, const struct replay_arrival *b)
{
    if (a->nanoseconds != b->nanoseconds) {
        return a->nanoseconds < b->nanoseconds ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    int order = compare_arrivals(&x->arrival, &y->arrival);
    if (order != 0) {
        return order;
    }
    return x->index < y->index ? -1 : 1;
}

/* Counts the entries that come after an entry with a later arrival. */
static size_t count_unsorted(const struct entry *entries, size_t count)
{
    size_t unsorted = 0;
    const struct replay_arrival *latest = &entries[0].arrival;
    for (size_t i = 1; i < count; i++) {
        int order = compare_arrivals(&entries[i].arrival, latest);
        unsorted += order < 0;
        latest = order > 0 ? &entries[i].arrival : latest;
    }
    return unsorted;
}

/* The seconds from the first arrival to another. The difference is taken in the file's unit, so it is rounded once. */
static double seconds_between(const struct format *format, const struct replay_arrival *first,
                              const struct replay_arrival *other)
{
    return (double)(other->nanoseconds - first->nanoseconds) / 1e9 +
           (other->number - first->number) / format->units_per_second;
}

static void make_trace(const struct reading *reading, struct replay_trace *trace)
{
    struct entry *entries = reading->entries;
    size_t count = reading->count;
    size_t unsorted = count_unsorted(entries, count);
    if (unsorted > 0) {
        qsort(entries, count, sizeof *entries, compare_entries);
    }
    struct replay_request *requests = program_resize(NULL, count * sizeof *requests);
    for (size_t i = 0; i < count; i++) {
        requests[i] = (struct replay_request){
            .arrival_s = seconds_between(reading->format, &entries[0].arrival, &entries[i].arrival),
            .prompt_tokens = entries[i].prompt_tokens,
            .output_tokens = entries[i].output_tokens,
        };
    }
    *trace = (struct replay_trace){.requests = requests, .count = count, .unsorted = unsorted};
}

kvca_status replay_trace_read(const char *text, size_t size, const char *name, struct replay_trace *trace,
                              kvca_error *error)
{
    if (size > TRACE_MAX_BYTES) {
        return kvca_error_set(error, KVCA_ERR_TOO_LARGE, name, 0, 0, "a trace may be at most %zu bytes long",
                              TRACE_MAX_BYTES);
    }
    static const char byte_order_mark[] = "\xef\xbb\xbf"; /* spreadsheets write it */
    size_t mark = strlen(byte_order_mark);
    bool marked = size >= mark && memcmp(text, byte_order_mark, mark) == 0;
    struct reading reading = {
        .name = name,
        .at = marked ? text + mark : text,
        .end = text + size,
        .room = FIRST_ROOM,
        .error = error,
    };
    reading.entries = program_resize(NULL, reading.room * sizeof *reading.entries);
    kvca_status status = read_trace(&reading);
    if (status == KVCA_OK) {
        make_trace(&reading, trace);
    }
    free(reading.entries);
    return status;
}

kvca_status replay_trace_load(const char *argument, struct replay_trace *trace, kvca_error *error)
{
    char *text;
    size_t size;
    kvca_status status = program_read_input(argument, TRACE_MAX_BYTES, &text, &size, error);
    if (status != KVCA_OK) {
        return status;
    }
    status = replay_trace_read(text, size, program_input_name(argument), trace, error);
    free(text);
    return status;
}

void replay_trace_free(struct replay_trace *trace)
{
    free(trace->requests);
    *trace = (struct replay_trace){.requests = NULL};
}
