/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command `kvca`, and what its commands share. Here belongs what a person or a script sees of it: options, exit
 * status, and results as tables, JSON and CSV. A file holds one command (check.c, select.c, replay.c), or one way to
 * read or to show what a command is about. What can be worked out without a command line belongs below.
 */
#ifndef KVCA_TOOL_H
#define KVCA_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include <kvca/config.h>

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
bool tool_read_role(const char *command, const char *argument, kvca_role *role);

/* Flushes standard output. Call it before something else can fail and change errno, which tool_close_output() shows. */
void tool_flush_output(void);

/* Closes standard output. Returns false after a message if not everything could be written. */
bool tool_close_output(void);

/* The shortest text that reads back as the same number. */
struct number {
    char text[32];
};
struct number tool_number(double value);

#endif
