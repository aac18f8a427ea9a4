/* SPDX-License-Identifier: Apache-2.0 */
/* kvca select: explains one decision. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/error.h"
#include "program/fail.h"
#include "program/input.h"
#include "tool/decision.h"
#include "tool/tool.h"

#define NAME "kvca select"

static const char HELP[] =
    "Usage: kvca select -c POLICY [OPTION]... RANKS\n"
    "\n"
    "Explains one decision. A table shows for each rank whether it fits and why it was or was not picked. Then come\n"
    "the pick and its reason.\n"
    "\n"
    "POLICY is a policy file, see 'kvca check'. RANKS is a snapshot of the candidate ranks in YAML or JSON. One of\n"
    "the two may be - for standard input. A snapshot:\n"
    "\n"
    "    request_blocks: 600       # KV blocks that the request needs; added to each rank's decode_cost_blocks\n"
    "    ranks:\n"
    "      - worker_id: 0          # optional: the row number\n"
    "        dp_rank: 3            # optional: 0\n"
    "        decode_cost_blocks: 3000\n"
    "        active_requests: 5\n"
    "        total_kv_blocks: 60000            # optional: not reported\n"
    "        preferred_taint_multiplier: 1.0   # optional: 1\n"
    "\n"
    "The snapshot may also be just the list, without ranks:. Or the same keys may be at the top, each with a list\n"
    "of one value for each rank.\n"
    "\n"
    "Options:\n"
    "  -c, --policy POLICY     the policy file\n"
    "      --role ROLE         the pool: decode (the default), prefill, aggregated or encode\n"
    "      --request-blocks N  KV blocks of the request, instead of the snapshot's request_blocks\n"
    "      --seed S            seed of the draw among equally good ranks (default 0)\n"
    "      --json              print the decision as one JSON object\n"
    "  -h, --help              show this help\n"
    "\n"
    "Exit status: 0 a rank was picked, 1 the input is faulty, 2 wrong use.\n";

struct arguments {
    const char *policy_path;
    const char *ranks_path;
    kvca_role role;
    uint64_t request_blocks;
    bool has_request_blocks;
    uint64_t seed;
    bool json;
    bool help;
};

enum { OPTION_ROLE = 256, OPTION_REQUEST_BLOCKS, OPTION_SEED, OPTION_JSON };

/* Takes one option. Returns false after a message if it is wrong. */
static bool take_option(int option, struct arguments *arguments)
{
    switch (option) {
    case 'c':
        arguments->policy_path = optarg;
        return true;
    case OPTION_ROLE:
        return tool_read_role(NAME, optarg, &arguments->role);
    case OPTION_REQUEST_BLOCKS:
        arguments->has_request_blocks = true;
        return tool_read_integer(NAME, "--request-blocks", optarg, 0, UINT64_MAX, &arguments->request_blocks);
    case OPTION_SEED:
        return tool_read_integer(NAME, "--seed", optarg, 0, UINT64_MAX, &arguments->seed);
    case OPTION_JSON:
        arguments->json = true;
        return true;
    case 'h':
        arguments->help = true;
        return true;
    default:
        tool_wrong_use(NAME, "no decision was made");
        return false;
    }
}

static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"policy", required_argument, NULL, 'c'},
        {"role", required_argument, NULL, OPTION_ROLE},
        {"request-blocks", required_argument, NULL, OPTION_REQUEST_BLOCKS},
        {"seed", required_argument, NULL, OPTION_SEED},
        {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
        if (!take_option(option, arguments)) {
            return false;
        }
        if (arguments->help) {
            return true;
        }
    }
    if (!arguments->policy_path) {
        tool_wrong_use(NAME, "name the policy file with -c POLICY");
        return false;
    }
    if (argc - optind == 1 && strcmp(arguments->policy_path, "-") == 0 && strcmp(argv[optind], "-") == 0) {
        tool_wrong_use(NAME, "standard input can be the policy or the ranks, not both");
        return false;
    }
    if (argc - optind != 1) {
        tool_wrong_use(NAME, "name exactly one ranks file; found %d", argc - optind);
        return false;
    }
    arguments->ranks_path = argv[optind];
    return true;
}

static void print_warning(void *user, const kvca_warning *warning)
{
    (void)user;
    fprintf(stderr,
            "kvca: warning: row %zu (worker %" PRIu64 ", dp_rank %" PRIu32 ") has no known capacity and so always "
            "fits; let it report total_kv_blocks, or set capacity_blocks in the policy\n",
            warning->row, warning->worker_id, warning->dp_rank);
}

static void decide(struct decision *decision, bool json)
{
    const kvca_ranks *ranks = &decision->ranks;
    size_t *tied = program_resize(NULL, ranks->count * sizeof *tied);
    kvca_explanation *explained = program_resize(NULL, ranks->count * sizeof *explained);
    kvca_policy *policy;
    kvca_selection first = {.size = sizeof first};
    /* The input is sound, so any failure from here on is lack of memory. */
    program_must(NAME, kvca_policy_new(&decision->policy.params, &policy));
    program_must(NAME, kvca_policy_set_seed(policy, decision->seed));
    program_must(NAME, kvca_policy_set_warning(policy, print_warning, NULL));
    program_must(NAME, kvca_select(policy, ranks, &decision->selection));
    program_must(NAME, kvca_tie_set(policy, ranks, tied, ranks->count, &first));
    for (size_t row = 0; row < ranks->count; row++) {
        explained[row].size = sizeof explained[row];
        program_must(NAME,
                     kvca_explain(kvca_policy_params(policy), ranks, &decision->selection, row, &explained[row]));
    }
    decision->tied = tied;
    decision->explained = explained;
    if (json) {
        decision_print_json(decision);
    } else {
        decision_print(decision);
    }
    kvca_policy_free(policy);
    free(explained);
    free(tied);
}

static int load_and_decide(const struct arguments *arguments)
{
    struct kvca_shown_name policy = kvca_shown_name(program_input_name(arguments->policy_path));
    struct decision decision = {
        .policy_path = policy.text, .selection = {.size = sizeof decision.selection}, .seed = arguments->seed};
    struct ranks_file file;
    kvca_error error = {.size = sizeof error};
    if (program_read_policy(arguments->policy_path, arguments->role, &decision.policy, &error) != KVCA_OK ||
        ranks_file_load(arguments->ranks_path, &file, &error) != KVCA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return TOOL_FAULTY_INPUT;
    }
    decision.ranks = file.ranks;
    if (arguments->has_request_blocks) {
        decision.ranks.request_blocks = arguments->request_blocks;
    }
    decide(&decision, arguments->json);
    ranks_file_free(&file);
    return TOOL_DONE;
}

int tool_select(int argc, char **argv)
{
    struct arguments arguments = {.role = KVCA_ROLE_DECODE};
    if (!read_arguments(argc, argv, &arguments)) {
        return TOOL_WRONG_USE;
    }
    if (arguments.help) {
        fputs(HELP, stdout);
        return TOOL_DONE;
    }
    return load_and_decide(&arguments);
}
