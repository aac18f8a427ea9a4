/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that dies in the middle of an update. The pool lies in shared memory, with a process-shared robust mutex. A
 * child takes the mutex, begins an operation and is killed before its first store, another one before its second, and
 * so on. Each time the parent takes the mutex over and repairs the pool. The pool must then be exactly as before the
 * operation or exactly as after it.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool/ledger.h"

#define SLOTS 3
#define OWNERS 2

/* In a child: counts the pool's stores down to the child's death. */
static long stores_left = -1;

void kvca_fault_point(void)
{
    if (stores_left >= 0 && stores_left-- == 0) {
        raise(SIGKILL);
    }
}

/* What the processes share besides the pool. */
struct shared {
    pthread_mutex_t mutex;
    kvca_owner owners[OWNERS]; /* 0: the parent's, 1: the child's */
    kvca_booking booking;      /* of the parent's owner, on worker 1 */
    kvca_booking last;         /* the child's only booking, on worker 3, which drains */
};

struct world {
    struct shared *shared;
    kvca_pool *pool;
};

/* The columns, and all that the pool's answers depend on, to be compared. */
struct picture {
    size_t count;
    size_t placeable;
    uint64_t worker_id[SLOTS];
    uint64_t decode_cost_blocks[SLOTS];
    uint64_t active_requests[SLOTS];
    uint64_t total_kv_blocks[SLOTS];
    uint64_t limit[SLOTS];
    uint32_t slot[SLOTS];
    double capacity_fraction;
    bool claimed[OWNERS];
};

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void make_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    assert_int_equal(pthread_mutex_init(mutex, &attributes), 0);
    pthread_mutexattr_destroy(&attributes);
}

static kvca_booking place_on(struct world *world, size_t owner, uint32_t slot, uint64_t blocks)
{
    const uint64_t eligible[] = {UINT64_C(1) << slot};
    kvca_request request = {.size = sizeof request, .blocks = blocks, .eligible = eligible};
    kvca_booking booking;
    assert_int_equal(kvca_pool_place(world->pool, world->shared->owners[owner], &request, &booking, NULL), KVCA_OK);
    return booking;
}

/* Three ranks. Both owners have requests on the first one. The last one drains under a request of the child. */
static struct world make_world(void)
{
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    size_t bytes = kvca_pool_bytes(SLOTS, OWNERS);
    struct world world = {.shared = map(sizeof *world.shared)};
    make_mutex(&world.shared->mutex);
    assert_int_equal(kvca_pool_init(map(bytes), bytes, SLOTS, OWNERS, &params, &world.pool), KVCA_OK);
    assert_int_equal(kvca_pool_set_seed(world.pool, 1), KVCA_OK);
    for (uint64_t i = 0; i < OWNERS; i++) {
        assert_int_equal(kvca_pool_owner_claim(world.pool, i, &world.shared->owners[i]), KVCA_OK);
    }
    for (uint64_t worker = 1; worker <= SLOTS; worker++) {
        kvca_rank rank = {.size = sizeof rank, .worker_id = worker, .total_kv_blocks = 100 * worker};
        assert_int_equal(kvca_pool_put(world.pool, &rank, NULL), KVCA_OK);
    }
    world.shared->booking = place_on(&world, 0, 0, 10);
    place_on(&world, 1, 0, 20);
    world.shared->last = place_on(&world, 1, 2, 5);
    assert_int_equal(kvca_pool_drain(world.pool, 3, 0), KVCA_OK);
    return world;
}

static void unmake_world(struct world *world)
{
    munmap(world->pool, kvca_pool_bytes(SLOTS, OWNERS));
    munmap(world->shared, sizeof *world->shared);
}

static struct picture take_picture(struct world *world)
{
    struct picture picture;
    memset(&picture, 0, sizeof picture);
    uint64_t buffer[SLOTS * 5 + 32];
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    assert_int_equal(kvca_pool_snapshot(world->pool, buffer, sizeof buffer, &snapshot), KVCA_OK);
    picture.count = snapshot.count;
    picture.placeable = snapshot.ranks->count;
    picture.capacity_fraction = snapshot.params->capacity_fraction;
    for (size_t row = 0; row < snapshot.count; row++) {
        picture.worker_id[row] = snapshot.ranks->worker_id[row];
        picture.decode_cost_blocks[row] = snapshot.ranks->decode_cost_blocks[row];
        picture.active_requests[row] = snapshot.ranks->active_requests[row];
        picture.total_kv_blocks[row] = snapshot.ranks->total_kv_blocks[row];
        picture.slot[row] = snapshot.slot[row];
        picture.limit[row] = kvca_words(world->pool, KVCA_PART_LIMITS)[snapshot.slot[row]];
    }
    for (uint32_t i = 0; i < OWNERS; i++) {
        kvca_owner_info info = {.size = sizeof info};
        picture.claimed[i] = kvca_pool_owner_at(world->pool, i, &info) == KVCA_OK;
    }
    return picture;
}

static void do_place(struct world *world)
{
    place_on(world, 1, 1, 7);
}

static void do_grow(struct world *world)
{
    assert_int_equal(kvca_pool_grow(world->pool, &world->shared->booking, 3), KVCA_OK);
}

static void do_release(struct world *world)
{
    assert_int_equal(kvca_pool_release(world->pool, &world->shared->booking), KVCA_OK);
}

static void do_last_release(struct world *world)
{
    assert_int_equal(kvca_pool_release(world->pool, &world->shared->last), KVCA_OK);
}

static void do_drop(struct world *world)
{
    assert_int_equal(kvca_pool_drop(world->pool, 1, 0), KVCA_OK);
}

static void do_drain(struct world *world)
{
    assert_int_equal(kvca_pool_drain(world->pool, 1, 0), KVCA_OK);
}

static void do_drain_idle(struct world *world)
{
    assert_int_equal(kvca_pool_drain(world->pool, 2, 0), KVCA_OK);
}

static void do_put(struct world *world)
{
    kvca_rank rank = {.size = sizeof rank, .worker_id = 2, .total_kv_blocks = 222};
    assert_int_equal(kvca_pool_put(world->pool, &rank, NULL), KVCA_OK);
}

static void do_replace(struct world *world)
{
    kvca_rank rank = {.size = sizeof rank, .worker_id = 9, .total_kv_blocks = 900};
    assert_int_equal(kvca_pool_put(world->pool, &rank, NULL), KVCA_OK);
}

static void do_put_draining(struct world *world)
{
    kvca_rank rank = {.size = sizeof rank, .worker_id = 3, .total_kv_blocks = 333};
    assert_int_equal(kvca_pool_put(world->pool, &rank, NULL), KVCA_OK);
}

static void do_void(struct world *world)
{
    assert_int_equal(kvca_pool_owner_void(world->pool, world->shared->owners[1], NULL, NULL), KVCA_OK);
}

static void do_set_params(struct world *world)
{
    const kvca_params params = PARAMS(0.5, false, 0.25, 77);
    assert_int_equal(kvca_pool_set_params(world->pool, &params), KVCA_OK);
}

/* A repair that dies has done nothing that the next one cannot do again. */
static void do_repair(struct world *world)
{
    assert_int_equal(kvca_pool_repair(world->pool, NULL), KVCA_OK);
}

/* Does the operation in a child that dies before store number `stores`. Returns whether it died. */
static bool do_in_child(struct world *world, void (*operation)(struct world *world), long stores)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pthread_mutex_lock(&world->shared->mutex);
        stores_left = stores;
        operation(world);
        stores_left = -1;
        pthread_mutex_unlock(&world->shared->mutex);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* Takes the mutex as the next process would. Returns whether the pool needed a repair. */
static bool take_over(struct world *world)
{
    bool repaired;
    int error = pthread_mutex_lock(&world->shared->mutex);
    assert_int_equal(kvca_pool_repair(world->pool, &repaired), KVCA_OK);
    if (error == EOWNERDEAD) {
        pthread_mutex_consistent(&world->shared->mutex);
    }
    pthread_mutex_unlock(&world->shared->mutex);
    return repaired;
}

/*
 * After the repair the pool still works: its totals are the sums over its owners, and fall to 0 when they are voided.
 */
static void check_that_it_works_on(struct world *world)
{
    kvca_owner_info info = {.size = sizeof info};
    kvca_rank rank = {.size = sizeof rank, .worker_id = 50, .total_kv_blocks = 1};
    for (uint32_t i = 0; i < OWNERS; i++) {
        if (kvca_pool_owner_at(world->pool, i, &info) == KVCA_OK) {
            assert_int_equal(kvca_pool_owner_void(world->pool, info.owner, NULL, NULL), KVCA_OK);
        }
    }
    struct picture picture = take_picture(world);
    assert_int_equal(picture.count, picture.placeable); /* what drained has gone */
    for (size_t row = 0; row < picture.count; row++) {
        assert_int_equal(picture.decode_cost_blocks[row], 0);
        assert_int_equal(picture.active_requests[row], 0);
        assert_int_equal(kvca_pool_drop(world->pool, picture.worker_id[row], 0), KVCA_OK);
    }
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        rank.worker_id++;
        assert_int_equal(kvca_pool_put(world->pool, &rank, NULL), KVCA_OK);
    }
}

static const struct {
    const char *name;
    void (*prepare)(struct world *world); /* runs completely before the operation */
    void (*operation)(struct world *world);
} OPERATIONS[] = {
    {"place", NULL, do_place},
    {"grow", NULL, do_grow},
    {"release", NULL, do_release},
    {"the last release from a rank that drains", NULL, do_last_release},
    {"drop with requests in flight", NULL, do_drop},
    {"drain under requests", NULL, do_drain},
    {"drain of an idle rank", NULL, do_drain_idle},
    {"put of a new capacity", NULL, do_put},
    {"put of a new capacity for a rank that drains", NULL, do_put_draining},
    {"put of a new rank", do_drop, do_replace},
    {"void", NULL, do_void},
    {"new parameters", NULL, do_set_params},
};

static void check_operation(size_t index)
{
    struct world whole = make_world();
    if (OPERATIONS[index].prepare) {
        OPERATIONS[index].prepare(&whole);
    }
    struct picture before = take_picture(&whole);
    OPERATIONS[index].operation(&whole);
    struct picture after = take_picture(&whole);
    unmake_world(&whole);
    assert_memory_not_equal(&before, &after, sizeof before);
    long stores = 0;
    size_t undone = 0;
    size_t redone = 0;
    for (bool died = true; died; stores++) {
        struct world world = make_world();
        if (OPERATIONS[index].prepare) {
            OPERATIONS[index].prepare(&world);
        }
        died = do_in_child(&world, OPERATIONS[index].operation, stores);
        take_over(&world);
        struct picture found = take_picture(&world);
        bool is_before = memcmp(&found, &before, sizeof found) == 0;
        bool is_after = memcmp(&found, &after, sizeof found) == 0;
        if (!is_before && !is_after) {
            fail_msg("%s, killed before store %ld: neither undone nor done", OPERATIONS[index].name, stores);
        }
        undone += died && is_before;
        redone += died && is_after;
        check_that_it_works_on(&world);
        unmake_world(&world);
    }
    print_message("%s: killed at %ld stores, %zu times undone, %zu times done\n", OPERATIONS[index].name, stores - 1,
                  undone, redone);
    assert_true(stores > 1);
}

static void death_leaves_a_pool_that_is_put_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(OPERATIONS); i++) {
        check_operation(i);
    }
}

/* Death during the repair after a death, at every pair of stores of a release that frees its slot. */
static void death_during_repair_is_put_right(void **state)
{
    (void)state;
    size_t pairs = 0;
    for (long first = 0;; first++) {
        for (long second = 0;; second++) {
            struct world world = make_world();
            bool died = do_in_child(&world, do_last_release, first);
            if (!died) {
                unmake_world(&world);
                print_message("%zu pairs of deaths\n", pairs);
                assert_true(pairs > 100);
                return;
            }
            assert_int_equal(pthread_mutex_lock(&world.shared->mutex), EOWNERDEAD);
            pthread_mutex_consistent(&world.shared->mutex);
            pthread_mutex_unlock(&world.shared->mutex);
            bool died_again = do_in_child(&world, do_repair, second);
            take_over(&world);
            check_that_it_works_on(&world);
            unmake_world(&world);
            pairs += died_again;
            if (!died_again) {
                break;
            }
        }
    }
}

/* A pool that was not completely made is not attached. */
static void death_during_init_leaves_no_pool(void **state)
{
    (void)state;
    const kvca_params params = PARAMS(0.5, true, 0.0, 0);
    size_t bytes = kvca_pool_bytes(SLOTS, OWNERS);
    long stores = 0;
    for (bool died = true; died; stores++) {
        struct world world = make_world(); /* the memory holds an older pool */
        pid_t child = fork();
        if (child == 0) {
            kvca_pool *made;
            stores_left = stores;
            kvca_pool_init(world.pool, bytes, SLOTS, OWNERS, &params, &made);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        died = WIFSIGNALED(status);
        kvca_pool *attached;
        bool is_pool = kvca_pool_attach(world.pool, bytes, &attached) == KVCA_OK;
        bool is_old = is_pool && kvca_pool_params(attached).capacity_fraction == 1.0;
        bool is_new = is_pool && kvca_pool_params(attached).capacity_fraction == 0.5;
        assert_int_equal(is_old, died && stores == 0);
        assert_int_equal(is_new, !died);
        unmake_world(&world);
    }
    assert_true(stores > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(death_leaves_a_pool_that_is_put_right),
        cmocka_unit_test(death_during_init_leaves_no_pool),
        cmocka_unit_test(death_during_repair_is_put_right),
    };
    return cmocka_run_group_tests_name("pool_death", tests, NULL, NULL);
}
