/* SPDX-License-Identifier: Apache-2.0 */
/* kvca replay: runs a trace through a model of a decode pool, once for each policy and seed. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/fail.h"
#include "program/input.h"
#include "tool/replay_report.h"
#include "tool/tool.h"

#define NAME "kvca replay"
#define MOST_POLICIES 64
#define MOST_RANKS 4096
#define MOST_SEEDS 1000
#define MOST_BLOCK_TOKENS 1024

static const char HELP[] =
    "Usage: kvca replay [OPTION]... TRACE\n"
    "       kvca replay [OPTION]... --synthetic[=SPEC]\n"
    "\n"
    "Runs a trace through a model of a decode pool under data-parallel attention and compares routing policies.\n"
    "TRACE is an Azure LLM inference trace (CSV), a Mooncake trace (JSON lines), or CSV with the header\n"
    "arrival_s,prompt_tokens,output_tokens; - is standard input.\n"
    "\n"
    "The pool:\n"
    "      --ranks R             how many ranks (default 8)\n"
    "      --capacity C[,C...]   KV blocks of a rank; ranks take several in turn (default 4096)\n"
    "      --block-size B        tokens in a block (default 16)\n"
    "      --max-num-seqs N      most sequences that run on a rank at once (default 256)\n"
    "      --watermark X         share of C left free when a rank admits beside others (default 0.01)\n"
    "      --batch-ms X          ms that each running sequence adds to a pass (default 0)\n"
    "      --independent         each rank has its own clock; otherwise all make their passes together\n"
    "\n"
    "The router:\n"
    "      --policy P            default:W, kvca:FRACTION|off:on|off:W, least_requests, p2c, round_robin, or a "
    "file;\n"
    "                            repeat it to compare policies (default: default:0 and kvca:1:on:0)\n"
    "      --track-output-blocks bookings grow with the output\n"
    "      --hold                a request that fits nowhere waits at the router (kvca only)\n"
    "\n"
    "The runs:\n"
    "      --speed X             divide the trace's times by X (default 1)\n"
    "      --synthetic[=SPEC]    make a trace: requests=2000,rate=20,prompt=1000,output=200,sigma=1,seed=0\n"
    "      --seed S              seed of the draws (default 0)\n"
    "      --seeds N             run N seeds, beginning with S (default 1)\n"
    "      --format F            table, json or csv (default table)\n"
    "      --engine E            fast, or plain, which is slow and for checking (default fast)\n"
    "  -h, --help                show this help\n"
    "\n"
    "Exit status: 0 done, 1 the input is faulty, 2 wrong use.\n";

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

struct arguments {
    struct replay_options options;
    uint64_t listed[MOST_RANKS]; /* capacities as given */
    size_t listed_count;
    uint64_t capacities[MOST_RANKS]; /* of each rank */
    struct replay_policy policies[MOST_POLICIES];
    size_t policy_count;
    const struct replay_engine *engine;
    enum format format;
    uint64_t seed;
    uint64_t seeds;
    const char *trace;
    const char *synthetic;
    bool help;
    int status; /* exit status if the arguments are wrong */
};

enum {
    OPTION_RANKS = 256,
    OPTION_CAPACITY,
    OPTION_BLOCK_SIZE,
    OPTION_MAX_NUM_SEQS,
    OPTION_WATERMARK,
    OPTION_BATCH_MS,
    OPTION_INDEPENDENT,
    OPTION_POLICY,
    OPTION_TRACK_OUTPUT_BLOCKS,
    OPTION_HOLD,
    OPTION_SPEED,
    OPTION_SYNTHETIC,
    OPTION_SEED,
    OPTION_SEEDS,
    OPTION_FORMAT,
    OPTION_ENGINE,
};

static const struct option OPTIONS[] = {
    {"ranks", required_argument, NULL, OPTION_RANKS},
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"block-size", required_argument, NULL, OPTION_BLOCK_SIZE},
    {"max-num-seqs", required_argument, NULL, OPTION_MAX_NUM_SEQS},
    {"watermark", required_argument, NULL, OPTION_WATERMARK},
    {"batch-ms", required_argument, NULL, OPTION_BATCH_MS},
    {"independent", no_argument, NULL, OPTION_INDEPENDENT},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"track-output-blocks", no_argument, NULL, OPTION_TRACK_OUTPUT_BLOCKS},
    {"hold", no_argument, NULL, OPTION_HOLD},
    {"speed", required_argument, NULL, OPTION_SPEED},
    {"synthetic", optional_argument, NULL, OPTION_SYNTHETIC},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"seeds", required_argument, NULL, OPTION_SEEDS},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool read_integer(const char *option, const char *argument, uint64_t least, uint64_t most, uint64_t *value)
{
    return tool_read_integer(NAME, option, argument, least, most, value);
}

static bool read_number(const char *option, const char *argument, double least, double most, double *value)
{
    if (!program_read_decimal(argument, value) || *value < least || *value > most) {
        tool_wrong_use(NAME, "%s takes a number from %g to %g; found \"%s\"", option, least, most, argument);
        return false;
    }
    return true;
}

/* "C[,C...]" */
static bool read_capacities(const char *argument, struct arguments *arguments)
{
    arguments->listed_count = 0;
    for (const char *at = argument; at; at = strchr(at, ',')) {
        at += at != argument; /* past the comma */
        char item[32];
        size_t length = strcspn(at, ",");
        if (length >= sizeof item || arguments->listed_count == MOST_RANKS) {
            tool_wrong_use(NAME, "--capacity takes up to %d integers, separated by commas", MOST_RANKS);
            return false;
        }
        memcpy(item, at, length);
        item[length] = '\0';
        uint64_t *capacity = &arguments->listed[arguments->listed_count++];
        if (!read_integer("--capacity", item, 1, UINT64_C(1) << 40, capacity)) {
            return false;
        }
    }
    return true;
}

static bool read_policy(const char *argument, struct arguments *arguments)
{
    if (arguments->policy_count == MOST_POLICIES) {
        tool_wrong_use(NAME, "--policy may be given %d times", MOST_POLICIES);
        return false;
    }
    kvca_error error = {.size = sizeof error};
    if (replay_policy_parse(argument, &arguments->policies[arguments->policy_count++], &error) != KVCA_OK) {
        fprintf(stderr, "%s\n", error.message);
        arguments->status = TOOL_FAULTY_INPUT;
        return false;
    }
    return true;
}

/* Finds an argument among the accepted ones. Prints a message if it is not there. */
static bool read_choice(const char *option, const char *argument, const char *const *accepted, size_t count,
                        size_t *choice)
{
    for (*choice = 0; *choice < count; *choice += 1) {
        if (strcmp(argument, accepted[*choice]) == 0) {
            return true;
        }
    }
    tool_wrong_use(NAME, "%s takes %s%s%s%s%s; found \"%s\"", option, accepted[0], count > 2 ? ", " : "",
                   count > 2 ? accepted[1] : "", " or ", accepted[count - 1], argument);
    return false;
}

static bool read_format(const char *argument, struct arguments *arguments)
{
    static const char *const formats[] = {[FORMAT_TABLE] = "table", [FORMAT_JSON] = "json", [FORMAT_CSV] = "csv"};
    size_t choice;
    bool read = read_choice("--format", argument, formats, 3, &choice);
    arguments->format = (enum format)choice;
    return read;
}

static bool read_engine(const char *argument, struct arguments *arguments)
{
    static const char *const engines[] = {"fast", "plain"};
    size_t choice;
    bool read = read_choice("--engine", argument, engines, 2, &choice);
    arguments->engine = choice == 0 ? &replay_fast_engine : &replay_plain_engine;
    return read;
}

static bool take_model_option(int option, struct arguments *arguments)
{
    struct replay_options *options = &arguments->options;
    uint64_t ranks;
    switch (option) {
    case OPTION_RANKS:
        if (!read_integer("--ranks", optarg, 1, MOST_RANKS, &ranks)) {
            return false;
        }
        options->ranks = (size_t)ranks;
        return true;
    case OPTION_CAPACITY:
        return read_capacities(optarg, arguments);
    case OPTION_BLOCK_SIZE:
        return read_integer("--block-size", optarg, 1, MOST_BLOCK_TOKENS, &options->block_size);
    case OPTION_MAX_NUM_SEQS:
        return read_integer("--max-num-seqs", optarg, 1, UINT32_MAX, &options->max_num_seqs);
    case OPTION_WATERMARK:
        return read_number("--watermark", optarg, 0.0, 1.0, &options->watermark);
    case OPTION_BATCH_MS:
        return read_number("--batch-ms", optarg, 0.0, 1e6, &options->batch_ms);
    case OPTION_SPEED:
        return read_number("--speed", optarg, 1e-6, 1e6, &options->speed);
    case OPTION_INDEPENDENT:
        options->independent = true;
        return true;
    case OPTION_TRACK_OUTPUT_BLOCKS:
        options->track_output_blocks = true;
        return true;
    default: /* OPTION_HOLD */
        options->hold = true;
        return true;
    }
}

/* Takes one option. Returns false after a message if it is wrong. */
static bool take_option(int option, struct arguments *arguments)
{
    switch (option) {
    case OPTION_POLICY:
        return read_policy(optarg, arguments);
    case OPTION_SYNTHETIC:
        arguments->synthetic = optarg ? optarg : "";
        return true;
    case OPTION_SEED:
        return read_integer("--seed", optarg, 0, UINT64_MAX, &arguments->seed);
    case OPTION_SEEDS:
        return read_integer("--seeds", optarg, 1, MOST_SEEDS, &arguments->seeds);
    case OPTION_FORMAT:
        return read_format(optarg, arguments);
    case OPTION_ENGINE:
        return read_engine(optarg, arguments);
    case 'h':
        arguments->help = true;
        return true;
    case '?':
        tool_wrong_use(NAME, "nothing was replayed");
        return false;
    default:
        return take_model_option(option, arguments);
    }
}

/* Checks and fills in what depends on all options. */
static bool complete(int argc, char **argv, struct arguments *arguments)
{
    int names = argc - optind;
    if (arguments->synthetic ? names != 0 : names != 1) {
        tool_wrong_use(NAME, "name one trace, or give --synthetic; found %d name%s%s", names, names == 1 ? "" : "s",
                       arguments->synthetic ? " and --synthetic" : "");
        return false;
    }
    arguments->trace = arguments->synthetic ? NULL : argv[optind];
    for (size_t rank = 0; rank < arguments->options.ranks; rank++) {
        arguments->capacities[rank] = arguments->listed[rank % arguments->listed_count];
    }
    arguments->options.capacities = arguments->capacities;
    if (arguments->policy_count == 0) {
        return read_policy("default:0", arguments) && read_policy("kvca:1:on:0", arguments);
    }
    return true;
}

static bool read_arguments(int argc, char **argv, struct arguments *arguments)
{
    int option;
    while ((option = getopt_long(argc, argv, "h", OPTIONS, NULL)) != -1) {
        if (!take_option(option, arguments)) {
            return false;
        }
        if (arguments->help) {
            return true;
        }
    }
    return complete(argc, argv, arguments);
}

static void show_progress(size_t done, size_t all)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, done == all ? "\r\033[K" : "\r%zu of %zu runs", done, all);
    }
}

static void run_one(const struct arguments *arguments, const struct replay_trace *trace, size_t policy, uint64_t seed,
                    struct replay_result *result)
{
    struct replay_run run;
    replay_run(arguments->engine, &arguments->options, trace, &arguments->policies[policy], seed, &run);
    result->policy = arguments->policies[policy].name;
    result->seed = seed;
    replay_measure(&arguments->options, trace, &run, result->values);
    replay_run_free(&run);
}

static void print_results(const struct arguments *arguments, const struct replay_result *results)
{
    size_t count = arguments->policy_count * (size_t)arguments->seeds;
    switch (arguments->format) {
    case FORMAT_TABLE:
        replay_print_table(results, arguments->policy_count, (size_t)arguments->seeds);
        break;
    case FORMAT_JSON:
        replay_print_json(results, count);
        break;
    case FORMAT_CSV:
        replay_print_csv(results, count);
        break;
    }
}

static void replay(const struct arguments *arguments, const struct replay_trace *trace)
{
    size_t seeds = (size_t)arguments->seeds;
    size_t count = arguments->policy_count * seeds;
    struct replay_result *results = program_resize(NULL, count * sizeof *results);
    for (size_t i = 0; i < count; i++) {
        show_progress(i, count);
        run_one(arguments, trace, i / seeds, arguments->seed + i % seeds, &results[i]);
    }
    show_progress(count, count);
    print_results(arguments, results);
    free(results);
}

static int load_and_replay(const struct arguments *arguments)
{
    struct replay_trace trace;
    kvca_error error = {.size = sizeof error};
    kvca_status status = arguments->synthetic ? replay_trace_synthesize(arguments->synthetic, &trace, &error)
                                              : replay_trace_load(arguments->trace, &trace, &error);
    if (status != KVCA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return TOOL_FAULTY_INPUT;
    }
    if (trace.unsorted > 0) {
        fprintf(stderr, "kvca: note: %zu of %zu requests were not in order of arrival; they were sorted\n",
                trace.unsorted, trace.count);
    }
    replay(arguments, &trace);
    replay_trace_free(&trace);
    return TOOL_DONE;
}

int tool_replay(int argc, char **argv)
{
    static struct arguments arguments; /* too large for the stack */
    arguments = (struct arguments){
        .options = {.ranks = 8, .block_size = 16, .max_num_seqs = 256, .watermark = 0.01, .speed = 1.0},
        .listed = {4096},
        .listed_count = 1,
        .engine = &replay_fast_engine,
        .seeds = 1,
        .status = TOOL_WRONG_USE,
    };
    if (!read_arguments(argc, argv, &arguments)) {
        return arguments.status;
    }
    if (arguments.help) {
        fputs(HELP, stdout);
        return TOOL_DONE;
    }
    return load_and_replay(&arguments);
}
