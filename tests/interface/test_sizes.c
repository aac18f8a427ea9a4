/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of other sizes than this library's, one structure at a time: programs of other versions hand them in. */
#include "support/test.h"

#include <kvca/config.h>
#include <kvca/pool.h>

#define TAIL 8
#define ROOM 4096

static const uint64_t column[2] = {1, 2};
static _Alignas(8) unsigned char given[ROOM + TAIL];
static uint64_t buffer[1024];
static kvca_policy *policy;
static kvca_pool *pool;
static kvca_owner owner;

static const kvca_params PARAMS = KVCA_PARAMS_DEFAULT;
static const kvca_ranks RANKS = {
    .size = sizeof RANKS, .count = 2, .decode_cost_blocks = column, .active_requests = column};
static const kvca_selection SELECTION = {.size = sizeof SELECTION};
static const kvca_explanation EXPLANATION = {.size = sizeof EXPLANATION};
static const kvca_rank RANK = {.size = sizeof RANK, .worker_id = 1, .total_kv_blocks = 1000};
static const kvca_put PUT = {.size = sizeof PUT};
static const kvca_owner_info INFO = {.size = sizeof INFO};
static const kvca_request REQUEST = {.size = sizeof REQUEST, .blocks = 1};
static const kvca_snapshot SNAPSHOT = {.size = sizeof SNAPSHOT};

static kvca_status validate_params(void)
{
    return kvca_params_validate((void *)given);
}

static kvca_status new_policy(void)
{
    kvca_policy *made;
    kvca_status status = kvca_policy_new((void *)given, &made);
    if (status == KVCA_OK) {
        kvca_policy_free(made);
    }
    return status;
}

static kvca_status validate_ranks(void)
{
    return kvca_ranks_validate((void *)given, NULL);
}

static kvca_status select_ranks(void)
{
    kvca_selection selection = SELECTION;
    return kvca_select(policy, (void *)given, &selection);
}

static kvca_status select_selection(void)
{
    return kvca_select(policy, &RANKS, (void *)given);
}

static kvca_status list_ranks(void)
{
    kvca_selection selection = SELECTION;
    return kvca_tie_set(policy, (void *)given, NULL, 0, &selection);
}

static kvca_status list_selection(void)
{
    return kvca_tie_set(policy, &RANKS, NULL, 0, (void *)given);
}

static kvca_status explain_params(void)
{
    kvca_explanation explanation = EXPLANATION;
    return kvca_explain((void *)given, &RANKS, &SELECTION, 0, &explanation);
}

static kvca_status explain_ranks(void)
{
    kvca_explanation explanation = EXPLANATION;
    return kvca_explain(&PARAMS, (void *)given, &SELECTION, 0, &explanation);
}

static kvca_status explain_selection(void)
{
    kvca_explanation explanation = EXPLANATION;
    return kvca_explain(&PARAMS, &RANKS, (void *)given, 0, &explanation);
}

static kvca_status explain_explanation(void)
{
    return kvca_explain(&PARAMS, &RANKS, &SELECTION, 0, (void *)given);
}

static kvca_status put_rank(void)
{
    return kvca_pool_put(pool, (void *)given, NULL);
}

static kvca_status put_put(void)
{
    return kvca_pool_put(pool, &RANK, (void *)given);
}

static kvca_status owner_at(void)
{
    return kvca_pool_owner_at(pool, 0, (void *)given);
}

static kvca_status release(kvca_status status, kvca_booking *booking)
{
    return status == KVCA_OK ? kvca_pool_release(pool, booking) : status;
}

static kvca_status place_request(void)
{
    kvca_booking booking;
    return release(kvca_pool_place(pool, owner, (void *)given, &booking, NULL), &booking);
}

static kvca_status place_selection(void)
{
    kvca_booking booking;
    return release(kvca_pool_place(pool, owner, &REQUEST, &booking, (void *)given), &booking);
}

/* What does not fit fills the selection, too. */
static kvca_status place_nowhere(void)
{
    kvca_booking booking;
    kvca_request request = {.size = sizeof request, .blocks = 5000, .only_if_fits = true};
    kvca_status status = kvca_pool_place(pool, owner, &request, &booking, (void *)given);
    kvca_selection *selection = (void *)given;
    assert_true(status != KVCA_NEVER_FITS || selection->outcome == KVCA_FALLBACK_NEVER);
    return status == KVCA_NEVER_FITS ? KVCA_OK : status;
}

/* What fails fills nothing. */
static kvca_status place_without_owner(void)
{
    kvca_booking booking;
    kvca_status status = kvca_pool_place(pool, 0, &REQUEST, &booking, (void *)given);
    return status == KVCA_ERR_OWNER ? KVCA_OK : status;
}

static kvca_status explain_place_request(void)
{
    kvca_explanation explanation = EXPLANATION;
    return kvca_pool_explain(pool, (void *)given, NULL, &SELECTION, 0, &explanation);
}

static kvca_status explain_place_explanation(void)
{
    return kvca_pool_explain(pool, &REQUEST, NULL, &SELECTION, 0, (void *)given);
}

static kvca_status snapshot(void)
{
    return kvca_pool_snapshot(pool, buffer, sizeof buffer, (void *)given);
}

static kvca_status load_error(void)
{
    kvca_params params = PARAMS;
    kvca_status status = kvca_config_load_buffer("x: 1", 4, "text", KVCA_ROLE_DECODE, &params, (void *)given);
    return status == KVCA_ERR_CONFIG ? KVCA_OK : status;
}

static kvca_status load_file_error(void)
{
    kvca_params params = PARAMS;
    kvca_status status = kvca_config_load_file("/nonexistent", KVCA_ROLE_DECODE, &params, (void *)given);
    return status == KVCA_ERR_FILE ? KVCA_OK : status;
}

static kvca_status init_params(void)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return kvca_params_init((void *)given, size);
}

static const struct function {
    const char *name;
    kvca_status (*call)(void);
    const void *structure;
    size_t size;
    bool is_read; /* what this library does not know must be zero; otherwise it becomes zero */
} functions[] = {
    {"kvca_params_validate", validate_params, &PARAMS, sizeof PARAMS, true},
    {"kvca_params_init", init_params, &PARAMS, sizeof PARAMS, false},
    {"kvca_policy_new", new_policy, &PARAMS, sizeof PARAMS, true},
    {"kvca_ranks_validate", validate_ranks, &RANKS, sizeof RANKS, true},
    {"kvca_select, ranks", select_ranks, &RANKS, sizeof RANKS, true},
    {"kvca_select, selection", select_selection, &SELECTION, sizeof SELECTION, false},
    {"kvca_tie_set, ranks", list_ranks, &RANKS, sizeof RANKS, true},
    {"kvca_tie_set, selection", list_selection, &SELECTION, sizeof SELECTION, false},
    {"kvca_explain, params", explain_params, &PARAMS, sizeof PARAMS, true},
    {"kvca_explain, ranks", explain_ranks, &RANKS, sizeof RANKS, true},
    {"kvca_explain, selection", explain_selection, &SELECTION, sizeof SELECTION, true},
    {"kvca_explain, explanation", explain_explanation, &EXPLANATION, sizeof EXPLANATION, false},
    {"kvca_pool_put, rank", put_rank, &RANK, sizeof RANK, true},
    {"kvca_pool_put, put", put_put, &PUT, sizeof PUT, false},
    {"kvca_pool_owner_at", owner_at, &INFO, sizeof INFO, false},
    {"kvca_pool_place, request", place_request, &REQUEST, sizeof REQUEST, true},
    {"kvca_pool_place, selection", place_selection, &SELECTION, sizeof SELECTION, false},
    {"kvca_pool_place, fits nowhere", place_nowhere, &SELECTION, sizeof SELECTION, false},
    {"kvca_pool_place, no owner", place_without_owner, &SELECTION, sizeof SELECTION, false},
    {"kvca_pool_explain, request", explain_place_request, &REQUEST, sizeof REQUEST, true},
    {"kvca_pool_explain, explanation", explain_place_explanation, &EXPLANATION, sizeof EXPLANATION, false},
    {"kvca_pool_snapshot", snapshot, &SNAPSHOT, sizeof SNAPSHOT, false},
    {"kvca_config_load_file", load_file_error, NULL, sizeof(kvca_error), false},
    {"kvca_config_load_buffer", load_error, NULL, sizeof(kvca_error), false},
};

/* Hands in the structure with another size, and with bytes behind it that are all `behind`. */
static kvca_status call_with(const struct function *function, size_t size, unsigned char behind)
{
    memset(given, 0, sizeof given);
    if (function->structure) {
        memcpy(given, function->structure, function->size);
    }
    memset(given + function->size, behind, TAIL);
    memcpy(given, &size, sizeof size);
    kvca_status status = function->call();
    size_t kept;
    memcpy(&kept, given, sizeof kept);
    assert_int_equal(kept, size);
    return status;
}

static void other_sizes_are_read_filled_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(functions); i++) {
        const struct function *function = &functions[i];
        print_message("%s\n", function->name);
        assert_int_equal(call_with(function, function->size, 0xff), KVCA_OK);
        assert_int_equal(call_with(function, function->size + TAIL, 0), KVCA_OK);
        assert_int_equal(call_with(function, function->size + TAIL, 0xff),
                         function->is_read ? KVCA_ERR_SIZE : KVCA_OK);
        for (size_t byte = 0; !function->is_read && byte < TAIL; byte++) {
            assert_int_equal(given[function->size + byte], function->call == place_without_owner ? 0xff : 0);
        }
        const size_t refused[] = {0, 1, function->size - 1, ROOM + 1, SIZE_MAX};
        for (size_t size = 0; size < COUNT(refused); size++) {
            assert_int_equal(call_with(function, refused[size], 0), KVCA_ERR_SIZE);
        }
    }
    assert_int_equal(kvca_params_init(NULL, sizeof PARAMS), KVCA_ERR_NULL);
}

int main(void)
{
    if (kvca_policy_new(&PARAMS, &policy) != KVCA_OK || kvca_pool_new(4, 1, &PARAMS, &pool) != KVCA_OK ||
        kvca_pool_owner_claim(pool, 1, &owner) != KVCA_OK || kvca_pool_put(pool, &RANK, NULL) != KVCA_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(other_sizes_are_read_filled_or_refused)};
    int failed = cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
    kvca_pool_free(pool);
    kvca_policy_free(policy);
    return failed;
}
