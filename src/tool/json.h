/* SPDX-License-Identifier: Apache-2.0 */
/* Building JSON for machines. Each takes over its last argument, and ends the program when memory has run out. */
#ifndef KVCA_TOOL_JSON_H
#define KVCA_TOOL_JSON_H

#include <json-c/json.h>

void json_add(json_object *object, const char *key, json_object *value);
void json_append(json_object *array, json_object *value);

/* Prints a document to standard output. */
void json_print(json_object *document);

#endif
