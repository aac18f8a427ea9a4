/* SPDX-License-Identifier: Apache-2.0 */
/* Options of all commands: their arguments, and what is said of a wrong one. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

int tool_wrong_use(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", command);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nTry '%s --help'.\n", command);
    va_end(arguments);
    return TOOL_WRONG_USE;
}

bool tool_read_integer(const char *command, const char *option, const char *argument, uint64_t least, uint64_t most,
                       uint64_t *value)
{
    bool digits = argument[0] != '\0' && strspn(argument, "0123456789") == strlen(argument);
    errno = 0;
    unsigned long long number = strtoull(argument, NULL, 10);
    if (!digits || errno == ERANGE || number < least || number > most) {
        tool_wrong_use(command, "%s takes an integer from %" PRIu64 " to %" PRIu64 "; found \"%s\"", option, least,
                       most, argument);
        return false;
    }
    *value = number;
    return true;
}

bool tool_read_role(const char *command, const char *argument, kvca_role *role)
{
    if (kvca_role_parse(argument, role) != KVCA_OK) {
        tool_wrong_use(command, "--role takes decode, prefill, aggregated or encode; found \"%s\"", argument);
        return false;
    }
    return true;
}
