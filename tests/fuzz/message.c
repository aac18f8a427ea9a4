/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <inttypes.h>

void message_spoil(kvca_error *error)
{
    memset(error, 0xa5, sizeof *error);
    error->size = sizeof *error;
}

/* Reads a well-formed UTF-8 character (The Unicode Standard, table 3-7). Returns its length, or 0 if there is none. */
static size_t read_character(const unsigned char *text, uint32_t *character)
{
    static const struct {
        unsigned char first, last; /* of the first byte */
        unsigned char least, most; /* of the second one */
        size_t length;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    size_t form = 0;
    while (form < COUNT(forms) && !(text[0] >= forms[form].first && text[0] <= forms[form].last)) {
        form++;
    }
    if (form == COUNT(forms)) {
        return 0;
    }
    size_t length = forms[form].length;
    *character = length == 1 ? text[0] : text[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        unsigned char least = i == 1 ? forms[form].least : 0x80;
        unsigned char most = i == 1 ? forms[form].most : 0xbf;
        if (text[i] < least || text[i] > most) { /* true for the terminator, too */
            return 0;
        }
        *character = *character << 6 | (text[i] & 0x3f);
    }
    return length;
}

static void check_printable(const char *message)
{
    const unsigned char *at = (const unsigned char *)message;
    while (*at != '\0') {
        uint32_t character = 0;
        size_t length = read_character(at, &character);
        if (length == 0) {
            fail_msg("not UTF-8 from byte %td on: %s", at - (const unsigned char *)message, message);
        }
        bool control = character < 0x20 || (character >= 0x7f && character < 0xa0);
        bool turns = (character >= 0x202a && character <= 0x202e) || (character >= 0x2066 && character <= 0x2069);
        bool breaks = character == 0x2028 || character == 0x2029;
        if (control || turns || breaks) {
            fail_msg("U+%04" PRIX32 " stands in: %s", character, message);
        }
        at += length;
    }
}

/* What ends a line: \n in all texts; in YAML also \r; and for libyaml also the line ends of Unicode. */
enum line_ends { UNIX_ENDS, YAML_ENDS, UNICODE_ENDS };

static size_t end_of_line(const char *text, size_t size, size_t at, enum line_ends ends)
{
    size_t left = size - at;
    if (text[at] == '\n') {
        return 1;
    }
    if (ends != UNIX_ENDS && text[at] == '\r') {
        return left > 1 && text[at + 1] == '\n' ? 2 : 1;
    }
    if (ends == UNICODE_ENDS && left >= 2 && memcmp(text + at, "\xc2\x85", 2) == 0) {
        return 2;
    }
    bool separates =
        left >= 3 && (memcmp(text + at, "\xe2\x80\xa8", 3) == 0 || memcmp(text + at, "\xe2\x80\xa9", 3) == 0);
    return ends == UNICODE_ENDS && separates ? 3 : 0;
}

/* Whether line and column are those of a character of the text, or of the place behind the last one. */
static bool is_inside(const char *text, size_t size, enum line_ends ends, size_t line, size_t column)
{
    size_t at = 0;
    for (size_t passed = 1; passed < line; passed++) {
        size_t length = 0;
        while (at < size && length == 0) {
            length = end_of_line(text, size, at, ends);
            at += length > 0 ? length : 1;
        }
        if (length == 0) {
            return false;
        }
    }
    size_t columns = 1;
    while (at < size && end_of_line(text, size, at, ends) == 0) {
        columns += ((unsigned char)text[at++] & 0xc0) != 0x80;
    }
    return column >= 1 && column <= columns;
}

static void check_place(const kvca_error *error, const char *text, size_t size)
{
    if (error->line == 0) {
        assert_int_equal(error->column, 0);
        return;
    }
    bool inside = false;
    for (int ends = UNIX_ENDS; ends <= UNICODE_ENDS; ends++) {
        inside = inside || is_inside(text, size, (enum line_ends)ends, error->line, error->column);
    }
    if (!inside) {
        fail_msg("the text has no such place: %s", error->message);
    }
}

static size_t prefix_of(const kvca_error *error, const char *name, char *prefix, size_t room)
{
    int length = error->line == 0 ? snprintf(prefix, room, "%s: ", name)
                                  : snprintf(prefix, room, "%s:%zu:%zu: ", name, error->line, error->column);
    return (size_t)length;
}

void message_check(const kvca_error *error, kvca_status status, const char *name, const char *text, size_t size)
{
    char prefix[sizeof error->message];
    size_t length = prefix_of(error, name, prefix, sizeof prefix);
    assert_int_equal(error->status, status);
    assert_non_null(memchr(error->message, '\0', sizeof error->message));
    if (strncmp(error->message, prefix, length) != 0 || error->message[length] == '\0') {
        fail_msg("does not begin with \"%s\", or ends there: %s", prefix, error->message);
    }
    check_printable(error->message);
    check_place(error, text, size);
}

const char *message_sentence(const kvca_error *error, const char *name)
{
    char prefix[sizeof error->message];
    return error->message + prefix_of(error, name, prefix, sizeof prefix);
}
