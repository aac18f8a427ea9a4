/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tool/tool.h"

#define INDENT 2

static void begin_line(const struct json *json)
{
    printf("\n%*s", (int)json->depth * INDENT, "");
}

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20) {
            printf("\\u%04x", (unsigned)byte);
            continue;
        }
        if (byte == '"' || byte == '\\') {
            putchar('\\');
        }
        putchar(byte);
    }
    putchar('"');
}

static void begin_value(struct json *json, const char *key)
{
    if (json->filled) {
        putchar(',');
    }
    if (json->depth > 0) {
        begin_line(json);
    }
    if (key) {
        print_text(key);
        fputs(": ", stdout);
    }
    json->filled = true;
}

static void open_with(struct json *json, const char *key, char bracket)
{
    begin_value(json, key);
    putchar(bracket);
    json->depth++;
    json->filled = false;
}

static void close_with(struct json *json, char bracket)
{
    json->depth--;
    if (json->filled) {
        begin_line(json);
    }
    putchar(bracket);
    if (json->depth == 0) {
        putchar('\n');
    }
    json->filled = true;
}

void json_object(struct json *json, const char *key)
{
    open_with(json, key, '{');
}

void json_end_object(struct json *json)
{
    close_with(json, '}');
}

void json_array(struct json *json, const char *key)
{
    open_with(json, key, '[');
}

void json_end_array(struct json *json)
{
    close_with(json, ']');
}

void json_string(struct json *json, const char *key, const char *text)
{
    begin_value(json, key);
    print_text(text);
}

void json_integer(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    printf("%" PRIu64, value);
}

void json_number(struct json *json, const char *key, double value)
{
    begin_value(json, key);
    fputs(isfinite(value) ? tool_number(value).text : "null", stdout);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", stdout);
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    fputs("null", stdout);
}
