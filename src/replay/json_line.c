/* SPDX-License-Identifier: Apache-2.0 */
#include "json_line.h"

#include <string.h>

/* A line that is read from left to right, up to its first fault. */
struct cursor {
    const char *at;
    const char *end;
    const char *fault; /* what is wrong at `at`; NULL as long as nothing is */
    const char *const *keys;
    size_t key_count;
    struct replay_field *values; /* of the keys */
};

static bool fail(struct cursor *cursor, const char *what)
{
    cursor->fault = what;
    return false;
}

static bool is_next(const struct cursor *cursor, char wanted)
{
    return cursor->at < cursor->end && *cursor->at == wanted;
}

static bool is_next_of(const struct cursor *cursor, const char *set)
{
    return cursor->at < cursor->end && *cursor->at != '\0' && strchr(set, *cursor->at);
}

static bool take(struct cursor *cursor, char wanted)
{
    bool taken = is_next(cursor, wanted);
    cursor->at += taken;
    return taken;
}

static size_t take_all(struct cursor *cursor, const char *set)
{
    const char *start = cursor->at;
    while (is_next_of(cursor, set)) {
        cursor->at++;
    }
    return (size_t)(cursor->at - start);
}

static void skip_space(struct cursor *cursor)
{
    take_all(cursor, " \t\r\n");
}

static const char DIGITS[] = "0123456789";
static const char HEXADECIMAL[] = "0123456789abcdefABCDEF";

/* What follows a backslash. */
static bool skip_escape(struct cursor *cursor)
{
    if (!take(cursor, 'u')) {
        bool known = is_next_of(cursor, "\"\\/bfnrt");
        cursor->at += known;
        return known || fail(cursor, "no such escape sequence");
    }
    for (int i = 0; i < 4; i++) {
        if (!is_next_of(cursor, HEXADECIMAL)) {
            return fail(cursor, "four hexadecimal digits expected");
        }
        cursor->at++;
    }
    return true;
}

/* What follows the opening quote; `content` is what stands between the two. */
static bool skip_string(struct cursor *cursor, struct replay_field *content)
{
    content->text = cursor->at;
    while (!is_next(cursor, '"')) {
        if (cursor->at == cursor->end || (unsigned char)*cursor->at < ' ') {
            return fail(cursor, "a control character, or the end, in a text");
        }
        if (take(cursor, '\\')) {
            if (!skip_escape(cursor)) {
                return false;
            }
        } else {
            cursor->at++;
        }
    }
    content->length = (size_t)(cursor->at - content->text);
    cursor->at++;
    return true;
}

static bool skip_digits(struct cursor *cursor)
{
    return take_all(cursor, DIGITS) > 0 || fail(cursor, "digit expected");
}

static bool skip_number(struct cursor *cursor)
{
    if (!take(cursor, '0') && !skip_digits(cursor)) { /* no digit follows a 0 in front */
        return false;
    }
    if (take(cursor, '.') && !skip_digits(cursor)) {
        return false;
    }
    if (is_next_of(cursor, "eE")) {
        cursor->at++;
        cursor->at += is_next_of(cursor, "+-");
        return skip_digits(cursor);
    }
    return true;
}

static bool skip_word(struct cursor *cursor)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(cursor->end - cursor->at) >= length && memcmp(cursor->at, words[i], length) == 0) {
            cursor->at += length;
            return true;
        }
    }
    return fail(cursor, "value expected");
}

static bool skip_scalar(struct cursor *cursor)
{
    struct replay_field content;
    if (take(cursor, '"')) {
        return skip_string(cursor, &content);
    }
    bool negative = take(cursor, '-');
    if (is_next_of(cursor, DIGITS) || (negative && !is_next(cursor, 'I'))) {
        return skip_number(cursor);
    }
    return skip_word(cursor);
}

/* The key of a value, up to the value. */
static bool skip_key(struct cursor *cursor, struct replay_field *key)
{
    skip_space(cursor);
    if (!take(cursor, '"')) {
        return fail(cursor, "quoted object property name expected");
    }
    if (!skip_string(cursor, key)) {
        return false;
    }
    skip_space(cursor);
    return take(cursor, ':') || fail(cursor, "object property name separator ':' expected");
}

/* Goes on to the next value of an object or list, or past its end: `*more` tells which. */
static bool skip_separator(struct cursor *cursor, char closing, bool *more)
{
    skip_space(cursor);
    *more = take(cursor, ',');
    if (*more || take(cursor, closing)) {
        return true;
    }
    return fail(cursor,
                closing == '}' ? "object value separator ',' expected" : "array value separator ',' expected");
}

static unsigned hexadecimal(const char *digits, size_t count)
{
    unsigned value = 0;
    for (size_t i = 0; i < count; i++) {
        char digit = digits[i];
        value = value * 16 + (unsigned)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return value;
}

/* Whether a text spells a name of letters and underscores: any of them may be escaped. */
static bool spells(const struct replay_field *content, const char *name)
{
    size_t at = 0;
    for (; *name; name++) {
        if (at == content->length) {
            return false;
        }
        unsigned character = (unsigned char)content->text[at++];
        if (character == '\\' && content->text[at] == 'u') {
            character = hexadecimal(content->text + at + 1, 4);
            at += 5;
        }
        if (character != (unsigned char)*name) {
            return false;
        }
    }
    return at == content->length;
}

/* Keeps the value of a key of the outermost object, if it is one that is asked for. */
static void keep(const struct cursor *cursor, const struct replay_field *key, const struct replay_field *value)
{
    for (size_t i = 0; i < cursor->key_count; i++) {
        if (spells(key, cursor->keys[i])) {
            cursor->values[i] = *value;
        }
    }
}

static bool skip_value(struct cursor *cursor, int depth);

/* One value of an object or list, with its key. */
static bool skip_member(struct cursor *cursor, char closing, int depth)
{
    struct replay_field key;
    if (closing == '}' && !skip_key(cursor, &key)) {
        return false;
    }
    skip_space(cursor);
    struct replay_field value = {.text = cursor->at};
    if (!skip_value(cursor, depth)) {
        return false;
    }
    value.length = (size_t)(cursor->at - value.text);
    if (depth == 1) {
        keep(cursor, &key, &value);
    }
    return true;
}

/* What follows the opening bracket of an object or list, which `closing` tells; it is the one at this depth. */
static bool skip_members(struct cursor *cursor, char closing, int depth)
{
    skip_space(cursor);
    bool more = !take(cursor, closing);
    while (more) {
        if (!skip_member(cursor, closing, depth) || !skip_separator(cursor, closing, &more)) {
            return false;
        }
    }
    return true;
}

/* A value with `depth` levels open around it. */
static bool skip_value(struct cursor *cursor, int depth)
{
    bool object = is_next(cursor, '{');
    if (!object && !is_next(cursor, '[')) {
        return skip_scalar(cursor);
    }
    if (depth == REPLAY_JSON_DEPTH) {
        return fail(cursor, "nesting too deep");
    }
    cursor->at++;
    return skip_members(cursor, object ? '}' : ']', depth + 1);
}

bool replay_json_line(const struct replay_field *line, const char *const *keys, size_t count,
                      struct replay_field *values, struct replay_json_fault *fault)
{
    struct cursor cursor = {
        .at = line->text, .end = line->text + line->length, .keys = keys, .key_count = count, .values = values};
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct replay_field){NULL, 0};
    }
    bool read = take(&cursor, '{') ? skip_members(&cursor, '}', 1) : fail(&cursor, "'{' expected");
    if (read) {
        skip_space(&cursor);
        read = cursor.at == cursor.end || fail(&cursor, "something follows the object");
    }
    *fault = (struct replay_json_fault){cursor.at, cursor.fault};
    return read;
}
