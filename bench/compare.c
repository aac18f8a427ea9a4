/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Today's library beside the version before, which bench/before.sh builds: both are called through the same adaptor
 * (version.h), on the same sets of ranks. `compare --help` tells its options.
 *
 * The two take turns every few microseconds, and what is looked at is their ratio in each round, so that what disturbs
 * the machine for longer disturbs both alike. The median over the rounds passes over what lasts shorter. Chance decides
 * how well the addresses of code and data suit the processor, for some 3 % of a place: so each library is loaded
 * several times, with data of its own, and each copy has its share of the rounds.
 */
#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "loads.h"
#include "machine.h"
#include "options.h"
#include "version.h"

/* Slower by more than this is marked. */
#define LIMIT 1.03

#define MOST_ROUNDS 10001
#define ROUNDS 1001
#define QUICK_ROUNDS 101
#define SEED 20250601
#define BATCH 20000 /* nanoseconds that are timed at once, about */
#define FEWEST_PICKS 8

#define COPIES 5
#define LOADED ((size_t)SIDES * COPIES)

enum side { BEFORE, TODAY, SIDES };

/* A version as it is loaded several times. */
struct copies {
    const struct version *of[COPIES];
};

enum call { CALL_SELECT, CALL_PLACE, CALL_RELEASE };

struct setting {
    const char *name;
    enum call call;
    enum profile profile;
    struct version_params params; /* of CALL_SELECT */
    bool multipliers;             /* of CALL_SELECT */
    enum version_request request; /* of the others */
};

#define DEFAULTS .capacity_fraction = 1, .count_priority = true

static const struct setting settings[] = {
    {"default", .params = {DEFAULTS}},
    {"fraction", .params = {.capacity_fraction = 0.9, .count_priority = true}},
    {"no-filter", .params = {.capacity_fraction = KVCA_NO_CAPACITY_FILTER, .count_priority = true}},
    {"weight", .params = {.capacity_fraction = 1, .decode_active_request_weight = 500}},
    {"multipliers", .params = {DEFAULTS}, .multipliers = true},
    {"unknown", .params = {DEFAULTS}, .profile = PROFILE_UNKNOWN},
    {"warned", .params = {DEFAULTS, .warnings = true}, .profile = PROFILE_UNKNOWN},
    {"over", .params = {DEFAULTS}, .profile = PROFILE_OVER},
    {"tied", .params = {DEFAULTS}, .profile = PROFILE_TIED},
    {"place", .call = CALL_PLACE},
    {"place-multipliers", .call = CALL_PLACE, .request = REQUEST_MULTIPLIERS},
    {"place-eligible", .call = CALL_PLACE, .request = REQUEST_ELIGIBLE},
    {"release", .call = CALL_RELEASE},
};

#define SETTINGS (sizeof settings / sizeof settings[0])

struct options {
    const char *files[SIDES];
    bool only[SETTINGS];
    bool only_some;
    size_t sizes;
    size_t ranks[MOST_SIZES];
    size_t rounds;
};

static const char usage[] =
    "Usage: compare [OPTION]... BEFORE\n"
    "Times today's library beside the version before, BEFORE, which bench/before.sh has built.\n"
    "\n"
    "  --only SETTING    only this setting; may be given several times; one of\n"
    "                    default fraction no-filter weight multipliers unknown warned over tied (all kvca_select)\n"
    "                    place place-multipliers place-eligible release (a pool)\n"
    "  --ranks N[,N]...  only these numbers of ranks, each 1 to 65536, at most 16 of them\n"
    "  --rounds N        how often each is timed, 1 to 10001 (1001)\n"
    "  --quick           101 rounds\n"
    "  --today FILE      another build in the place of today's\n"
    "  --help            print this and exit\n"
    "\n"
    "Its status is 1 where a median is above 1.03.\n";

/* The pools of one size. */
struct all_pools {
    struct version_pools *of[SIDES][COPIES];
};

/* One setting at one size, for both sides. */
struct cell {
    const struct setting *setting;
    const struct copies *versions; /* by side */
    void *policies[SIDES][COPIES]; /* of CALL_SELECT */
    const struct all_pools *pools;
    struct version_sets sets;
    size_t copy;    /* whose turn it is */
    size_t repeats; /* picks, or batches of a pool */
};

struct figures {
    double nanoseconds[SIDES]; /* medians, for one pick */
    double ratio;              /* median */
    double low;                /* 10th percentile */
    double high;               /* 90th */
    bool same;                 /* whether both picked the same rows */
};

static size_t setting_named(const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            return i;
        }
    }
    fail("--only: found '%s', expected a setting; see --help", name);
}

static void apply(struct options *options, int option, const char *value)
{
    switch (option) {
    case 'o':
        options->only[setting_named(value)] = true;
        options->only_some = true;
        break;
    case 'n':
        options->sizes = option_ranks("--ranks", value, options->ranks);
        break;
    case 'r':
        options->rounds = (size_t)option_number("--rounds", value, 1, MOST_ROUNDS);
        break;
    case 'q':
        options->rounds = QUICK_ROUNDS;
        break;
    case 't':
        options->files[TODAY] = value;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default: /* getopt_long has said what is wrong */
        fputs("Try 'compare --help'.\n", stderr);
        exit(2);
    }
}

static struct options parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"only", required_argument, NULL, 'o'},
        {"ranks", required_argument, NULL, 'n'},
        {"rounds", required_argument, NULL, 'r'},
        {"quick", no_argument, NULL, 'q'},
        {"today", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {
        .files = {[TODAY] = TODAY_FILE},
        .sizes = 14,
        .ranks = {1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384},
        .rounds = ROUNDS,
    };
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        apply(&options, option, optarg);
    }
    if (optind != argc - 1) {
        fail("found %d files, expected one: the version before; see --help", argc - optind);
    }
    options.files[BEFORE] = argv[optind];
    return options;
}

/* The loader would give the same address for the same file. */
static const struct version *load_copy(const char *file, const void *bytes, size_t size)
{
    char path[] = "/tmp/kvca-compare-XXXXXX";
    int copy = mkstemp(path);
    if (copy < 0 || write(copy, bytes, size) != (ssize_t)size) {
        fail("%s: cannot be copied to %s", file, path);
    }
    close(copy);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    const struct version *version = object ? dlsym(object, VERSION_SYMBOL) : NULL;
    if (!version) {
        fail("%s: %s", file, dlerror());
    }
    return version;
}

static struct copies load(const char *name)
{
    struct copies copies;
    int file = open(name, O_RDONLY);
    off_t end = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    size_t size = end < 0 ? 0 : (size_t)end;
    void *bytes = allocate(size + 1, 1);
    if (size == 0 || pread(file, bytes, size, 0) != (ssize_t)size) {
        fail("%s: cannot be read", name);
    }
    close(file);
    for (size_t copy = 0; copy < COPIES; copy++) {
        copies.of[copy] = load_copy(name, bytes, size);
    }
    free(bytes);
    option_variant(copies.of[0]->variant());
    return copies;
}

/* A few, of which a single one is enough where it is large. */
static size_t pools_for(size_t ranks)
{
    if (ranks >= 4096) {
        return 1;
    }
    return ranks > 64 ? 4 : 16;
}

static struct version_sets sets_of(const struct loads *loads, bool multipliers)
{
    return (struct version_sets){
        .ranks = loads->ranks,
        .stride = loads->stride,
        .count = loads->sets,
        .worker_id = loads->worker_id,
        .dp_rank = loads->dp_rank,
        .decode_cost_blocks = loads->decode_cost_blocks,
        .active_requests = loads->active_requests,
        .total_kv_blocks = loads->total_kv_blocks,
        .preferred_taint_multiplier = multipliers ? loads->preferred_taint_multiplier : NULL,
        .request_blocks = loads->request_blocks,
    };
}

/* The nanoseconds of a pick. What was picked is added to *sum. */
static double time_side(const struct cell *cell, enum side side, uint64_t order, uint64_t *sum)
{
    const struct version *version = cell->versions[side].of[cell->copy];
    if (cell->setting->call == CALL_SELECT) {
        double start = now();
        *sum += version->select(cell->policies[side][cell->copy], &cell->sets, cell->repeats, order);
        return (now() - start) / (double)cell->repeats;
    }
    double took = 0;
    size_t bookings = 0;
    for (size_t i = 0; i < cell->repeats; i++) {
        double start = now();
        bookings += version->place(cell->pools->of[side][cell->copy], cell->setting->request, order + i, sum);
        double placed = now();
        version->release(cell->pools->of[side][cell->copy]);
        took += cell->setting->call == CALL_PLACE ? placed - start : now() - placed;
    }
    return took / (double)bookings;
}

/* How many picks or batches last about as long as a batch should, by the faster of two tries. */
static void calibrate(struct cell *cell)
{
    bool select = cell->setting->call == CALL_SELECT;
    double fastest = HUGE_VAL;
    uint64_t sum = 0;
    cell->repeats = select ? cell->sets.count : 1;
    for (int try = 0; try < 4; try++) {
        double start = now();
        time_side(cell, (enum side)(try % SIDES), 0, &sum);
        double took = (now() - start) / (double)cell->repeats;
        fastest = took < fastest ? took : fastest;
    }
    size_t repeats = (size_t)(BATCH / fastest) + 1;
    cell->repeats = select && repeats < FEWEST_PICKS ? FEWEST_PICKS : repeats;
}

static struct figures measure(struct cell *cell, size_t rounds)
{
    static double times[SIDES][MOST_ROUNDS];
    static double ratios[MOST_ROUNDS];
    uint64_t sums[SIDES] = {0};
    calibrate(cell);
    for (size_t round = 0; round < rounds; round++) {
        /* Before, today, today, before, or the other way round: neither gains by its turn. */
        enum side first = round % 2 == 0 ? BEFORE : TODAY;
        enum side second = round % 2 == 0 ? TODAY : BEFORE;
        uint64_t order = SEED + 2 * round;
        cell->copy = round * COPIES / rounds;
        times[first][round] = time_side(cell, first, order, &sums[first]);
        times[second][round] = time_side(cell, second, order, &sums[second]);
        times[second][round] += time_side(cell, second, order + 1, &sums[second]);
        times[first][round] += time_side(cell, first, order + 1, &sums[first]);
        ratios[round] = times[TODAY][round] / times[BEFORE][round];
    }
    sort(ratios, rounds);
    sort(times[BEFORE], rounds);
    sort(times[TODAY], rounds);
    return (struct figures){
        .nanoseconds = {times[BEFORE][rounds / 2] / 2, times[TODAY][rounds / 2] / 2},
        .ratio = ratios[rounds / 2],
        .low = ratios[rounds / 10],
        .high = ratios[rounds - 1 - rounds / 10],
        .same = sums[BEFORE] == sums[TODAY],
    };
}

static void print(const struct cell *cell, const struct figures *figures)
{
    printf("%-17s %6zu %9.1f %9.1f   %5.3f  %5.3f to %5.3f%s%s\n", cell->setting->name, cell->sets.ranks,
           figures->nanoseconds[BEFORE], figures->nanoseconds[TODAY], figures->ratio, figures->low, figures->high,
           figures->ratio > LIMIT ? "  SLOWER" : "", figures->same ? "" : "  (other rows are picked)");
    fflush(stdout);
}

/* Tells whether today's is slow. */
static bool compare_setting(const struct setting *setting, const struct loads *loads, const struct copies *versions,
                            const struct all_pools *pools, size_t rounds)
{
    struct cell cell = {
        .setting = setting,
        .versions = versions,
        .pools = pools,
        .sets = sets_of(&loads[setting->profile], setting->multipliers),
    };
    for (size_t i = 0; setting->call == CALL_SELECT && i < LOADED; i++) {
        cell.policies[i % SIDES][i / SIDES] = versions[i % SIDES].of[i / SIDES]->policy_new(&setting->params, SEED);
    }
    struct figures figures = measure(&cell, rounds);
    print(&cell, &figures);
    for (size_t i = 0; setting->call == CALL_SELECT && i < LOADED; i++) {
        versions[i % SIDES].of[i / SIDES]->policy_free(cell.policies[i % SIDES][i / SIDES]);
    }
    return figures.ratio > LIMIT;
}

/* Filling large ones takes seconds. */
static bool wants_pools(const struct options *options)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (options->only[i] && settings[i].call != CALL_SELECT) {
            return true;
        }
    }
    return !options->only_some;
}

/* Returns how many settings are slow. */
static size_t compare_size(const struct options *options, size_t ranks, const struct copies *versions)
{
    struct loads loads[PROFILES];
    struct all_pools pools = {0};
    for (int profile = 0; profile < PROFILES; profile++) {
        loads_make(&loads[profile], ranks, (enum profile)profile, SEED);
    }
    struct version_sets filling = sets_of(&loads[PROFILE_RANDOM], true);
    bool with_pools = wants_pools(options);
    for (size_t i = 0; with_pools && i < LOADED; i++) {
        pools.of[i % SIDES][i / SIDES] =
            versions[i % SIDES].of[i / SIDES]->pools_new(&filling, pools_for(ranks), SEED);
    }
    size_t slow = 0;
    for (size_t i = 0; i < SETTINGS; i++) {
        if (options->only[i] || !options->only_some) {
            slow += compare_setting(&settings[i], loads, versions, &pools, options->rounds);
        }
    }
    for (size_t i = 0; with_pools && i < LOADED; i++) {
        versions[i % SIDES].of[i / SIDES]->pools_free(pools.of[i % SIDES][i / SIDES]);
    }
    for (int profile = 0; profile < PROFILES; profile++) {
        loads_free(&loads[profile]);
    }
    return slow;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct copies versions[SIDES];
    for (int side = 0; side < SIDES; side++) {
        versions[side] = load(options.files[side]);
    }
    double start = now();
    machine_print();
    printf("before     kvca %s, %s: %s\n", versions[BEFORE].of[0]->number(), versions[BEFORE].of[0]->variant(),
           options.files[BEFORE]);
    printf("today      kvca %s, %s: %s\n", versions[TODAY].of[0]->number(), versions[TODAY].of[0]->variant(),
           options.files[TODAY]);
    printf("run        seed %d, %zu rounds, about %d us timed at once\n", SEED, options.rounds, BATCH / 1000);
    machine_warn_of_load();
    printf("\n%-17s %6s %9s %9s   %5s  %s\n", "setting", "ranks", "before ns", "today ns", "ratio",
           "10th to 90th percentile");
    size_t slow = 0;
    for (size_t size = 0; size < options.sizes; size++) {
        slow += compare_size(&options, options.ranks[size], versions);
    }
    printf("\n%zu slower by more than %.0f %%; %.0f s\n", slow, (LIMIT - 1) * 100, (now() - start) / 1e9);
    return slow > 0;
}
