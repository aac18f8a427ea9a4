/* SPDX-License-Identifier: Apache-2.0 */
/* The core schema of YAML 1.2.2, section 10.3.2 "Tag Resolution". */
#define _POSIX_C_SOURCE 200809L /* uselocale */

#include "config/scalar.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_any_of(const struct kvca_node *node, const char *const *texts)
{
    for (; *texts; texts++) {
        if (kvca_node_is(node, *texts)) {
            return true;
        }
    }
    return false;
}

static bool is_null(const struct kvca_node *node)
{
    static const char *const texts[] = {"", "~", "null", "Null", "NULL", NULL};
    return is_any_of(node, texts);
}

static bool is_true(const struct kvca_node *node)
{
    static const char *const texts[] = {"true", "True", "TRUE", NULL};
    return is_any_of(node, texts);
}

static bool is_false(const struct kvca_node *node)
{
    static const char *const texts[] = {"false", "False", "FALSE", NULL};
    return is_any_of(node, texts);
}

static bool is_nan(const struct kvca_node *node)
{
    static const char *const texts[] = {".nan", ".NaN", ".NAN", NULL};
    return is_any_of(node, texts);
}

/* A text that is read from left to right. */
struct cursor {
    const char *at;
    const char *end;
};

static bool take_any(struct cursor *cursor, const char *set)
{
    if (cursor->at == cursor->end || *cursor->at == '\0' || !strchr(set, *cursor->at)) {
        return false;
    }
    cursor->at++;
    return true;
}

static size_t take_all(struct cursor *cursor, const char *set)
{
    size_t taken = 0;
    while (take_any(cursor, set)) {
        taken++;
    }
    return taken;
}

static bool take_text(struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, text, length) != 0) {
        return false;
    }
    cursor->at += length;
    return true;
}

static struct cursor whole(const struct kvca_node *node)
{
    return (struct cursor){.at = node->text, .end = node->text + node->length};
}

static bool is_infinity(const struct kvca_node *node)
{
    struct cursor cursor = whole(node);
    take_any(&cursor, "+-");
    bool taken = take_text(&cursor, ".inf") || take_text(&cursor, ".Inf") || take_text(&cursor, ".INF");
    return taken && cursor.at == cursor.end;
}

static const char DECIMAL[] = "0123456789";
static const char OCTAL[] = "01234567";
static const char HEXADECIMAL[] = "0123456789abcdefABCDEF";

/* The base of an integer, or 0 if the node is not an integer. Puts `digits` on the first digit. */
static unsigned integer_base(const struct kvca_node *node, struct cursor *digits)
{
    *digits = whole(node);
    unsigned base = take_text(digits, "0x") ? 16 : take_text(digits, "0o") ? 8 : 10;
    if (base == 10) {
        take_any(digits, "+-");
    }
    struct cursor cursor = *digits;
    size_t taken = take_all(&cursor, base == 16 ? HEXADECIMAL : base == 8 ? OCTAL : DECIMAL);
    return taken > 0 && cursor.at == cursor.end ? base : 0;
}

static bool is_decimal(const struct kvca_node *node)
{
    struct cursor cursor = whole(node);
    take_any(&cursor, "+-");
    size_t digits = take_all(&cursor, DECIMAL);
    if (take_any(&cursor, ".")) {
        digits += take_all(&cursor, DECIMAL);
    }
    if (digits > 0 && take_any(&cursor, "eE")) {
        take_any(&cursor, "+-");
        digits = take_all(&cursor, DECIMAL);
    }
    return digits > 0 && cursor.at == cursor.end;
}

enum kvca_scalar_type kvca_scalar_type(const struct kvca_node *node)
{
    struct cursor digits;
    if (node->kind != KVCA_NODE_SCALAR || node->tagged) {
        return KVCA_SCALAR_NONE;
    }
    if (!node->plain) {
        return KVCA_SCALAR_STRING;
    }
    if (is_null(node)) {
        return KVCA_SCALAR_NULL;
    }
    if (is_true(node) || is_false(node)) {
        return KVCA_SCALAR_BOOL;
    }
    if (integer_base(node, &digits) != 0) {
        return KVCA_SCALAR_INTEGER;
    }
    return is_decimal(node) || is_infinity(node) || is_nan(node) ? KVCA_SCALAR_FLOAT : KVCA_SCALAR_STRING;
}

bool kvca_scalar_bool(const struct kvca_node *node)
{
    return is_true(node);
}

bool kvca_scalar_uint64(const struct kvca_node *node, uint64_t *value)
{
    struct cursor digits;
    int base = (int)integer_base(node, &digits);
    errno = 0;
    unsigned long long number = strtoull(digits.at, NULL, base);
    bool negative = node->text[0] == '-' && number != 0;
    if (errno == ERANGE || number > UINT64_MAX || negative) {
        return false;
    }
    *value = number;
    return true;
}

/* strtod() expects the decimal point of the locale, so the locale of this thread is replaced during the call. */
static kvca_status read_decimal(const char *text, double *value)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return KVCA_ERR_NO_MEMORY;
    }
    locale_t before = uselocale(c_locale);
    *value = strtod(text, NULL);
    uselocale(before);
    freelocale(c_locale);
    return KVCA_OK;
}

kvca_status kvca_scalar_double(const struct kvca_node *node, double *value)
{
    struct cursor digits;
    uint64_t integer;
    if (is_nan(node)) {
        *value = (double)NAN;
        return KVCA_OK;
    }
    if (is_infinity(node)) {
        *value = node->text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
        return KVCA_OK;
    }
    if (integer_base(node, &digits) == 8) { /* strtod() does not read octal */
        *value = kvca_scalar_uint64(node, &integer) ? (double)integer : HUGE_VAL;
        return KVCA_OK;
    }
    return read_decimal(node->text, value);
}

/* Describes a node that has no text to show; NULL if there is a text. */
static const char *kind_of(const struct kvca_node *node)
{
    if (node->tagged) {
        return "a value with an explicit tag, which is not accepted";
    }
    if (node->kind == KVCA_NODE_LIST) {
        return node->first == 0 ? "an empty list" : "a list";
    }
    if (node->kind == KVCA_NODE_MAPPING) {
        return node->first == 0 ? "an empty mapping" : "a mapping";
    }
    return node->plain && node->length == 0 ? "nothing" : NULL;
}

struct kvca_found kvca_found(const struct kvca_node *node)
{
    struct kvca_found found;
    const char *kind = kind_of(node);
    if (kind) {
        snprintf(found.text, sizeof found.text, "%s", kind);
        return found;
    }
    struct kvca_excerpt shown = kvca_excerpt(node->text, node->length);
    if (node->plain) {
        snprintf(found.text, sizeof found.text, "%s", shown.text);
    } else {
        snprintf(found.text, sizeof found.text, "the %s text \"%s\"", node->block ? "block" : "quoted", shown.text);
    }
    return found;
}
