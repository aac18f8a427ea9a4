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
    "  check FILE...           show what policy files mean, or what is wrong with them and where\n"
    "  select -c POLICY RANKS  explain one decision: each rank, whether it fits, and the pick\n"
    "  replay TRACE            run a trace through a model of a decode pool and compare policies\n"
    "\n"
    "Options:\n"
    "  -h, --help  show this help, or the help of a command if given after it\n"
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

/* The library ignores an unknown variant. The command reports it. */
static bool has_variant(const char *wanted)
{
    return !wanted || strcmp(wanted, kvca_variant()) == 0;
}

static int run(int argc, char **argv)
{
    const char *wanted = getenv("KVCA_VARIANT");
    if (!has_variant(wanted)) {
        return tool_wrong_use(
            "kvca",
            "the environment variable KVCA_VARIANT is \"%s\", but this processor has no such variant "
            "of the rule; unset it to use the fastest",
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
            argv[1] = full_name; /* getopt() begins its messages with it */
            return COMMANDS[i].run(argc - 1, argv + 1);
        }
    }
    return tool_wrong_use("kvca", "\"%s\" is not a command; the commands are check, select and replay", argv[1]);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is reported below like any other error */
    int status = run(argc, argv);
    return tool_close_output() ? status : TOOL_FAULTY_INPUT;
}
