/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request path allocates nothing, takes no lock and makes no system call. The linker replaces functions of the C
 * library by those here, so that each call by kvca is counted. A filter in the kernel kills the process at its first
 * system call, except the one that ends the process.
 */
#define _GNU_SOURCE /* syscall, locks */
#include "support/test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kvca/pool.h>

#define RANKS 300
#define ROUNDS 200

static unsigned forbidden;

/* What the linker calls instead of NAME; --wrap=NAME in meson.build. */
#define COUNTED(type, name, parameters, arguments)                                                                   \
    type __real_##name parameters;                                                                                   \
    type __wrap_##name parameters;                                                                                   \
    type __wrap_##name parameters                                                                                    \
    {                                                                                                                \
        forbidden++;                                                                                                 \
        return __real_##name arguments;                                                                              \
    }

COUNTED(void *, malloc, (size_t size), (size))
COUNTED(void *, calloc, (size_t count, size_t size), (count, size))
COUNTED(void *, realloc, (void *memory, size_t size), (memory, size))
COUNTED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
COUNTED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
COUNTED(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
COUNTED(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
COUNTED(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
COUNTED(int, pthread_spin_lock, (pthread_spinlock_t * lock), (lock))

static bool entropy_is_refused;

int __real_getentropy(void *memory, size_t size);
int __wrap_getentropy(void *memory, size_t size);
int __wrap_getentropy(void *memory, size_t size)
{
    forbidden++;
    return entropy_is_refused ? -1 : __real_getentropy(memory, size);
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    forbidden++;
    __real_free(memory);
}

static void count_warning(void *user, const kvca_warning *warning)
{
    (void)warning;
    ++*(unsigned *)user;
}

/* Everything that the path uses, made in advance. */
struct desk {
    kvca_policy *policy;
    kvca_pool *pool;
    kvca_owner owner;
    uint64_t blocks[RANKS];
    uint64_t requests[RANKS];
    uint64_t capacity[RANKS];
    double multiplier[RANKS];
    uint64_t eligible[(RANKS + 63) / 64];
    size_t rows[RANKS];
    unsigned warnings;
};

static struct desk desk;

static void prepare(void)
{
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    desk.policy = make_policy(params);
    assert_int_equal(kvca_policy_set_warning(desk.policy, count_warning, &desk.warnings), KVCA_OK);
    assert_int_equal(kvca_pool_new(RANKS, 1, &params, &desk.pool), KVCA_OK);
    assert_int_equal(kvca_pool_owner_claim(desk.pool, 1, &desk.owner), KVCA_OK);
    uint64_t random = 1;
    for (uint32_t row = 0; row < RANKS; row++) {
        desk.blocks[row] = random_below(&random, 1000);
        desk.requests[row] = random_below(&random, 4);
        desk.capacity[row] = random_below(&random, 8) == 0 ? 0 : 500 + random_below(&random, 800);
        desk.multiplier[row] = 1.0 + (double)random_below(&random, 3);
        kvca_rank rank = {.size = sizeof rank, .worker_id = row, .total_kv_blocks = desk.capacity[row]};
        assert_int_equal(kvca_pool_put(desk.pool, &rank, NULL), KVCA_OK);
    }
    memset(desk.eligible, 0x5a, sizeof desk.eligible);
}

/* Selections of every kind: with and without multipliers and capacities, few and many rows, all over, all tied. */
static unsigned select_all_kinds(size_t count, uint64_t request_blocks)
{
    unsigned failed = 0;
    kvca_selection selection = {.size = sizeof selection};
    kvca_ranks ranks = {.size = sizeof ranks,
                        .count = count,
                        .decode_cost_blocks = desk.blocks,
                        .active_requests = desk.requests,
                        .total_kv_blocks = desk.capacity,
                        .request_blocks = request_blocks};
    failed += kvca_select(desk.policy, &ranks, &selection) != KVCA_OK;
    failed += kvca_tie_set(desk.policy, &ranks, desk.rows, RANKS, &selection) != KVCA_OK;
    ranks.preferred_taint_multiplier = desk.multiplier;
    failed += kvca_select(desk.policy, &ranks, &selection) != KVCA_OK;
    ranks.total_kv_blocks = NULL;
    failed += kvca_select(desk.policy, &ranks, &selection) != KVCA_OK;
    ranks.active_requests = ranks.decode_cost_blocks;
    failed += kvca_select(desk.policy, &ranks, &selection) != KVCA_OK;
    return failed;
}

static unsigned place_all_kinds(uint64_t blocks)
{
    unsigned failed = 0;
    kvca_booking bookings[3];
    const kvca_request requests[3] = {
        {.size = sizeof(kvca_request), .blocks = blocks},
        {.size = sizeof(kvca_request),
         .blocks = blocks,
         .eligible = desk.eligible,
         .preferred_taint_multiplier = desk.multiplier},
        {.size = sizeof(kvca_request), .blocks = 100000, .only_if_fits = true},
    };
    failed += kvca_pool_place(desk.pool, desk.owner, &requests[0], &bookings[0], NULL) != KVCA_OK;
    failed += kvca_pool_place(desk.pool, desk.owner, &requests[1], &bookings[1], NULL) != KVCA_OK;
    failed += kvca_pool_grow(desk.pool, &bookings[0], 3) != KVCA_OK;
    if (kvca_pool_place(desk.pool, desk.owner, &requests[2], &bookings[2], NULL) == KVCA_OK) {
        failed += kvca_pool_release(desk.pool, &bookings[2]) != KVCA_OK;
    }
    failed += kvca_pool_release(desk.pool, &bookings[0]) != KVCA_OK;
    failed += kvca_pool_release(desk.pool, &bookings[1]) != KVCA_OK;
    return failed;
}

/* Walks the path without a call to the kernel or to the counted functions of the C library. */
static unsigned walk(void)
{
    unsigned failed = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        failed += select_all_kinds(1 + round * 7 % RANKS, round * 13 % 1500);
        failed += place_all_kinds(round * 13 % 1500);
    }
    return failed;
}

static void path_allocates_nothing_and_takes_no_lock(void **state)
{
    (void)state;
    assert_true(forbidden > 0); /* the calls that make the policy and the pool were counted */
    forbidden = 0;
    unsigned failed = walk();
    unsigned called = forbidden;
    assert_int_equal(failed, 0);
    assert_int_equal(called, 0);
    assert_true(desk.warnings > 0);
}

/* Kills the process at any system call except exit_group. */
static bool forbid_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = COUNT(filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#define NO_FILTER 3 /* exit statuses of a child */
#define CALL_FAILED 4

static int run_without_system_calls(unsigned (*work)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!forbid_system_calls()) {
            _exit(NO_FILTER);
        }
        syscall(SYS_exit_group, work() == 0 ? 0 : CALL_FAILED);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static unsigned ask_the_kernel(void)
{
    return getppid() == 0;
}

/* valgrind and qemu make system calls of their own on behalf of the program. */
static bool runs_alone(void)
{
    int status = run_without_system_calls(walk);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER);
}

static void path_makes_no_system_call(void **state)
{
    (void)state;
    const char *preloaded = getenv("LD_PRELOAD");
    if ((preloaded && strstr(preloaded, "vgpreload")) || !runs_alone()) {
        print_message("the kernel cannot filter system calls of this process\n");
        skip();
    }
    assert_true(WIFSIGNALED(run_without_system_calls(ask_the_kernel))); /* the filter works */
    int status = run_without_system_calls(walk);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void draw_first(size_t draws[8])
{
    static const uint64_t zero[RANKS];
    kvca_policy *policy;
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_ranks ranks = {.size = sizeof ranks, .count = RANKS, .decode_cost_blocks = zero, .active_requests = zero};
    assert_int_equal(kvca_policy_new(&params, &policy), KVCA_OK);
    for (size_t i = 0; i < 8; i++) {
        kvca_selection selection = {.size = sizeof selection};
        assert_int_equal(kvca_select(policy, &ranks, &selection), KVCA_OK);
        draws[i] = selection.row;
    }
    kvca_policy_free(policy);
}

/* A sandbox may refuse getentropy(). Routers that start together must still not pick the same ranks. */
static void draws_differ_without_entropy(void **state)
{
    (void)state;
    size_t first[8];
    size_t second[8];
    entropy_is_refused = true;
    draw_first(first);
    draw_first(second);
    entropy_is_refused = false;
    assert_memory_not_equal(first, second, sizeof first);
}

int main(void)
{
    require_variant();
    prepare();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_allocates_nothing_and_takes_no_lock),
        cmocka_unit_test(path_makes_no_system_call),
        cmocka_unit_test(draws_differ_without_entropy),
    };
    int failed = cmocka_run_group_tests_name("quiet", tests, NULL, NULL);
    kvca_policy_free(desk.policy);
    kvca_pool_free(desk.pool);
    return failed;
}
