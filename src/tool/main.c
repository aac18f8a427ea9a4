/* SPDX-License-Identifier: Apache-2.0 */
/* The program kvca. Finds the command; each command has a file of its own. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
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

struct number tool_number(double value)
{
    struct number number;
    if (fabs(value) < 1e15 && value == floor(value)) { /* people write whole numbers without an exponent */
        snprintf(number.text, sizeof number.text, "%.0f", value);
        return number;
    }
    int precision = 1;
    do {
        snprintf(number.text, sizeof number.text, "%.*g", precision, value);
    } while (strtod(number.text, NULL) != value && precision++ < 17);
    return number;
}

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
