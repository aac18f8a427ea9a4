/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only file that uses libyaml. It builds its own tree from libyaml's events. Events distinguish plain from quoted
 * scalars and show explicit tags, and they let us bound the depth before a tree is built. libyaml's own tree does not.
 */
#include "config/document.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "config/names.h"

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* gcc 12's -fanalyzer wrongly reports document->nodes as leaked. valgrind and LeakSanitizer find no leak. */
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/* A list or mapping that is being read. */
struct level {
    uint32_t node;
    uint32_t last; /* the last child so far; 0: none */
};

struct reader {
    yaml_parser_t parser;
    struct kvca_source source;
    size_t characters; /* in the source */
    struct kvca_document *document;
    struct kvca_names anchors;
    struct level levels[KVCA_CONFIG_MAX_DEPTH];
    size_t depth;
    kvca_error *error;
};

static kvca_status out_of_memory(struct reader *reader)
{
    return kvca_error_no_memory(reader->error, reader->source.name);
}

/* Copies text into the document and terminates it. The copy does not move. */
static kvca_status keep(struct reader *reader, const void *text, size_t length, const char **kept)
{
    struct kvca_document *document = reader->document;
    if (length >= document->text_room - document->text_used) {
        return out_of_memory(reader); /* kvca_document_read() made room for the longest text */
    }
    char *copy = document->text + document->text_used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    document->text_used += length + 1;
    *kept = copy;
    return KVCA_OK;
}

static kvca_status make_room(struct kvca_document *document)
{
    if (document->count < document->room) {
        return KVCA_OK;
    }
    size_t room = document->room == 0 ? 64 : document->room * 2;
    struct kvca_node *grown = realloc(document->nodes, room * sizeof *grown);
    if (!grown) {
        return KVCA_ERR_NO_MEMORY;
    }
    document->nodes = grown;
    document->room = room;
    return KVCA_OK;
}

/* Adds the newest node to the list or mapping that is being read. */
static void link_newest(struct reader *reader)
{
    if (reader->depth == 0) {
        return;
    }
    struct kvca_document *document = reader->document;
    struct level *level = &reader->levels[reader->depth - 1];
    uint32_t newest = (uint32_t)document->count - 1;
    if (level->last == 0) {
        document->nodes[level->node].first = newest;
    } else {
        document->nodes[level->last].next = newest;
    }
    level->last = newest;
}

static size_t count_characters(const char *text, size_t size)
{
    size_t characters = 0;
    for (size_t i = 0; i < size; i++) {
        characters += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return characters;
}

struct place {
    size_t line;
    size_t column;
};

/* The place of a byte. libyaml reports some faults only by their offset. */
static struct place place_of(const struct kvca_source *source, size_t offset)
{
    const char *text = source->text;
    if (source->line != 0) {
        return (struct place){source->line, source->column + count_characters(text, offset)};
    }
    struct place place = {1, 1};
    for (size_t i = 0; i < offset; i++) {
        bool ends_line = text[i] == '\n' || (text[i] == '\r' && (i + 1 == source->size || text[i + 1] != '\n'));
        bool continues = ((unsigned char)text[i] & 0xc0) == 0x80;
        place.line += ends_line;
        place.column = ends_line ? 1 : place.column + !continues;
    }
    return place;
}

/*
 * The place that a libyaml mark means. libyaml counts one line too many at the end of a text without a final newline.
 * In a line of a file it also counts characters such as a carriage return as ends of lines.
 */
static struct place place_of_mark(const struct reader *reader, const yaml_mark_t *mark)
{
    if (mark->index >= reader->characters) {
        return place_of(&reader->source, reader->source.size);
    }
    if (reader->source.line != 0) {
        return (struct place){reader->source.line, reader->source.column + mark->index};
    }
    return (struct place){mark->line + 1, mark->column + 1};
}

static kvca_status fail(const struct reader *reader, kvca_status status, struct place place, const char *format, ...)
    KVCA_PRINTF(4, 5);

static kvca_status fail(const struct reader *reader, kvca_status status, struct place place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    kvca_error_vset(reader->error, status, reader->source.name, place.line, place.column, format, arguments);
    va_end(arguments);
    return status;
}

/* Appends a copy of `content` as a node that begins at `mark`. */
static kvca_status add_node(struct reader *reader, yaml_mark_t mark, struct kvca_node content)
{
    if (make_room(reader->document) != KVCA_OK) {
        return out_of_memory(reader);
    }
    struct place place = place_of_mark(reader, &mark);
    content.line = (uint32_t)place.line;
    content.column = (uint32_t)place.column;
    content.next = 0;
    reader->document->nodes[reader->document->count++] = content;
    link_newest(reader);
    return KVCA_OK;
}

/* Gives the newest node a name. In YAML a later anchor replaces an earlier one of the same name. */
static kvca_status add_anchor(struct reader *reader, const yaml_char_t *anchor)
{
    if (!anchor) {
        return KVCA_OK;
    }
    size_t newest = reader->document->count - 1;
    size_t length = strlen((const char *)anchor);
    struct kvca_name *name = kvca_names_find(&reader->anchors, (const char *)anchor, length);
    if (name) {
        name->node = newest;
        return KVCA_OK;
    }
    const char *text = NULL;
    kvca_status status = keep(reader, anchor, length, &text);
    if (status == KVCA_OK && kvca_names_add(&reader->anchors, text, length, newest) != KVCA_OK) {
        status = out_of_memory(reader);
    }
    return status;
}

static kvca_status add_scalar(struct reader *reader, const yaml_event_t *event)
{
    struct kvca_node scalar = {
        .kind = KVCA_NODE_SCALAR,
        .plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
        .block = event->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
                 event->data.scalar.style == YAML_FOLDED_SCALAR_STYLE,
        .tagged = event->data.scalar.tag != NULL,
        .length = event->data.scalar.length,
    };
    kvca_status status = keep(reader, event->data.scalar.value, scalar.length, &scalar.text);
    if (status == KVCA_OK) {
        status = add_node(reader, event->start_mark, scalar);
    }
    return status == KVCA_OK ? add_anchor(reader, event->data.scalar.anchor) : status;
}

static kvca_status open_node(struct reader *reader, const yaml_event_t *event, enum kvca_node_kind kind, bool tagged,
                             const yaml_char_t *anchor)
{
    if (reader->depth == KVCA_CONFIG_MAX_DEPTH) {
        return fail(reader, KVCA_ERR_TOO_LARGE, place_of_mark(reader, &event->start_mark),
                    "lists and mappings may nest at most %d levels deep; this one is deeper", KVCA_CONFIG_MAX_DEPTH);
    }
    struct kvca_node node = {.kind = kind, .tagged = tagged, .open = true};
    kvca_status status = add_node(reader, event->start_mark, node);
    if (status != KVCA_OK) {
        return status;
    }
    reader->levels[reader->depth++] = (struct level){.node = (uint32_t)reader->document->count - 1};
    return add_anchor(reader, anchor);
}

static void close_node(struct reader *reader)
{
    reader->document->nodes[reader->levels[--reader->depth].node].open = false;
}

static kvca_status add_alias(struct reader *reader, const yaml_event_t *event)
{
    const char *anchor = (const char *)event->data.alias.anchor;
    const struct kvca_name *name = kvca_names_find(&reader->anchors, anchor, strlen(anchor));
    const char *fault = NULL;
    if (!name) {
        fault = "no anchor of that name comes before it";
    } else if (reader->document->nodes[name->node].open) {
        fault = "it stands inside what it refers to";
    }
    if (fault) {
        return fail(reader, KVCA_ERR_YAML, place_of_mark(reader, &event->start_mark),
                    "the alias *%s cannot be followed: %s", kvca_excerpt(anchor, strlen(anchor)).text, fault);
    }
    return add_node(reader, event->start_mark, reader->document->nodes[name->node]);
}

static kvca_status start_document(struct reader *reader, const yaml_event_t *event)
{
    if (reader->document->count > 1) {
        return fail(reader, KVCA_ERR_CONFIG, place_of_mark(reader, &event->start_mark),
                    "a second document begins here; %s must hold exactly one",
                    reader->source.line == 0 ? "a file" : "a line");
    }
    return KVCA_OK;
}

static kvca_status take_event(struct reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return start_document(reader, event);
    case YAML_SCALAR_EVENT:
        return add_scalar(reader, event);
    case YAML_ALIAS_EVENT:
        return add_alias(reader, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(reader, event, KVCA_NODE_LIST, event->data.sequence_start.tag != NULL,
                         event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return open_node(reader, event, KVCA_NODE_MAPPING, event->data.mapping_start.tag != NULL,
                         event->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_node(reader);
        return KVCA_OK;
    default:
        return KVCA_OK;
    }
}

/* What messages call the text. */
static const char *subject(const struct reader *reader)
{
    return reader->source.line == 0 ? "the document" : "this line";
}

static kvca_status fail_in_bytes(struct reader *reader)
{
    size_t problem = reader->parser.problem_offset;
    size_t size = reader->source.size;
    return fail(reader, KVCA_ERR_YAML, place_of(&reader->source, problem < size ? problem : size),
                "%s is not text in UTF-8: %s", subject(reader), reader->parser.problem);
}

static kvca_status fail_in_syntax(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *wanted = reader->source.line == 0 ? "YAML" : "one JSON object";
    struct place place = place_of_mark(reader, &parser->problem_mark);
    if (!parser->context) {
        return fail(reader, KVCA_ERR_YAML, place, "%s is not %s: %s", subject(reader), wanted, parser->problem);
    }
    struct place context = place_of_mark(reader, &parser->context_mark);
    return fail(reader, KVCA_ERR_YAML, place, "%s is not %s: %s, %s that begins in line %zu, column %zu",
                subject(reader), wanted, parser->problem, parser->context, context.line, context.column);
}

static kvca_status fail_in_parser(struct reader *reader)
{
    switch (reader->parser.error) {
    case YAML_MEMORY_ERROR:
    case YAML_NO_ERROR: /* libyaml 0.2.5 reports this if memory runs out for the handle of a verbatim tag */
        return out_of_memory(reader);
    case YAML_READER_ERROR:
        return fail_in_bytes(reader);
    default:
        return fail_in_syntax(reader);
    }
}

static kvca_status read_events(struct reader *reader)
{
    bool ended = false;
    while (!ended) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader->parser, &event)) {
            return fail_in_parser(reader);
        }
        kvca_status status = take_event(reader, &event);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (status != KVCA_OK) {
            return status;
        }
    }
    if (reader->document->count == 1) {
        return fail(reader, KVCA_ERR_CONFIG, place_of(&reader->source, 0),
                    "%s is empty: nothing but white space and comments", subject(reader));
    }
    return KVCA_OK;
}

static kvca_status parse(struct reader *reader)
{
    if (!yaml_parser_initialize(&reader->parser)) {
        return out_of_memory(reader);
    }
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)reader->source.text, reader->source.size);
    kvca_status status = read_events(reader);
    yaml_parser_delete(&reader->parser);
    kvca_names_free(&reader->anchors);
    return status;
}

static kvca_status check_size(const struct reader *reader, size_t max_bytes)
{
    if (reader->source.size <= max_bytes) {
        return KVCA_OK;
    }
    return fail(reader, KVCA_ERR_TOO_LARGE, place_of(&reader->source, max_bytes),
                "%s may be at most %zu bytes long; here it passes that", subject(reader), max_bytes);
}

/* libyaml compares each %TAG directive with all before it, which is slow. We accept no tags, so no file needs them. */
static kvca_status check_directives(const struct reader *reader)
{
    static const char directive[] = "%TAG";
    const size_t length = sizeof directive - 1;
    const char *text = reader->source.text;
    for (size_t i = 0; i + length <= reader->source.size; i++) {
        bool begins_line = i == 0 || text[i - 1] == '\n' || text[i - 1] == '\r';
        if (begins_line && memcmp(text + i, directive, length) == 0) {
            return fail(reader, KVCA_ERR_CONFIG, place_of(&reader->source, i),
                        "the directive %%TAG is not accepted, since explicit tags are not");
        }
    }
    return KVCA_OK;
}

/* Columns are counted without a byte order mark. */
static void skip_byte_order_mark(struct kvca_source *source)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (source->size >= sizeof mark - 1 && memcmp(source->text, mark, sizeof mark - 1) == 0) {
        source->text += sizeof mark - 1;
        source->size -= sizeof mark - 1;
    }
}

static kvca_status read_document(struct reader *reader)
{
    struct kvca_document *document = reader->document;
    /* A scalar can be longer than its source: "\L" is two bytes and becomes three, which is the worst case. An omitted
     * value needs one byte, its terminator, and has at least a byte of source such as a colon. */
    size_t size = reader->source.size;
    size_t text_room = size + size / 2 + size + 2;
    *document =
        (struct kvca_document){.name = reader->source.name, .text = malloc(text_room), .text_room = text_room};
    if (!document->text || make_room(document) != KVCA_OK) {
        return out_of_memory(reader);
    }
    document->nodes[document->count++] = (struct kvca_node){0}; /* index 0 means none */
    return parse(reader);
}

kvca_status kvca_document_read(struct kvca_document *document, const struct kvca_source *source, size_t max_bytes,
                               kvca_error *error)
{
    struct reader reader = {.source = *source, .document = document, .error = error};
    kvca_status status = check_size(&reader, max_bytes);
    if (status != KVCA_OK) {
        return status;
    }
    skip_byte_order_mark(&reader.source);
    status = check_directives(&reader);
    if (status != KVCA_OK) {
        return status;
    }
    reader.characters = count_characters(reader.source.text, reader.source.size);
    status = read_document(&reader);
    if (status != KVCA_OK) {
        kvca_document_free(document);
    }
    return status;
}

void kvca_document_free(struct kvca_document *document)
{
    free(document->nodes);
    free(document->text);
    *document = (struct kvca_document){0};
}

const struct kvca_node *kvca_document_root(const struct kvca_document *document)
{
    return &document->nodes[1];
}

const struct kvca_node *kvca_node_first(const struct kvca_document *document, const struct kvca_node *parent)
{
    return parent->first == 0 ? NULL : &document->nodes[parent->first];
}

const struct kvca_node *kvca_node_next(const struct kvca_document *document, const struct kvca_node *node)
{
    return node->next == 0 ? NULL : &document->nodes[node->next];
}

bool kvca_node_is(const struct kvca_node *node, const char *text)
{
    return node->kind == KVCA_NODE_SCALAR && node->length == strlen(text) &&
           memcmp(node->text, text, node->length) == 0;
}
