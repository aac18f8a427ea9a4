/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON to standard output piece by piece. It allocates nothing. */
#ifndef KVCA_TOOL_JSON_H
#define KVCA_TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>

/* The position in a document. All zero is the beginning. */
struct json {
    unsigned depth;
    bool filled; /* the open object or array has a member */
};

/* Each adds to the open object or array. `key` is NULL in an array and at the top. */
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_string(struct json *json, const char *key, const char *text);
void json_integer(struct json *json, const char *key, uint64_t value);
void json_number(struct json *json, const char *key, double value); /* null if not finite: JSON has no such numbers */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* Ends the open object or array. At the top it also ends the line. */
void json_end_object(struct json *json);
void json_end_array(struct json *json);

#endif
