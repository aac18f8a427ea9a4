/* SPDX-License-Identifier: Apache-2.0 */
#include "config/error.h"

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 256

/* Longer texts are not compared with the known ones, which are all much shorter. */
#define NEAREST_LENGTH 48

kvca_status kvca_error_vset(kvca_error *error, kvca_status status, const char *name, size_t line, size_t column,
                            const char *format, va_list arguments)
{
    if (!error) {
        return status;
    }
    *error = (kvca_error){.size = sizeof *error, .status = status, .line = line, .column = column};
    char *message = error->message;
    size_t room = sizeof error->message;
    int used = snprintf(message, room, "%s:", kvca_shown_name(name).text);
    if (line != 0) {
        used += snprintf(message + used, room - (size_t)used, "%zu:%zu:", line, column);
    }
    used += snprintf(message + used, room - (size_t)used, " ");
    vsnprintf(message + used, room - (size_t)used, format, arguments);
    return status;
}

kvca_status kvca_error_set(kvca_error *error, kvca_status status, const char *name, size_t line, size_t column,
                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    kvca_error_vset(error, status, name, line, column, format, arguments);
    va_end(arguments);
    return status;
}

kvca_status kvca_error_no_memory(kvca_error *error, const char *name)
{
    return kvca_error_set(error, KVCA_ERR_NO_MEMORY, name, 0, 0, "%s", kvca_strerror(KVCA_ERR_NO_MEMORY));
}

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The bytes of a UTF-8 character that begins with `first`; 0 if none can. */
static size_t width_of(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* UTF-8 must use the shortest form, and must not encode surrogates. */
static bool is_well_formed(uint32_t character, size_t width)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = character >= 0xd800 && character <= 0xdfff;
    return character >= least[width] && character <= 0x10ffff && !surrogate;
}

/* Reads one UTF-8 character. Returns its length in bytes, or 0 if the text is not UTF-8. */
static size_t read_character(const char *text, size_t length, uint32_t *character)
{
    unsigned char first = (unsigned char)text[0];
    size_t width = width_of(first);
    if (width == 0 || width > length) {
        return 0;
    }
    *character = width == 1 ? first : first & (0xffU >> (width + 1));
    for (size_t i = 1; i < width; i++) {
        if (!continues(text[i])) {
            return 0;
        }
        *character = *character << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return is_well_formed(*character, width) ? width : 0;
}

/* False for control characters, and for those that reverse, hide or break the text around them. */
static bool is_printable(uint32_t character)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } unprintable[] = {
        {0, 0x1f}, {0x7f, 0x9f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
    };
    for (size_t i = 0; i < sizeof unprintable / sizeof unprintable[0]; i++) {
        if (character >= unprintable[i].first && character <= unprintable[i].last) {
            return false;
        }
    }
    return true;
}

/* Writes the next character as messages show it. Returns how many bytes of `text` it used. */
static size_t show_character(const char *text, size_t length, char shown[16])
{
    uint32_t character = 0;
    size_t width = read_character(text, length, &character);
    if (width == 0) {
        snprintf(shown, 16, "<%02X>", (unsigned)(unsigned char)text[0]);
        return 1;
    }
    if (is_printable(character)) {
        memcpy(shown, text, width);
        shown[width] = '\0';
    } else {
        snprintf(shown, 16, "<U+%04X>", (unsigned)character);
    }
    return width;
}

/* Writes as much of `text` as fits, and "..." if something is left out. */
static void show(const char *text, size_t length, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < length;) {
        char shown[16];
        i += show_character(text + i, length - i, shown);
        if (used + strlen(shown) > size - sizeof "...") {
            memcpy(buffer + used, "...", sizeof "...");
            return;
        }
        memcpy(buffer + used, shown, strlen(shown) + 1);
        used += strlen(shown);
    }
}

struct kvca_excerpt kvca_excerpt(const char *text, size_t length)
{
    struct kvca_excerpt excerpt = {""};
    show(text, length, excerpt.text, sizeof excerpt.text);
    return excerpt;
}

struct kvca_shown_name kvca_shown_name(const char *name)
{
    struct kvca_shown_name shown = {""};
    size_t length = strlen(name);
    size_t used = 0;
    if (length > NAME_SHOWN) {
        name += length - NAME_SHOWN;
        while (continues(*name)) {
            name++;
        }
        memcpy(shown.text, "...", sizeof "...");
        used = strlen(shown.text);
    }
    show(name, strlen(name), shown.text + used, sizeof shown.text - used);
    return shown;
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c + ('a' - 'A'));
    }
    return c;
}

/* Capitals, and a dash for an underscore, do not count as slips. */
static bool alike(char a, char b)
{
    return lower(a) == b || (a == '-' && b == '_') || (a == '_' && b == '-');
}

/* The Levenshtein distance. */
static size_t distance(const char *a, size_t a_length, const char *b)
{
    size_t row[NEAREST_LENGTH + 1];
    for (size_t i = 0; i <= a_length; i++) {
        row[i] = i;
    }
    for (size_t j = 1; b[j - 1] != '\0'; j++) {
        size_t diagonal = row[0];
        row[0] = j;
        for (size_t i = 1; i <= a_length; i++) {
            size_t replaced = diagonal + !alike(a[i - 1], b[j - 1]);
            size_t shorter = (row[i] < row[i - 1] ? row[i] : row[i - 1]) + 1;
            diagonal = row[i];
            row[i] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[a_length];
}

size_t kvca_slips(const char *text, size_t length, const char *known)
{
    if (length == 0 || length > NEAREST_LENGTH || strlen(known) > NEAREST_LENGTH) {
        return SIZE_MAX;
    }
    size_t slips = distance(text, length, known);
    return slips <= length / 3 + 1 ? slips : SIZE_MAX; /* more slips than that make another word */
}

const char *kvca_nearest(const char *text, size_t length, const char *const *known, size_t count)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t slips = kvca_slips(text, length, known[i]);
        if (slips < least) {
            least = slips;
            nearest = known[i];
        }
    }
    return nearest;
}
