/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What depends on how many rows there are and where they lie: tie sets known beforehand in sets of every size around
 * the vectors, groups, chunks and kept ties of kernel.h; the draw among them; that any single row is found; and
 * that nothing is read beside a caller's columns.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "support/test.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rule/random.h"

/* How the rows of a set are made: what a tied row is like, and what others are. */
struct shape {
    const char *name;
    uint64_t tied_blocks;
    uint64_t tied_requests;
    uint64_t request_blocks;
    double weight;
    bool count_priority;
    bool multipliers;
    bool over; /* all rows are: the smallest D wins */
};

static const struct shape shapes[] = {
    {"N and D", 500, 7, 100, 0.0, true, false, false},
    {"D alone", 500, 7, 100, 0.0, false, false, false},
    {"D + W N", 500, 7, 100, 3.5, false, false, false},
    {"multipliers", 500, 7, 100, 0.3, true, true, false},
    {"multipliers alone", 500, 7, 100, 0.3, false, true, false},
    {"large numbers", UINT64_C(1) << 40, UINT64_C(1) << 33, 100, 0.0, true, false, false},
    {"nothing fits", 5000, 7, 100, 0.0, true, false, true},
};

#define LARGEST 20000

/* A set of a shape, with its tie set. */
struct scene {
    const struct shape *shape;
    size_t count;
    uint64_t blocks[LARGEST];
    uint64_t requests[LARGEST];
    uint64_t capacity[LARGEST];
    double multiplier[LARGEST];
    size_t tied[LARGEST];
    size_t ties;
};

/* A row that cannot win, for one reason or another. */
static void make_loser(struct scene *scene, size_t row, uint64_t *random)
{
    const struct shape *shape = scene->shape;
    scene->blocks[row] = shape->tied_blocks + 1 + random_below(random, 50);
    scene->requests[row] = shape->tied_requests + random_below(random, 2);
    scene->capacity[row] = shape->over ? 10 : 2 * shape->tied_blocks;
    scene->multiplier[row] = 1.0 + (double)random_below(random, 2);
    if (!shape->over && random_below(random, 4) == 0) { /* it would win if it fitted */
        scene->blocks[row] = shape->tied_blocks - 1;
        scene->requests[row] = 0;
        scene->capacity[row] = shape->tied_blocks - 1 + shape->request_blocks - 1;
    }
}

static void make_winner(struct scene *scene, size_t row)
{
    scene->blocks[row] = scene->shape->tied_blocks;
    scene->requests[row] = scene->shape->tied_requests;
    scene->capacity[row] = scene->shape->over ? 10 : scene->shape->tied_blocks + scene->shape->request_blocks;
    scene->multiplier[row] = 1.0;
    scene->tied[scene->ties++] = row;
}

/* Where the tied rows are. */
enum places { FIRST, LAST, ENDS, GROUPS, SCATTERED, EVERYWHERE, PLACES };

static bool is_tied(const struct scene *scene, enum places places, size_t row, uint64_t *random)
{
    switch (places) {
    case FIRST:
        return row == 0;
    case LAST:
        return row == scene->count - 1;
    case ENDS:
        return row == 0 || row == scene->count - 1;
    case GROUPS:
        return row % 64 == 63 || row == scene->count / 2;
    case SCATTERED:
        return random_below(random, 20) == 0 || row == scene->count / 3;
    default:
        return true;
    }
}

static void make_scene(struct scene *scene, const struct shape *shape, enum places places, size_t count,
                       uint64_t *random)
{
    scene->shape = shape;
    scene->count = count;
    scene->ties = 0;
    for (size_t row = 0; row < count; row++) {
        if (is_tied(scene, places, row, random)) {
            make_winner(scene, row);
        } else {
            make_loser(scene, row, random);
        }
    }
}

static kvca_ranks ranks_in(const struct scene *scene)
{
    return (kvca_ranks){
        .size = sizeof(kvca_ranks),
        .count = scene->count,
        .decode_cost_blocks = scene->blocks,
        .active_requests = scene->requests,
        .total_kv_blocks = scene->capacity,
        .preferred_taint_multiplier = scene->shape->multipliers ? scene->multiplier : NULL,
        .request_blocks = scene->shape->request_blocks,
    };
}

static kvca_policy *policy_for(const struct shape *shape)
{
    return make_policy((kvca_params)PARAMS(1.0, shape->count_priority, shape->weight, 0));
}

/* The row that a seed draws: every variant must draw this one. */
static size_t expected_draw(const struct scene *scene, uint64_t seed)
{
    _Atomic uint64_t generator = seed;
    return scene->ties == 1 ? scene->tied[0] : scene->tied[kvca_draw(&generator, scene->ties)];
}

static void check_scene(const struct scene *scene, kvca_policy *policy, size_t *rows, enum places places)
{
    kvca_ranks ranks = ranks_in(scene);
    kvca_selection selection = {.size = sizeof selection, .row = SIZE_MAX};
    assert_int_equal(kvca_tie_set(policy, &ranks, rows, scene->count, &selection), KVCA_OK);
    bool same = selection.ties == scene->ties && memcmp(rows, scene->tied, scene->ties * sizeof *rows) == 0 &&
                selection.row == scene->tied[0];
    for (uint64_t seed = 0; same && seed < 4; seed++) {
        assert_int_equal(kvca_policy_set_seed(policy, seed), KVCA_OK);
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        same = selection.ties == scene->ties && selection.row == expected_draw(scene, seed) &&
               (selection.outcome != KVCA_FIT) == scene->shape->over;
    }
    if (!same) {
        fail_msg("%s, %zu rows, places %d: %zu ties and row %zu; expected %zu ties, the first %zu",
                 scene->shape->name, scene->count, (int)places, selection.ties, selection.row, scene->ties,
                 scene->tied[0]);
    }
}

static void sets_of_every_size_have_the_ties_that_they_were_given(void **state)
{
    static const size_t larger[] = {191,  192,  193,   1023,  1024,  1025,  1088,
                                    2049, 4096, 16383, 16384, 16385, 16449, LARGEST};
    struct scene *scene = *state;
    size_t *rows = malloc(LARGEST * sizeof *rows);
    size_t step = 130 / rounds(130);
    uint64_t random = 1;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        kvca_policy *policy = policy_for(&shapes[i]);
        const size_t last = 130 + COUNT(larger);
        for (size_t size = 1; size <= last; size += size < last && size + step > last ? last - size : step) {
            for (enum places places = FIRST; places < PLACES; places++) {
                make_scene(scene, &shapes[i], places, size <= 130 ? size : larger[size - 131], &random);
                check_scene(scene, policy, rows, places);
            }
        }
        kvca_policy_free(policy);
    }
    free(rows);
}

/* What capacities are like where a single row is to be found. */
enum reports { NOBODY, SOME, ALL };

static const struct outlook {
    const char *name;
    enum reports reports;
    double fraction;
    uint64_t blocks;
} outlooks[] = {
    {"no capacities", NOBODY, 1.0, 500},
    {"capacities", ALL, 1.0, 500},
    {"some capacities", SOME, 1.0, 500},
    {"shares of capacities", ALL, 0.5, 500},
    {"shares of some", SOME, 0.5, 500},
    {"large numbers", NOBODY, 1.0, UINT64_C(1) << 40},
    {"large shares", SOME, 0.5, UINT64_C(1) << 40},
};

#define SMALL_CAPACITY 10

/* One of the rows that nobody looks for: it has more requests than the one that is, or does not fit. */
static void make_other(struct scene *scene, const struct outlook *outlook, size_t row)
{
    scene->blocks[row] = outlook->blocks;
    scene->requests[row] = 1;
    scene->capacity[row] = outlook->reports == SOME && row % 3 == 0 ? 0 : SMALL_CAPACITY;
    scene->multiplier[row] = 1.0;
}

static void make_wanted(struct scene *scene, const struct outlook *outlook, size_t row)
{
    scene->requests[row] = outlook->reports == NOBODY ? 0 : 2;
    scene->capacity[row] = 4 * outlook->blocks;
}

static kvca_ranks ranks_before(const struct scene *scene, const struct outlook *outlook)
{
    return (kvca_ranks){
        .size = sizeof(kvca_ranks),
        .count = scene->count,
        .decode_cost_blocks = scene->blocks,
        .active_requests = scene->requests,
        .total_kv_blocks = outlook->reports == NOBODY ? NULL : scene->capacity,
        .request_blocks = 100,
    };
}

/* The wanted row wins alone, whichever way rows are looked at. */
static void check_wins(const struct scene *scene, const struct outlook *outlook, kvca_policy *policy, size_t row,
                       bool scaled)
{
    kvca_ranks ranks = ranks_before(scene, outlook);
    ranks.preferred_taint_multiplier = scaled ? scene->multiplier : NULL;
    size_t fits = outlook->reports == NOBODY ? scene->count : 1;
    kvca_selection told[2] = {{.size = sizeof told[0]}, {.size = sizeof told[1]}};
    assert_int_equal(kvca_select(policy, &ranks, &told[0]), KVCA_OK);
    assert_int_equal(kvca_tie_set(policy, &ranks, NULL, 0, &told[1]), KVCA_OK);
    for (size_t i = 0; i < 2; i++) {
        if (told[i].row != row || told[i].ties != 1 || told[i].fits != fits || told[i].outcome != KVCA_FIT) {
            fail_msg("%s, %s multipliers, row %zu of %zu: %s tells row %zu, %zu ties, %zu that fit; expected %zu",
                     outlook->name, scaled ? "with" : "no", row, scene->count,
                     i == 0 ? "kvca_select" : "kvca_tie_set", told[i].row, told[i].ties, told[i].fits, fits);
        }
    }
}

/* Where its multiplier is not sound, that is the answer. */
static void check_unsound(struct scene *scene, const struct outlook *outlook, kvca_policy *policy, size_t row)
{
    kvca_ranks ranks = ranks_before(scene, outlook);
    ranks.preferred_taint_multiplier = scene->multiplier;
    scene->multiplier[row] = HUGE_VAL;
    kvca_selection selection = {.size = sizeof selection};
    kvca_status selected = kvca_select(policy, &ranks, &selection);
    kvca_status listed = kvca_tie_set(policy, &ranks, NULL, 0, &selection);
    if (selected != KVCA_ERR_PREFERRED_TAINT_MULTIPLIER || listed != selected) {
        fail_msg("%s, row %zu of %zu has an infinite multiplier: statuses %d and %d", outlook->name, row,
                 scene->count, (int)selected, (int)listed);
    }
}

/* In sets of all sizes up to more than three groups, and in one of more than a chunk. */
static void any_single_row_is_found(void **state)
{
    struct scene *scene = *state;
    size_t step = 200 / rounds(200);
    for (size_t i = 0; i < COUNT(outlooks); i++) {
        const struct outlook *outlook = &outlooks[i];
        uint64_t unreported = outlook->reports == NOBODY ? 0 : SMALL_CAPACITY;
        kvca_policy *policy = make_policy((kvca_params)PARAMS(outlook->fraction, true, 0.3, unreported));
        for (size_t size = 1; size <= 201; size += step) {
            scene->count = size <= 200 ? size : 1025;
            for (size_t row = 0; row < scene->count; row++) {
                make_other(scene, outlook, row);
            }
            for (size_t row = size % step; row < scene->count; row += step) {
                make_wanted(scene, outlook, row);
                check_wins(scene, outlook, policy, row, false);
                check_wins(scene, outlook, policy, row, true);
                check_unsound(scene, outlook, policy, row);
                make_other(scene, outlook, row);
            }
        }
        kvca_policy_free(policy);
    }
}

/* What has no rival uses no number up: the next draw is the same whether it came before or not. */
static void only_ties_are_drawn(void **state)
{
    struct scene *scene = *state;
    static const size_t counts[] = {1, 2, 64, 65, 130, 20000};
    uint64_t random = 4;
    kvca_policy *policy = policy_for(&shapes[0]);
    for (size_t i = 0; i < COUNT(counts); i++) {
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_policy_set_seed(policy, 7), KVCA_OK);
        make_scene(scene, &shapes[0], LAST, counts[i], &random);
        kvca_ranks untied = ranks_in(scene);
        assert_int_equal(kvca_select(policy, &untied, &selection), KVCA_OK);
        assert_int_equal(selection.row, counts[i] - 1);
        make_scene(scene, &shapes[0], EVERYWHERE, 1000, &random);
        kvca_ranks tied = ranks_in(scene);
        assert_int_equal(kvca_select(policy, &tied, &selection), KVCA_OK);
        if (selection.row != expected_draw(scene, 7)) {
            fail_msg("after %zu rows without a tie, another row is drawn", counts[i]);
        }
    }
    kvca_policy_free(policy);
}

/* Past the groups whose ties are kept, those of the first and the last row are found again, over groups without any. */
static void ties_are_found_again_past_groups_that_do_not_fit(void **state)
{
    struct scene *scene = *state;
    uint64_t random = 3;
    const size_t first_found = (size_t)256 * 64;
    make_scene(scene, &shapes[0], ENDS, first_found + 3 * 64, &random);
    for (size_t row = first_found; row < first_found + 2 * 64; row++) {
        scene->capacity[row] = 1;
    }
    kvca_policy *policy = policy_for(&shapes[0]);
    size_t *rows = malloc(LARGEST * sizeof *rows);
    check_scene(scene, policy, rows, ENDS);
    free(rows);
    kvca_policy_free(policy);
}

/* Memory between two pages that may not be touched. */
struct cage {
    char *pages;
    size_t bytes; /* between the guards */
    size_t page;
};

static struct cage make_cage(size_t bytes)
{
    struct cage cage = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    cage.bytes = (bytes + cage.page - 1) / cage.page * cage.page;
    cage.pages = mmap(NULL, cage.bytes + 2 * cage.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(cage.pages != MAP_FAILED);
    assert_int_equal(mprotect(cage.pages, cage.page, PROT_NONE), 0);
    assert_int_equal(mprotect(cage.pages + cage.page + cage.bytes, cage.page, PROT_NONE), 0);
    return cage;
}

static void free_cage(const struct cage *cage)
{
    assert_int_equal(munmap(cage->pages, cage->bytes + 2 * cage->page), 0);
}

/* A copy that begins where the cage does, or ends there. */
static const void *cage_in(const struct cage *cage, const void *values, size_t bytes, bool at_end)
{
    char *at = cage->pages + cage->page + (at_end ? cage->bytes - bytes : 0);
    memcpy(at, values, bytes);
    return at;
}

static void count_warning(void *user, const kvca_warning *warning)
{
    (void)warning;
    ++*(size_t *)user;
}

static void check_caged(const struct scene *scene, kvca_policy *policy, const struct cage *cages, bool at_end)
{
    static const uint64_t workers[LARGEST];
    static const uint32_t dp_ranks[LARGEST];
    size_t *rows = malloc(scene->count * sizeof *rows);
    size_t bytes = scene->count * sizeof(uint64_t);
    kvca_ranks ranks = ranks_in(scene);
    ranks.worker_id = cage_in(&cages[0], workers, bytes, at_end);
    ranks.dp_rank = cage_in(&cages[1], dp_ranks, bytes / 2, at_end);
    ranks.decode_cost_blocks = cage_in(&cages[2], scene->blocks, bytes, at_end);
    ranks.active_requests = cage_in(&cages[3], scene->requests, bytes, at_end);
    ranks.total_kv_blocks = cage_in(&cages[4], scene->capacity, bytes, at_end);
    if (scene->shape->multipliers) {
        ranks.preferred_taint_multiplier = cage_in(&cages[5], scene->multiplier, bytes, at_end);
    }
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
    assert_int_equal(selection.ties, scene->ties);
    assert_int_equal(kvca_tie_set(policy, &ranks, rows, scene->count, &selection), KVCA_OK);
    assert_int_equal(selection.ties, scene->ties);
    free(rows);
}

static void nothing_is_read_beside_the_columns(void **state)
{
    struct scene *scene = *state;
    struct cage cages[6];
    uint64_t random = 2;
    size_t warnings = 0;
    for (size_t i = 0; i < COUNT(cages); i++) {
        cages[i] = make_cage(1100 * sizeof(uint64_t));
    }
    for (size_t i = 0; i < COUNT(shapes); i++) {
        kvca_policy *policy = policy_for(&shapes[i]);
        assert_int_equal(kvca_policy_set_warning(policy, count_warning, &warnings), KVCA_OK);
        for (size_t count = 1; count <= 1100; count += count < 140 ? 1 : 97) {
            make_scene(scene, &shapes[i], SCATTERED, count, &random);
            check_caged(scene, policy, cages, false);
            check_caged(scene, policy, cages, true);
        }
        kvca_policy_free(policy);
    }
    for (size_t i = 0; i < COUNT(cages); i++) {
        free_cage(&cages[i]);
    }
}

int main(void)
{
    require_variant();
    struct scene *scene = malloc(sizeof *scene);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(sets_of_every_size_have_the_ties_that_they_were_given, scene),
        cmocka_unit_test_prestate(any_single_row_is_found, scene),
        cmocka_unit_test_prestate(only_ties_are_drawn, scene),
        cmocka_unit_test_prestate(ties_are_found_again_past_groups_that_do_not_fit, scene),
        cmocka_unit_test_prestate(nothing_is_read_beside_the_columns, scene),
    };
    int failed = cmocka_run_group_tests_name("scan", tests, NULL, NULL);
    free(scene);
    return failed;
}
