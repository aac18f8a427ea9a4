/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

static const kvca_status STATUSES[] = {
    KVCA_OK,
    KVCA_ERR_NULL,
    KVCA_ERR_NO_MEMORY,
    KVCA_ERR_SIZE,
    KVCA_ERR_CAPACITY_FRACTION,
    KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT,
    KVCA_ERR_NO_RANKS,
    KVCA_ERR_DECODE_COST_BLOCKS,
    KVCA_ERR_ACTIVE_REQUESTS,
    KVCA_ERR_PREFERRED_TAINT_MULTIPLIER,
    KVCA_ERR_ROW,
    KVCA_ERR_FILE,
    KVCA_ERR_TOO_LARGE,
    KVCA_ERR_YAML,
    KVCA_ERR_CONFIG,
    KVCA_ERR_ROLE,
    KVCA_NOT_SELECTED,
    KVCA_ERR_POOL_SIZE,
    KVCA_ERR_POOL_MEMORY,
    KVCA_ERR_POOL_LAYOUT,
    KVCA_ERR_POOL_FULL,
    KVCA_ERR_OWNERS_FULL,
    KVCA_ERR_NO_SUCH_RANK,
    KVCA_ERR_OWNER,
    KVCA_ERR_OVERFLOW,
    KVCA_ERR_NO_BOOKING,
    KVCA_ERR_FOREIGN_BOOKING,
    KVCA_STALE,
    KVCA_NONE_ELIGIBLE,
    KVCA_NONE_FITS,
    KVCA_NEVER_FITS,
};

static void every_status_has_its_own_text(void **state)
{
    (void)state;
    const char *unknown = kvca_strerror((kvca_status)9999);
    assert_string_equal(unknown, "unknown status");
    for (size_t i = 0; i < COUNT(STATUSES); i++) {
        print_message("status %d\n", (int)STATUSES[i]);
        assert_string_not_equal(kvca_strerror(STATUSES[i]), unknown);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(kvca_strerror(STATUSES[i]), kvca_strerror(STATUSES[j]));
        }
    }
}

/* Values are part of the interface: a program may have stored them. */
static void status_values_stay(void **state)
{
    (void)state;
    static const int values[] = {0,  1,  2,  3,  10, 11, 20, 21, 22, 23, 24, 30, 31, 32, 33, 34,
                                 35, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53};
    assert_int_equal(COUNT(values), COUNT(STATUSES));
    for (size_t i = 0; i < COUNT(values); i++) {
        assert_int_equal(STATUSES[i], values[i]);
    }
}

static void version_is_one(void **state)
{
    (void)state;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", KVCA_VERSION_MAJOR, KVCA_VERSION_MINOR, KVCA_VERSION_PATCH);
    assert_string_equal(KVCA_VERSION, version);
    assert_string_equal(kvca_version(), version);
    assert_string_equal(KVCA_MESON_VERSION, version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_text),
        cmocka_unit_test(status_values_stay),
        cmocka_unit_test(version_is_one),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
