/* SPDX-License-Identifier: Apache-2.0 */
#include "program/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"

bool program_read_decimal(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return text[0] != '\0' && strspn(text, "0123456789.eE+-") == strlen(text) && *end == '\0';
}

static bool is_standard_input(const char *argument)
{
    return strcmp(argument, "-") == 0;
}

const char *program_input_name(const char *argument)
{
    return is_standard_input(argument) ? "<stdin>" : argument;
}

kvca_status program_read_input(const char *argument, size_t max_bytes, char **text, size_t *size, kvca_error *error)
{
    if (is_standard_input(argument)) {
        return kvca_stream_read(stdin, program_input_name(argument), max_bytes, text, size, error);
    }
    return kvca_file_read(argument, max_bytes, text, size, error);
}

kvca_status program_read_policy(const char *argument, kvca_role role, struct kvca_policy_file *file,
                                kvca_error *error)
{
    char *text;
    size_t size;
    kvca_status status = program_read_input(argument, KVCA_CONFIG_MAX_BYTES, &text, &size, error);
    if (status != KVCA_OK) {
        return status;
    }
    status = kvca_policy_file_read(text, size, program_input_name(argument), role, file, error);
    free(text);
    return status;
}
