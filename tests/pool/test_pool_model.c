/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long random sequences of all operations of a pool, compared with the model: every column, counter and tie set must
 * agree after each step.
 */
#include "pool/pool_model.h"

#define SLOTS 6
#define IDENTITIES 10

static uint64_t choose_at_random(void *source, uint64_t n)
{
    return random_below(source, n);
}

static void compare(bool large, size_t operations)
{
    uint64_t random = 17;
    struct model model = {
        .max_ranks = SLOTS,
        .identities = IDENTITIES,
        .large = large,
        .choose = choose_at_random,
        .source = &random,
        .params = KVCA_PARAMS_DEFAULT,
    };
    assert_int_equal(kvca_pool_new(SLOTS, OWNERS, &model.params, &model.pool), KVCA_OK);
    assert_int_equal(kvca_pool_set_seed(model.pool, 1), KVCA_OK);
    for (; model.step < operations; model.step++) {
        take_step(&model);
        check_snapshot(&model);
    }
    print_message("%zu operations: %d placed, %d fallbacks, %d not placed, %d stale, %d voided\n", operations,
                  (int)model.counters.placed, (int)model.counters.fallbacks, (int)model.counters.none,
                  (int)model.counters.stale, (int)model.counters.voided);
    assert_true(model.counters.fallbacks > 0 && model.counters.stale > 0 && model.counters.voided > 0);
    kvca_pool_free(model.pool);
}

static void operations_match_the_model(void **state)
{
    (void)state;
    compare(false, rounds(1000000));
}

/*
 * Blocks near the largest integer. Sums must not overflow, and slots must change between the ways for large and small
 * numbers.
 */
static void large_operations_match_the_model(void **state)
{
    (void)state;
    compare(true, rounds(200000));
}

int main(void)
{
    require_variant();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_match_the_model),
        cmocka_unit_test(large_operations_match_the_model),
    };
    return cmocka_run_group_tests_name("pool_model", tests, NULL, NULL);
}
