/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what a pick costs. Compares kvca_select() and kvca_pool_place() with the four baselines of baselines.h on the
 * same data, in turns, for 1 to 16384 ranks.
 *
 * This folder is for what is measured and shown in docs/performance.md. It uses the public headers alone, as a host does.
 * nginx/ and replay/ have the benchmarks of the module and of the policies.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "machine.h"
#include "options.h"
#include "report.h"

struct options {
    struct plan plan;
    const char *csv;
    bool quick;
    bool ranks_given;
    bool rounds_given;
};

static const struct plan whole_plan = {
    .sizes = 9,
    .ranks = {1, 4, 8, 16, 64, 256, 1024, 4096, 16384},
    .rounds = 201,
    .batch = 40000,
    .seed = 20250601,
};

#define QUICK_ROUNDS 3
#define QUICK_BATCH 2000
#define QUICK_SIZES 7

static const char usage[] =
    "Usage: select_bench [OPTION]...\n"
    "Times kvca_select and kvca_pool_place against plainer code and against the floor.\n"
    "\n"
    "  --ranks N[,N]...  only these numbers of ranks, each 1 to 65536, at most 16 of them\n"
    "  --rounds N        how often everything is timed, 1 to 1001 (default 201)\n"
    "  --seed N          seed of the loads and of all draws (default 20250601)\n"
    "  --csv FILE        also write all figures to FILE\n"
    "  --quick           a few short rounds up to 1024 ranks, as a test; the figures have no meaning\n"
    "  --help            print this and exit\n";

/* Other options win over --quick, whatever their order. */
static void be_quick(struct options *options)
{
    options->plan.batch = QUICK_BATCH;
    if (!options->rounds_given) {
        options->plan.rounds = QUICK_ROUNDS;
    }
    if (!options->ranks_given) {
        options->plan.sizes = QUICK_SIZES;
    }
}

static void apply(struct options *options, int option, const char *value)
{
    switch (option) {
    case 'n':
        options->plan.sizes = option_ranks("--ranks", value, options->plan.ranks);
        options->ranks_given = true;
        break;
    case 'r':
        options->plan.rounds = (size_t)option_number("--rounds", value, 1, MOST_ROUNDS);
        options->rounds_given = true;
        break;
    case 's':
        options->plan.seed = option_number("--seed", value, 0, UINT64_MAX);
        break;
    case 'c':
        options->csv = value;
        break;
    case 'q':
        options->quick = true;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default: /* getopt_long has printed a message */
        fputs("Try 'select_bench --help'.\n", stderr);
        exit(2);
    }
}

static struct options parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"ranks", required_argument, NULL, 'n'},
        {"rounds", required_argument, NULL, 'r'},
        {"seed", required_argument, NULL, 's'},
        {"csv", required_argument, NULL, 'c'},
        {"quick", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.plan = whole_plan};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        apply(&options, option, optarg);
    }
    if (optind < argc) {
        fail("found '%s', expected options only; see --help", argv[optind]);
    }
    if (options.quick) {
        be_quick(&options);
    }
    return options;
}

static FILE *open_csv(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        fail("%s: cannot be written: %s", path, strerror(errno));
    }
    return file;
}

static void close_csv(FILE *file, const char *path)
{
    if (fclose(file) != 0) {
        fail("%s: cannot be written: %s", path, strerror(errno));
    }
}

static void print_head(const struct options *options)
{
    machine_print();
    printf("run        seed %" PRIu64 ", %zu rounds, at least %.0f us timed at once%s\n", options->plan.seed,
           options->plan.rounds, options->plan.batch / 1e3, options->quick ? "; QUICK: do not quote" : "");
    machine_warn_of_load();
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct results results;
    struct options options = parse(argc, argv);
    const char *wanted = getenv("KVCA_VARIANT");
    if (wanted && strcmp(wanted, kvca_variant()) != 0) {
        fail("KVCA_VARIANT is \"%s\", but this processor has no such variant", wanted);
    }
    /* Opened first, so that a wrong path does not waste a run. */
    FILE *csv = options.csv ? open_csv(options.csv) : NULL;
    double start = now();
    print_head(&options);
    for (size_t size = 0; size < options.plan.sizes; size++) {
        measure(&options.plan, size, &results);
    }
    report_tables(&options.plan, &results);
    report_pools(&options.plan, &results);
    report_targets(&options.plan, &results);
    report_noise(&options.plan, &results);
    if (csv) {
        report_csv(csv, &options.plan, &results);
        close_csv(csv, options.csv);
    }
    printf("\n%s%" PRIu64 " warnings of unknown capacities were given; %.0f s\n",
           options.quick ? "QUICK: do not quote these figures. " : "", results.warnings, (now() - start) / 1e9);
    return 0;
}
