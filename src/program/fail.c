/* SPDX-License-Identifier: Apache-2.0 */
/* How commands end where they cannot go on. */
#include <stdlib.h>

#include "tool/tool.h"

void tool_out_of_memory(void)
{
    fputs("kvca: out of memory\n", stderr);
    exit(TOOL_FAULTY_INPUT);
}

void *tool_resize(void *memory, size_t size)
{
    void *resized = realloc(memory, size);
    if (!resized) {
        tool_out_of_memory();
    }
    return resized;
}

void tool_must(const char *command, kvca_status status)
{
    if (status != KVCA_OK) {
        fprintf(stderr, "%s: %s\n", command, kvca_strerror(status));
        exit(TOOL_FAULTY_INPUT);
    }
}
