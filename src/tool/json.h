/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON for machines to standard output, piece by piece. Nothing is built in memory first, so that there is none
 * to run out.
 */
#ifndef KVCA_TOOL_JSON_H
#define KVCA_TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>

/* Where a document is. All zero is its beginning. */
struct json {
    unsigned depth;
    bool filled; /* the object or array that is open has something in it */
};

/* Each adds to the object or array that is open. `key` is NULL in an array and at the top. */
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
void json_string(struct json *json, const char *key, const char *text);
void json_integer(struct json *json, const char *key, uint64_t value);
void json_number(struct json *json, const char *key, double value); /* JSON has none that is not finite: null */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* Ends the object or array that is open; at the top the line too. */
void json_end_object(struct json *json);
void json_end_array(struct json *json);

#endif
