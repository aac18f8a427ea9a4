/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share. */
#ifndef KVCA_TOOL_H
#define KVCA_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/policy_file.h"

/* Exit status. */
enum { TOOL_DONE = 0, TOOL_FAULTY_INPUT = 1, TOOL_WRONG_USE = 2 };

/* The commands. argv[0] is "kvca COMMAND". Each returns an exit status. */
int tool_check(int argc, char **argv);
int tool_select(int argc, char **argv);
int tool_replay(int argc, char **argv);

/* Says what is wrong with the command line and where help is. Returns TOOL_WRONG_USE. */
int tool_wrong_use(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads the argument of an option, from `least` to `most`; says so and returns false when it is not accepted. */
bool tool_read_integer(const char *command, const char *option, const char *argument, uint64_t least, uint64_t most,
                       uint64_t *value);
/* Reads a decimal number; false when the text is none. */
bool tool_read_decimal(const char *text, double *value);

bool tool_read_role(const char *command, const char *argument, kvca_role *role);

/* What messages call the file that an argument names: "-" is standard input. */
const char *tool_input_name(const char *argument);

/* Reads that file as kvca_file_read() does. */
kvca_status tool_read_input(const char *argument, size_t max_bytes, char **text, size_t *size, kvca_error *error);

/* Reads a policy file. */
kvca_status tool_read_policy(const char *argument, kvca_role role, struct kvca_policy_file *file, kvca_error *error);

/*
 * Writes out what was printed so far. Called before something else can fail, so that the reason of a failed write is
 * still known in the end.
 */
void tool_flush_output(void);

/* Ends standard output. Returns whether all that was printed has arrived; says so when it has not. */
bool tool_close_output(void);

/* Ends the program with a message. */
_Noreturn void tool_out_of_memory(void);

/* realloc() that ends the program when memory has run out. */
void *tool_resize(void *memory, size_t size);

/* Ends the program with a message unless `status` is KVCA_OK: for what cannot fail unless memory has run out. */
void tool_must(const char *command, kvca_status status);

/* The shortest text that reads back as the same number. */
struct number {
    char text[32];
};
struct number tool_number(double value);

#endif
