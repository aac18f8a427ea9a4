/* SPDX-License-Identifier: Apache-2.0 */
/* kvca check: what policy files mean. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/error.h"
#include "program/input.h"
#include "tool/table.h"
#include "tool/tool.h"

#define NAME "kvca check"

static const char HELP[] =
    "Usage: kvca check [OPTION]... FILE...\n"
    "\n"
    "Shows what each parameter of each policy file means. If a file is faulty, prints FILE:LINE:COLUMN: MESSAGE on\n"
    "standard error. A file that does not select this policy for the pool counts as faulty.\n"
    "\n"
    "Options:\n"
    "  -q, --quiet      print only what is wrong\n"
    "      --role ROLE  the pool: decode (the default), prefill, aggregated or encode\n"
    "  -h, --help       show this help\n"
    "\n"
    "Exit status: 0 all files are sound, 1 a file is faulty, 2 wrong use.\n";

struct cells {
    char value[32];
    char meaning[128];
};

static struct cells show_fraction(const kvca_params *params)
{
    struct cells cells;
    if (params->capacity_fraction == KVCA_NO_CAPACITY_FILTER) {
        snprintf(cells.value, sizeof cells.value, "null");
        snprintf(cells.meaning, sizeof cells.meaning, "the filter is off: every rank fits, whatever its capacity");
        return cells;
    }
    struct number fraction = tool_number(params->capacity_fraction);
    snprintf(cells.value, sizeof cells.value, "%s", fraction.text);
    snprintf(cells.meaning, sizeof cells.meaning, "a rank fits while its booked blocks are at most %s x its capacity",
             fraction.text);
    return cells;
}

static struct cells show_count_priority(const kvca_params *params)
{
    struct cells cells;
    snprintf(cells.value, sizeof cells.value, "%s", params->count_priority ? "true" : "false");
    snprintf(cells.meaning, sizeof cells.meaning, "%s",
             params->count_priority ? "of the ranks that fit, those with the fewest active requests come first"
                                    : "of the ranks that fit, the cost alone decides");
    return cells;
}

static struct cells show_weight(const kvca_params *params)
{
    struct cells cells;
    struct number weight = tool_number(params->decode_active_request_weight);
    snprintf(cells.value, sizeof cells.value, "%s", weight.text);
    if (params->decode_active_request_weight > 0) {
        snprintf(cells.meaning, sizeof cells.meaning, "the cost is the booked blocks plus %s for each active request",
                 weight.text);
    } else {
        snprintf(cells.meaning, sizeof cells.meaning, "the cost is the booked blocks alone");
    }
    return cells;
}

static struct cells show_capacity_blocks(const kvca_params *params)
{
    struct cells cells;
    bool filter = params->capacity_fraction != KVCA_NO_CAPACITY_FILTER;
    const char *meaning = !filter                   ? "not used while the filter is off"
                          : params->capacity_blocks ? "the capacity of ranks that report none"
                                                    : "ranks that report no capacity always fit";
    snprintf(cells.meaning, sizeof cells.meaning, "%s", meaning);
    if (params->capacity_blocks) {
        snprintf(cells.value, sizeof cells.value, "%" PRIu64, params->capacity_blocks);
    } else {
        snprintf(cells.value, sizeof cells.value, "unset");
    }
    return cells;
}

static void print_parameters(const struct kvca_policy_file *file)
{
    static struct cells (*const show[KVCA_PARAMETERS])(const kvca_params *params) = {
        [KVCA_CAPACITY_FRACTION] = show_fraction,
        [KVCA_COUNT_PRIORITY] = show_count_priority,
        [KVCA_DECODE_ACTIVE_REQUEST_WEIGHT] = show_weight,
        [KVCA_CAPACITY_BLOCKS] = show_capacity_blocks,
    };
    static const struct table_column columns[] = {
        {"parameter", false}, {"value", true}, {"set in", false}, {"meaning", false}};
    struct table table = {.columns = columns, .width = sizeof columns / sizeof columns[0]};
    for (int i = 0; i < KVCA_PARAMETERS; i++) {
        struct cells cells = show[i](&file->params);
        table_add(&table, "%s", kvca_parameter_name((enum kvca_parameter)i));
        table_add(&table, "%s", cells.value);
        if (file->lines[i] > 0) {
            table_add(&table, "line %zu", file->lines[i]);
        } else {
            table_add(&table, "(default)");
        }
        table_add(&table, "%s", cells.meaning);
    }
    table_print(&table, 2);
    table_free(&table);
}

static void print_file(const char *argument, kvca_role role, const struct kvca_policy_file *file)
{
    struct kvca_shown_name path = kvca_shown_name(program_input_name(argument));
    if (file->instance[0] != '\0') {
        printf("%s: sound; the %s pool is served by the instance %s\n", path.text, kvca_role_name(role),
               file->instance);
    } else {
        printf("%s: sound; parameters alone, for any pool\n", path.text);
    }
    print_parameters(file);
    tool_flush_output(); /* keeps the order of this and the messages on standard error */
}

static int check_file(const char *argument, kvca_role role, bool quiet)
{
    struct kvca_policy_file file;
    kvca_error error = {.size = sizeof error};
    if (program_read_policy(argument, role, &file, &error) != KVCA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return TOOL_FAULTY_INPUT;
    }
    if (!quiet) {
        print_file(argument, role, &file);
    }
    return TOOL_DONE;
}

int tool_check(int argc, char **argv)
{
    enum { OPTION_ROLE = 256 };
    static const struct option options[] = {
        {"quiet", no_argument, NULL, 'q'},
        {"role", required_argument, NULL, OPTION_ROLE},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    kvca_role role = KVCA_ROLE_DECODE;
    bool quiet = false;
    int option;
    while ((option = getopt_long(argc, argv, "hq", options, NULL)) != -1) {
        switch (option) {
        case OPTION_ROLE:
            if (!tool_read_role(NAME, optarg, &role)) {
                return TOOL_WRONG_USE;
            }
            break;
        case 'q':
            quiet = true;
            break;
        case 'h':
            fputs(HELP, stdout);
            return TOOL_DONE;
        default:
            return tool_wrong_use(NAME, "no file was checked");
        }
    }
    if (optind == argc) {
        return tool_wrong_use(NAME, "name at least one policy file");
    }
    int status = TOOL_DONE;
    for (int i = optind; i < argc; i++) {
        if (check_file(argv[i], role, quiet) != TOOL_DONE) {
            status = TOOL_FAULTY_INPUT;
        }
    }
    return status;
}
