/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line names: files, and numbers. */
#ifndef KVCA_PROGRAM_INPUT_H
#define KVCA_PROGRAM_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "config/policy_file.h"

/* Reads a decimal number; false when the text is none. */
bool program_read_decimal(const char *text, double *value);

/* What messages call the file that an argument names: "-" is standard input. */
const char *program_input_name(const char *argument);

/* Reads that file as kvca_file_read() does. */
kvca_status program_read_input(const char *argument, size_t max_bytes, char **text, size_t *size, kvca_error *error);

/* Reads a policy file. */
kvca_status program_read_policy(const char *argument, kvca_role role, struct kvca_policy_file *file,
                                kvca_error *error);

#endif
