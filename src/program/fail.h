/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder is for what a program may do that a library may not: end with a message where it cannot go on (here), and
 * read the files and numbers that its command line names (input.h). The command and the replay model both stand on it.
 */
#ifndef KVCA_PROGRAM_FAIL_H
#define KVCA_PROGRAM_FAIL_H

#include <stddef.h>

#include <kvca/kvca.h>

/* Ends the program with a message. */
_Noreturn void program_out_of_memory(void);

/* realloc() that ends the program when memory has run out. */
void *program_resize(void *memory, size_t size);

/* Ends the program with a message unless `status` is KVCA_OK: for what cannot fail unless memory has run out. */
void program_must(const char *command, kvca_status status);

#endif
