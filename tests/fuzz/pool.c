/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: bytes as a program of pool operations. The model of the suites follows it. Besides, the block is moved,
 * attached to and repaired, and a copy of it is attached to after its head was overwritten.
 */
#include "fuzz.h"

#include "pool/ledger.h"
#include "pool/pool_model.h"
#include "bytes.h"
#include "variants.h"

/* A snapshot is compared only after this many steps, because that is slow with many slots. */
#define STEPS_BETWEEN_CHECKS 16

struct program {
    struct bytes bytes;
    struct model model;
    void *block; /* the model's pool */
    size_t size; /* of the block */
};

static uint64_t choose(void *source, uint64_t n)
{
    return bytes_below(source, n);
}

/* Exactly as large as necessary, so that an access past it is found. */
static void *make_block(size_t size)
{
    void *block = aligned_alloc(KVCA_POOL_ALIGNMENT, size);
    assert_non_null(block);
    return block;
}

static void *copy_block(const struct program *program)
{
    return memcpy(make_block(program->size), program->block, program->size);
}

static void begin(struct program *program)
{
    static const uint16_t sizes[] = {6, 1, 2, 9, 33, 64, 65, MOST_SLOTS};
    struct model *model = &program->model;
    size_t form = (size_t)bytes_below(&program->bytes, COUNT(sizes) * 3); /* at least as many as there are variants */
    variants_use(form / COUNT(sizes));
    model->max_ranks = sizes[form % COUNT(sizes)];
    model->identities = model->max_ranks + 4;
    model->large = bytes_below(&program->bytes, 2) != 0;
    model->choose = choose;
    model->source = &program->bytes;
    model->params = (kvca_params)KVCA_PARAMS_DEFAULT;
    program->size = kvca_pool_bytes((uint32_t)model->max_ranks, OWNERS);
    program->block = make_block(program->size);
    assert_int_equal(kvca_pool_init(program->block, program->size, (uint32_t)model->max_ranks, OWNERS, &model->params,
                                    &model->pool),
                     KVCA_OK);
    assert_int_equal(kvca_pool_set_seed(model->pool, 1), KVCA_OK);
}

static uint64_t choose_at_random(void *source, uint64_t n)
{
    return random_below(source, n);
}

/* Many steps for few bytes, so that large pools fill. Either of any kind, or only of ranks. */
static void step_many(struct program *program)
{
    uint64_t random = bytes_below(&program->bytes, 256);
    bool ranks_alone = bytes_below(&program->bytes, 2) != 0;
    uint64_t steps = bytes_below(&program->bytes, ranks_alone ? 512 : 64); /* the others take longer */
    program->model.choose = choose_at_random;
    program->model.source = &random;
    for (; steps > 0; steps--) {
        if (ranks_alone) {
            step_put(&program->model);
        } else {
            take_step(&program->model);
        }
    }
    program->model.choose = choose;
    program->model.source = &program->bytes;
}

/* Moves the block, as if another process had mapped it. The pool works on there. */
static void step_move(struct program *program)
{
    void *moved = copy_block(program);
    memset(program->block, 0xa5, program->size);
    free(program->block);
    program->block = moved;
    assert_int_equal(kvca_pool_attach(moved, program->size, &program->model.pool), KVCA_OK);
    assert_ptr_equal(program->model.pool, moved);
}

static void step_attach_to_less(struct program *program)
{
    size_t size = (size_t)bytes_below(&program->bytes, program->size);
    size_t past = 8 * (1 + (size_t)bytes_below(&program->bytes, 7));
    kvca_pool *pool = NULL;
    assert_int_equal(kvca_pool_attach(program->block, size, &pool), KVCA_ERR_POOL_MEMORY);
    assert_int_equal(kvca_pool_attach((char *)program->block + past, program->size - past, &pool),
                     KVCA_ERR_POOL_MEMORY);
    assert_null(pool);
}

/* The repair of a clean pool that is marked dirty computes the same values again. */
static void step_repair(struct program *program)
{
    bool dirty = bytes_below(&program->bytes, 2) != 0;
    bool repaired = !dirty;
    program->model.pool->dirty = dirty ? KVCA_DIRTY : KVCA_CLEAN;
    assert_int_equal(kvca_pool_repair(program->model.pool, &repaired), KVCA_OK);
    assert_int_equal(repaired, dirty);
}

/* Does everything once, on a pool of which only one thing is known: it was attached to. No call may leave its block. */
static void use(struct program *program, kvca_pool *pool)
{
    struct bytes *bytes = &program->bytes;
    uint64_t buffer[MOST_SLOTS * 5 + 32];
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    kvca_owner owner = program->model.owners[0];
    kvca_booking booking = {(uint32_t)bytes_any_integer(bytes), (uint32_t)bytes_below(bytes, 4), owner, 1};
    const kvca_rank rank = {sizeof rank, worker_of(bytes_below(bytes, program->model.identities)), 0, 100};
    const kvca_request request = {.size = sizeof request, .blocks = bytes_any_integer(bytes)};
    kvca_owner_info info = {.size = sizeof info};
    assert_int_equal(kvca_pool_snapshot(pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    assert_true(snapshot.count <= program->model.max_ranks);
    kvca_pool_release(pool, &booking);
    for (size_t i = 0; i < COUNT(program->model.bookings); i++) {
        booking = program->model.bookings[i].booking;
        kvca_pool_grow(pool, &booking, 1);
        kvca_pool_release(pool, &booking);
    }
    kvca_pool_put(pool, &rank, NULL);
    kvca_pool_place(pool, owner, &request, &booking, NULL);
    kvca_pool_drain(pool, rank.worker_id, 0);
    kvca_pool_drop(pool, worker_of(bytes_below(bytes, program->model.identities)), 0);
    kvca_pool_owner_at(pool, 0, &info);
    kvca_pool_owner_claim(pool, 1, &owner);
    kvca_pool_owner_void(pool, owner, NULL, NULL);
    kvca_pool_set_params(pool, &program->model.params);
    kvca_pool_repair(pool, NULL);
    assert_int_equal(kvca_pool_snapshot(pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
}

/*
 * Overwrites any part of the head except the parameters, which lead nowhere. If such a pool is attached to, it stays
 * within its block.
 */
static void step_scribble(struct program *program)
{
    char *copy = copy_block(program);
    size_t words = 1 + (size_t)bytes_below(&program->bytes, 3);
    for (size_t i = 0; i < words; i++) {
        size_t offset = (size_t)bytes_below(&program->bytes, sizeof(struct kvca_pool) / sizeof(uint64_t)) * 8;
        uint64_t value = bytes_any_integer(&program->bytes);
        bool in_params =
            offset >= offsetof(struct kvca_pool, params) && offset < offsetof(struct kvca_pool, generator);
        memcpy(copy + offset, &value, in_params ? 0 : sizeof value);
    }
    kvca_pool *pool = NULL;
    kvca_status status = kvca_pool_attach(copy, program->size, &pool);
    if (status == KVCA_OK) {
        assert_memory_equal(copy, program->block, offsetof(struct kvca_pool, dirty));
        use(program, pool);
    } else {
        assert_true(status == KVCA_ERR_POOL_LAYOUT || status == KVCA_ERR_POOL_MEMORY);
        assert_null(pool);
    }
    free(copy);
}

static void take_any_step(struct program *program)
{
    static void (*const steps[])(struct program * program) = {step_move, step_attach_to_less, step_repair,
                                                              step_scribble, step_many};
    uint64_t chosen = bytes_below(&program->bytes, 32);
    if (chosen < COUNT(steps)) {
        steps[chosen](program);
    } else {
        take_step(&program->model);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct program program = {.bytes = {data, size}};
    struct model *model = &program.model;
    begin(&program);
    while (program.bytes.left > 0) {
        take_any_step(&program);
        if (model->max_ranks < 16 || model->step % STEPS_BETWEEN_CHECKS == 0) {
            check_snapshot(model);
        }
        model->step++;
    }
    check_snapshot(model);
    free(program.block);
    return 0;
}
