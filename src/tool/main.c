/* SPDX-License-Identifier: Apache-2.0 */
/* kvca: the operator's command. One file holds one command; this one finds it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

static const char HELP[] =
    "Usage: kvca COMMAND [OPTION]... ARGUMENT...\n"
    "\n"
    "Picks the decode rank for an LLM request so that the request lands where its KV cache fits.\n"
    "\n"
    "Commands:\n"
    "  check FILE...           say what policy files mean, or what is wrong with them and where\n"
    "  select -c POLICY RANKS  explain one decision: each rank, whether it fits, and the pick\n"
    "  replay TRACE            run a trace through a model of a decode pool and compare policies\n"
    "\n"
    "Options:\n"
    "  -h, --help  show this help; after a command, show the command's\n"
    "  --version   show the version\n"
    "\n"
    "A file named - is standard input.\n"
    "\n"
    "Exit status: 0 done, 1 the input is faulty, 2 wrong use.\n";

static const struct {
    const char *name;
    const char *full_name;
    int (*run)(int argc, char **argv);
} COMMANDS[] = {
    {"check", "kvca check", tool_check},
    {"select", "kvca select", tool_select},
    {"replay", "kvca replay", tool_replay},
};

/* The library passes over a variant that it does not know; a command can say so. */
static bool has_variant(const char *wanted)
{
    return !wanted || strcmp(wanted, kvca_variant()) == 0;
}

static int run(int argc, char **argv)
{
    const char *wanted = getenv("KVCA_VARIANT");
    if (!has_variant(wanted)) {
        return tool_wrong_use("kvca",
                              "the environment variable KVCA_VARIANT is \"%s\", which is no variant of the rule that "
                              "this processor has; leave it out to use the fastest",
                              wanted);
    }
    if (argc < 2) {
        fputs(HELP, stderr);
        return TOOL_WRONG_USE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        fputs(HELP, stdout);
        return TOOL_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("kvca %s\n", kvca_version());
        return TOOL_DONE;
    }
    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++) {
        if (strcmp(argv[1], COMMANDS[i].name) == 0) {
            char full_name[32];
            snprintf(full_name, sizeof full_name, "%s", COMMANDS[i].full_name);
            argv[1] = full_name; /* what getopt() calls us in its messages */
            return COMMANDS[i].run(argc - 1, argv + 1);
        }
    }
    return tool_wrong_use("kvca", "\"%s\" is not a command; there are check, select and replay", argv[1]);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error like any other: it is told below */
    int status = run(argc, argv);
    return tool_close_output() ? status : TOOL_FAULTY_INPUT;
}
