/* SPDX-License-Identifier: Apache-2.0 */
#include "program/fail.h"

#include <stdio.h>
#include <stdlib.h>

void program_out_of_memory(void)
{
    fputs("kvca: out of memory\n", stderr);
    exit(EXIT_FAILURE);
}

void *program_resize(void *memory, size_t size)
{
    void *resized = realloc(memory, size);
    if (!resized) {
        program_out_of_memory();
    }
    return resized;
}

void program_must(const char *command, kvca_status status)
{
    if (status != KVCA_OK) {
        fprintf(stderr, "%s: %s\n", command, kvca_strerror(status));
        exit(EXIT_FAILURE);
    }
}
