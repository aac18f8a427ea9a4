/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include "tool.h"

void json_add(json_object *object, const char *key, json_object *value)
{
    if (json_object_object_add(object, key, value) != 0) {
        tool_out_of_memory();
    }
}

void json_append(json_object *array, json_object *value)
{
    if (json_object_array_add(array, value) != 0) {
        tool_out_of_memory();
    }
}

void json_print(json_object *document)
{
    puts(json_object_to_json_string_ext(document, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                      JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(document);
}
