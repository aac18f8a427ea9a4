/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a ranks file. If it is sound, it gets a decision and an explanation. */
#include "message.h"

#include "tool/ranks.h"
#include "decision.h"

#define NAME "ranks.yaml"

static void check_equal(const kvca_ranks *a, const kvca_ranks *b)
{
    size_t count = a->count;
    assert_int_equal(b->count, count);
    assert_int_equal(b->request_blocks, a->request_blocks);
    assert_memory_equal(a->worker_id, b->worker_id, count * sizeof *a->worker_id);
    assert_memory_equal(a->dp_rank, b->dp_rank, count * sizeof *a->dp_rank);
    assert_memory_equal(a->decode_cost_blocks, b->decode_cost_blocks, count * sizeof *a->decode_cost_blocks);
    assert_memory_equal(a->active_requests, b->active_requests, count * sizeof *a->active_requests);
    assert_memory_equal(a->total_kv_blocks, b->total_kv_blocks, count * sizeof *a->total_kv_blocks);
    assert_memory_equal(a->preferred_taint_multiplier, b->preferred_taint_multiplier,
                        count * sizeof *a->preferred_taint_multiplier);
}

static void check_identities(const kvca_ranks *ranks)
{
    for (size_t row = 1; row < ranks->count; row++) {
        for (size_t other = 0; other < row; other++) {
            assert_true(ranks->worker_id[row] != ranks->worker_id[other] ||
                        ranks->dp_rank[row] != ranks->dp_rank[other]);
        }
    }
}

static void copy_set(struct rank_set *set, const kvca_ranks *ranks)
{
    *set = (struct rank_set){.count = ranks->count, .request_blocks = ranks->request_blocks};
    for (size_t row = 0; row < set->count; row++) {
        set->decode_cost_blocks[row] = ranks->decode_cost_blocks[row];
        set->active_requests[row] = ranks->active_requests[row];
        set->total_kv_blocks[row] = ranks->total_kv_blocks[row];
        set->preferred_taint_multiplier[row] = ranks->preferred_taint_multiplier[row];
    }
}

/* Decisions by policies of each kind. */
static void decide(const kvca_ranks *ranks)
{
    static const kvca_params policies[] = {
        KVCA_PARAMS_DEFAULT,
        {sizeof(kvca_params), 0.5, 0.0, 1000, true},
        {sizeof(kvca_params), 1.0, 2.5, 0, false},
        {sizeof(kvca_params), KVCA_NO_CAPACITY_FILTER, 1.0, 0, false},
    };
    struct rank_set set;
    copy_set(&set, ranks);
    for (size_t i = 0; i < COUNT(policies); i++) {
        decision_check(&policies[i], &set, ranks, i);
    }
}

static void check_sound(const kvca_ranks *ranks)
{
    assert_true(ranks->count > 0);
    assert_int_equal(kvca_ranks_validate(ranks, NULL), KVCA_OK);
    if (ranks->count <= MOST_RANKS) {
        check_identities(ranks);
        decide(ranks);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct ranks_file file;
    struct ranks_file again;
    kvca_error error = {.size = sizeof error};
    message_spoil(&error);
    kvca_status status = ranks_file_read(text, size, NAME, &file, &error);
    assert_int_equal(ranks_file_read(text, size, NAME, &again, NULL), status);
    if (status != KVCA_OK) {
        assert_true(status == KVCA_ERR_TOO_LARGE || status == KVCA_ERR_YAML || status == KVCA_ERR_CONFIG);
        message_check(&error, status, NAME, text, size);
        return 0;
    }
    check_equal(&file.ranks, &again.ranks);
    check_sound(&file.ranks);
    ranks_file_free(&file);
    ranks_file_free(&again);
    return 0;
}
