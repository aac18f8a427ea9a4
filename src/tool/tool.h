/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the commands share. */
#ifndef KVCA_TOOL_H
#define KVCA_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/policy_file.h"

enum { TOOL_DONE = 0, TOOL_FAULTY_INPUT = 1, TOOL_WRONG_USE = 2 };

/* The commands. argv[0] is "kvca COMMAND". They return an exit status. */
int tool_check(int argc, char **argv);
int tool_select(int argc, char **argv);
int tool_replay(int argc, char **argv);

/* Prints what is wrong with the command line, and how to get help. Returns TOOL_WRONG_USE. */
int tool_wrong_use(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads the argument of an option, an integer from `least` to `most`. Returns false after a message if it is wrong. */
bool tool_read_integer(const char *command, const char *option, const char *argument, uint64_t least, uint64_t most,
                       uint64_t *value);
/* Reads a decimal number. Returns false if the text is not one. */
bool tool_read_decimal(const char *text, double *value);

bool tool_read_role(const char *command, const char *argument, kvca_role *role);

/* The name of an argument's file in messages. "-" is standard input. */
const char *tool_input_name(const char *argument);

/* Reads an argument's file like kvca_file_read(). */
kvca_status tool_read_input(const char *argument, size_t max_bytes, char **text, size_t *size, kvca_error *error);

kvca_status tool_read_policy(const char *argument, kvca_role role, struct kvca_policy_file *file, kvca_error *error);

/* Flushes standard output. Call it before something else can fail and change errno, which tool_close_output() shows. */
void tool_flush_output(void);

/* Closes standard output. Returns false after a message if not everything could be written. */
bool tool_close_output(void);

/* Ends the program with a message. */
_Noreturn void tool_out_of_memory(void);

/* realloc() that ends the program if memory has run out. */
void *tool_resize(void *memory, size_t size);

/* Ends the program with a message unless `status` is KVCA_OK. For calls that fail only if memory has run out. */
void tool_must(const char *command, kvca_status status);

/* The shortest text that is read back as the same number. */
struct number {
    char text[32];
};
struct number tool_number(double value);

#endif
