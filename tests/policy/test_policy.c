/* SPDX-License-Identifier: Apache-2.0 */
/* The policy handle: draws, seeds, warnings, and many threads on one policy. */
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "rule/random.h"

#define THREADS 8

static struct rank_set tied_set(size_t count)
{
    struct rank_set set = {.count = count};
    for (size_t row = 0; row < count; row++) {
        set.worker_id[row] = row;
        set.total_kv_blocks[row] = 100;
        set.preferred_taint_multiplier[row] = 1.0;
    }
    return set;
}

/*
 * Pearson's chi-squared against the 0.999 quantile of its distribution. The seed is fixed, so this passes always or
 * never.
 */
static void draw_is_uniform(void **state)
{
    (void)state;
    static const struct {
        size_t ties;
        double bound;
    } rows[] = {{2, 10.83}, {3, 13.82}, {7, 22.46}, {64, 103.44}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t ties = rows[i].ties;
        struct rank_set set = tied_set(ties);
        kvca_ranks ranks = ranks_of(&set);
        kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
        const size_t expected = 2000;
        size_t drawn[64] = {0};
        for (size_t draw = 0; draw < expected * ties; draw++) {
            kvca_selection selection = {.size = sizeof selection};
            assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
            drawn[selection.row]++;
        }
        kvca_policy_free(policy);
        double chi_squared = 0;
        for (size_t row = 0; row < ties; row++) {
            double difference = (double)drawn[row] - (double)expected;
            chi_squared += difference * difference / (double)expected;
        }
        print_message("%zu ties: chi-squared %g, bound %g\n", ties, chi_squared, rows[i].bound);
        assert_true(chi_squared < rows[i].bound);
    }
}

/* With 3 x 2^62 results, a plain remainder would give the first third half of all draws. */
static void draw_has_no_modulo_bias(void **state)
{
    (void)state;
    _Atomic uint64_t generator = 5;
    const uint64_t third = UINT64_C(1) << 62;
    int first_third = 0;
    for (int i = 0; i < 30000; i++) {
        uint64_t drawn = kvca_draw(&generator, 3 * third);
        assert_true(drawn < 3 * third);
        first_third += drawn < third;
    }
    assert_in_range(first_third, 9700, 10300);
    assert_int_equal(kvca_draw(&generator, 1), 0);
}

/* In every implementation, SplitMix64 from seed 0 begins with these numbers. */
static void generator_is_splitmix64(void **state)
{
    (void)state;
    _Atomic uint64_t generator = 0;
    static const uint64_t numbers[] = {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        assert_int_equal(kvca_draw(&generator, UINT64_MAX), numbers[i] % UINT64_MAX);
    }
}

static void pick_rows(kvca_policy *policy, size_t *rows, size_t count)
{
    struct rank_set set = tied_set(MOST_RANKS);
    kvca_ranks ranks = ranks_of(&set);
    for (size_t i = 0; i < count; i++) {
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        rows[i] = selection.row;
    }
}

static void same_seed_gives_same_picks(void **state)
{
    (void)state;
    size_t first[32];
    size_t second[32];
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    pick_rows(policy, first, 32);
    assert_int_equal(kvca_policy_set_seed(policy, 1), KVCA_OK);
    pick_rows(policy, second, 32);
    assert_memory_equal(first, second, sizeof first);
    assert_int_equal(kvca_policy_set_seed(policy, 2), KVCA_OK);
    pick_rows(policy, second, 32);
    assert_memory_not_equal(first, second, sizeof first);
    kvca_policy_free(policy);
}

/* 32 draws among 128 agree by chance once in 2^224. */
static void new_policies_draw_differently(void **state)
{
    (void)state;
    size_t rows[2][32];
    for (int i = 0; i < 2; i++) {
        const kvca_params params = KVCA_PARAMS_DEFAULT;
        kvca_policy *policy;
        assert_int_equal(kvca_policy_new(&params, &policy), KVCA_OK);
        pick_rows(policy, rows[i], 32);
        kvca_policy_free(policy);
    }
    assert_memory_not_equal(rows[0], rows[1], sizeof rows[0]);
}

static void nothing_is_drawn_without_a_tie(void **state)
{
    (void)state;
    size_t expected[4];
    size_t rows[4];
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    pick_rows(policy, expected, 4);
    assert_int_equal(kvca_policy_set_seed(policy, 1), KVCA_OK);
    struct rank_set single = tied_set(1);
    struct rank_set tied = tied_set(5);
    kvca_ranks ranks = ranks_of(&single);
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
    ranks = ranks_of(&tied);
    assert_int_equal(kvca_tie_set(policy, &ranks, rows, 4, &selection), KVCA_OK);
    pick_rows(policy, rows, 4);
    assert_memory_equal(rows, expected, sizeof rows);
    kvca_policy_free(policy);
}

static void a_tie_set_fills_the_room_it_gets(void **state)
{
    (void)state;
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    struct rank_set set = tied_set(5);
    set.active_requests[1] = 1;
    const size_t tied[] = {0, 2, 3, 4};
    kvca_ranks ranks = ranks_of(&set);
    for (size_t room = 0; room <= 6; room++) {
        size_t rows[6] = {99, 99, 99, 99, 99, 99};
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_tie_set(policy, &ranks, rows, room, &selection), KVCA_OK);
        assert_int_equal(selection.ties, 4);
        assert_int_equal(selection.row, 0);
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(rows[i], i < room && i < 4 ? tied[i] : 99);
        }
    }
    kvca_policy_free(policy);
}

static void params_are_copied(void **state)
{
    (void)state;
    kvca_params params = PARAMS(0.5, false, 2.0, 7);
    kvca_policy *policy = make_policy(params);
    params.capacity_blocks = 8;
    const kvca_params *kept = kvca_policy_params(policy);
    assert_true(kept->capacity_fraction == 0.5);
    assert_false(kept->count_priority);
    assert_true(kept->decode_active_request_weight == 2.0);
    assert_int_equal(kept->capacity_blocks, 7);
    kvca_policy_free(policy);
}

/* Counts warnings by worker. Here worker ids are row numbers. */
struct counter {
    _Atomic unsigned given[MOST_RANKS];
};

static void count_warning(void *user, const kvca_warning *warning)
{
    struct counter *counter = user;
    atomic_fetch_add(&counter->given[warning->worker_id], 1);
}

static struct rank_set unknown_set(size_t count)
{
    struct rank_set set = tied_set(count);
    memset(set.total_kv_blocks, 0, sizeof set.total_kv_blocks);
    return set;
}

static void a_rank_is_warned_about_once(void **state)
{
    (void)state;
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    struct rank_set set = unknown_set(MOST_RANKS);
    kvca_ranks ranks = ranks_of(&set);
    struct counter counter = {0};
    kvca_selection selection = {.size = sizeof selection};
    assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK); /* nobody listens yet */
    assert_int_equal(kvca_policy_set_warning(policy, count_warning, &counter), KVCA_OK);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        assert_int_equal(selection.unknown_capacity, MOST_RANKS);
    }
    for (size_t row = 0; row < MOST_RANKS; row++) {
        assert_int_equal(counter.given[row], 1);
    }
    kvca_policy_free(policy);
}

/* Enough selections that each of so many ranks is seen twelve times on average. */
#define WATCHED 64
#define SOON (WATCHED * 16 * 12)

static void a_rank_that_replaces_another_is_warned_about(void **state)
{
    (void)state;
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    struct rank_set set = unknown_set(WATCHED);
    kvca_ranks ranks = ranks_of(&set);
    struct counter counter = {0};
    kvca_selection selection = {.size = sizeof selection};
    ranks.count = WATCHED - 1; /* the last one comes later */
    assert_int_equal(kvca_policy_set_warning(policy, count_warning, &counter), KVCA_OK);
    assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
    set.worker_id[5] = WATCHED - 1;
    for (int i = 0; i < SOON; i++) {
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
    }
    for (size_t worker = 0; worker < WATCHED; worker++) {
        assert_int_equal(counter.given[worker], 1);
    }
    kvca_policy_free(policy);
}

/* A change in the number of ranks is noticed at once. */
static void an_added_rank_is_warned_about_at_once(void **state)
{
    (void)state;
    kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
    struct rank_set set = unknown_set(WATCHED);
    kvca_ranks ranks = ranks_of(&set);
    struct counter counter = {0};
    assert_int_equal(kvca_policy_set_warning(policy, count_warning, &counter), KVCA_OK);
    for (ranks.count = 1; ranks.count <= WATCHED; ranks.count++) {
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        assert_int_equal(counter.given[ranks.count - 1], 1);
    }
    kvca_policy_free(policy);
}

/* After a pause, in which nothing was unknown or nobody listened, the number of ranks from before does not count. */
static void ranks_after_a_pause_are_warned_about_at_once(void **state)
{
    (void)state;
    for (int deaf = 0; deaf < 2; deaf++) {
        kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
        struct rank_set first = unknown_set(WATCHED);
        struct rank_set pause = tied_set(WATCHED);
        struct rank_set second = unknown_set(WATCHED);
        struct counter counter = {0};
        kvca_selection selection = {.size = sizeof selection};
        kvca_ranks ranks = ranks_of(&first);
        assert_int_equal(kvca_policy_set_warning(policy, count_warning, &counter), KVCA_OK);
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        if (deaf) {
            assert_int_equal(kvca_policy_set_warning(policy, NULL, NULL), KVCA_OK);
        }
        ranks = ranks_of(deaf ? &first : &pause);
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        if (deaf) {
            assert_int_equal(kvca_policy_set_warning(policy, count_warning, &counter), KVCA_OK);
        }
        for (size_t row = 0; row < WATCHED; row++) {
            second.worker_id[row] = WATCHED + row;
        }
        ranks = ranks_of(&second);
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        for (size_t worker = 0; worker < 2 * WATCHED; worker++) {
            assert_int_equal(counter.given[worker], 1);
        }
        kvca_policy_free(policy);
    }
}

/* Hosts pass only the eligible ranks. These change from request to request, but their number often stays. */
static void ranks_of_changing_subsets_are_all_warned_about(void **state)
{
    (void)state;
    for (size_t subsets = 2; subsets <= 16; subsets *= 2) {
        kvca_policy *policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT);
        struct rank_set set = unknown_set(WATCHED);
        kvca_ranks ranks = ranks_of(&set);
        struct counter counter = {0};
        assert_int_equal(kvca_policy_set_warning(policy, count_warning, &counter), KVCA_OK);
        ranks.count = set.count / subsets;
        for (size_t i = 0; i < SOON; i++) {
            kvca_selection selection = {.size = sizeof selection};
            ranks.worker_id = set.worker_id + i % subsets * ranks.count;
            assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        }
        for (size_t worker = 0; worker < subsets * ranks.count; worker++) {
            if (counter.given[worker] != 1) {
                fail_msg("%zu subsets: %u warnings of worker %zu", subsets, counter.given[worker], worker);
            }
        }
        kvca_policy_free(policy);
    }
}

struct shared {
    kvca_policy *policy;
    kvca_ranks ranks;
    _Atomic size_t picked[MOST_RANKS];
};

static void *select_many_times(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < 2000; i++) {
        kvca_selection selection = {.size = sizeof selection, .row = 0};
        kvca_status status = kvca_select(shared->policy, &shared->ranks, &selection);
        atomic_fetch_add(&shared->picked[status == KVCA_OK ? selection.row : 0], 1);
    }
    return NULL;
}

static void a_rank_is_warned_about_once_under_threads(void **state)
{
    (void)state;
    struct rank_set set = unknown_set(MOST_RANKS);
    struct counter counter = {0};
    struct shared shared = {.policy = make_policy((kvca_params)KVCA_PARAMS_DEFAULT), .ranks = ranks_of(&set)};
    assert_int_equal(kvca_policy_set_warning(shared.policy, count_warning, &counter), KVCA_OK);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, select_many_times, &shared), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    size_t picks = 0;
    for (size_t row = 0; row < MOST_RANKS; row++) {
        assert_int_equal(counter.given[row], 1);
        assert_true(shared.picked[row] > 0);
        picks += shared.picked[row];
    }
    assert_int_equal(picks, THREADS * 2000);
    kvca_policy_free(shared.policy);
}

int main(void)
{
    require_variant();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draw_is_uniform),
        cmocka_unit_test(draw_has_no_modulo_bias),
        cmocka_unit_test(generator_is_splitmix64),
        cmocka_unit_test(same_seed_gives_same_picks),
        cmocka_unit_test(new_policies_draw_differently),
        cmocka_unit_test(nothing_is_drawn_without_a_tie),
        cmocka_unit_test(a_tie_set_fills_the_room_it_gets),
        cmocka_unit_test(params_are_copied),
        cmocka_unit_test(a_rank_is_warned_about_once),
        cmocka_unit_test(a_rank_that_replaces_another_is_warned_about),
        cmocka_unit_test(an_added_rank_is_warned_about_at_once),
        cmocka_unit_test(ranks_after_a_pause_are_warned_about_at_once),
        cmocka_unit_test(ranks_of_changing_subsets_are_all_warned_about),
        cmocka_unit_test(a_rank_is_warned_about_once_under_threads),
    };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
