/* SPDX-License-Identifier: Apache-2.0 */
/* The set of warned ranks: its size never changes, and it still knows the ranks in use. */
#include "support/test.h"

#include "policy/warned.h"

/* One set at a time. It is too large for the stack of some threads. */
static struct kvca_warned *new_set(void)
{
    struct kvca_warned *warned = aligned_alloc(_Alignof(struct kvca_warned), sizeof *warned);
    assert_non_null(warned);
    memset(warned, 0, sizeof *warned);
    return warned;
}

/* One selection over the ranks first .. first + count - 1, each of another worker. Returns how many were new. */
static size_t show(struct kvca_warned *warned, uint64_t first, size_t count)
{
    uint64_t era = kvca_warned_begin(warned);
    size_t fresh = 0;
    for (uint64_t worker = first; worker < first + count; worker++) {
        fresh += kvca_warned_add(warned, era, worker, 0);
    }
    return fresh;
}

static void ranks_are_told_apart(void **state)
{
    (void)state;
    struct kvca_warned *warned = new_set();
    uint64_t era = kvca_warned_begin(warned);
    for (uint64_t worker = 0; worker < 16; worker++) {
        for (uint32_t dp_rank = 0; dp_rank < 16; dp_rank++) {
            assert_true(kvca_warned_add(warned, era, worker << 32, dp_rank));
            assert_false(kvca_warned_add(warned, era, worker << 32, dp_rank));
        }
    }
    assert_true(kvca_warned_add(warned, era, UINT64_MAX, UINT32_MAX));
    free(warned);
}

/* Workers restart under new names for months, beside 100 that stay. Each newcomer is new; the others never are. */
static void only_new_ranks_are_warned_about(void **state)
{
    (void)state;
    struct kvca_warned *warned = new_set();
    assert_int_equal(show(warned, 0, 100), 100);
    size_t fresh = 0;
    for (uint64_t worker = 1000; worker < 1000 + 50000; worker++) {
        fresh += show(warned, worker, 1);
        assert_int_equal(show(warned, 0, 100), 0);
    }
    assert_int_equal(fresh, 50000);
    free(warned);
}

/* There are more ranks than the set remembers. Some get no warning, but none gets two. */
static void too_many_ranks_do_not_flood(void **state)
{
    (void)state;
    struct kvca_warned *warned = new_set();
    size_t first = show(warned, 0, 3 * KVCA_WARNED_RANKS);
    assert_in_range(first, KVCA_WARNED_RANKS - KVCA_WARNED_RANKS / 100, KVCA_WARNED_RANKS);
    size_t later = 0;
    for (int i = 0; i < 600; i++) {
        later += show(warned, 0, 3 * KVCA_WARNED_RANKS);
    }
    assert_true(first + later <= KVCA_WARNED_RANKS);
    free(warned);
}

/* The same if a host shows only a few of its ranks in each selection, so that each rank is seen seldom. */
static void too_many_ranks_in_portions_do_not_flood(void **state)
{
    (void)state;
    static const size_t portions[] = {1, 8, 100};
    for (size_t i = 0; i < COUNT(portions); i++) {
        for (size_t ranks = 1000; ranks <= 25000; ranks *= 5) {
            struct kvca_warned *warned = new_set();
            uint64_t random = 1;
            size_t fresh = 0;
            for (size_t shown = 0; shown < rounds(4000000); shown += portions[i]) {
                fresh += show(warned, random_below(&random, ranks), portions[i]);
            }
            if (fresh > (ranks < KVCA_WARNED_RANKS ? ranks + portions[i] : KVCA_WARNED_RANKS)) {
                fail_msg("%zu of %zu ranks at a time: %zu warnings", portions[i], ranks, fresh);
            }
            free(warned);
        }
    }
}

/* Half as many ranks as the set remembers all find a place. */
static void two_thousand_ranks_are_all_warned_about(void **state)
{
    (void)state;
    struct kvca_warned *warned = new_set();
    assert_int_equal(show(warned, 0, 2000), 2000);
    assert_int_equal(show(warned, 0, 2000), 0);
    free(warned);
}

/* A thread is held up in its pass while others go on. It does not forget ranks that they use. */
static void a_late_pass_forgets_nobody(void **state)
{
    (void)state;
    struct kvca_warned *warned = new_set();
    size_t given = 0;
    for (int i = 0; i < 255; i++) {
        given += show(warned, 0, 2000);
    }
    uint64_t late = kvca_warned_begin(warned);
    for (int i = 0; i < 600; i++) {
        given += show(warned, 0, 2000);
    }
    for (uint64_t worker = 5000; worker < 9000; worker++) {
        kvca_warned_add(warned, late, worker, 0);
    }
    given += show(warned, 0, 2000);
    assert_int_equal(given, 2000);
    free(warned);
}

/* After a whole fleet has left, its places go to the next fleet. */
static void a_fleet_is_replaced(void **state)
{
    (void)state;
    struct kvca_warned *warned = new_set();
    for (int i = 0; i < 1000; i++) {
        show(warned, 0, KVCA_WARNED_RANKS);
    }
    size_t fresh = 0;
    for (int i = 0; i < 1000; i++) {
        fresh += show(warned, 1000000, 1000);
    }
    assert_int_equal(fresh, 1000);
    free(warned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_told_apart),
        cmocka_unit_test(only_new_ranks_are_warned_about),
        cmocka_unit_test(too_many_ranks_do_not_flood),
        cmocka_unit_test(too_many_ranks_in_portions_do_not_flood),
        cmocka_unit_test(two_thousand_ranks_are_all_warned_about),
        cmocka_unit_test(a_late_pass_forgets_nobody),
        cmocka_unit_test(a_fleet_is_replaced),
    };
    return cmocka_run_group_tests_name("warned", tests, NULL, NULL);
}
