/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pool, two processes. The pool lies in shared memory, with a process-shared robust mutex. A worker process places
 * three requests and is killed while it holds the mutex. The other process takes over, gives back what the dead one had
 * booked, and prints the pool for `kvca select`.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kvca/pool.h>

#define MAX_RANKS 64
#define MAX_OWNERS 8
#define POOL_OFFSET 4096 /* the mutex has the first page, the pool begins on the next */

/* The pool as one process sees it. Its address may differ between processes. */
struct shared_pool {
    pthread_mutex_t *mutex;
    kvca_pool *pool;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static size_t shared_bytes(void)
{
    return POOL_OFFSET + kvca_pool_bytes(MAX_RANKS, MAX_OWNERS);
}

static char *map(int descriptor)
{
    char *memory = mmap(NULL, shared_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
        fail("mmap");
    }
    return memory;
}

/* The process that starts the others calls this once. */
static struct shared_pool create(int descriptor)
{
    if (ftruncate(descriptor, (off_t)shared_bytes()) != 0) {
        fail("ftruncate");
    }
    char *memory = map(descriptor);
    struct shared_pool shared = {.mutex = (pthread_mutex_t *)(void *)memory};
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    int error = pthread_mutex_init(shared.mutex, &attributes);
    if (error != 0) {
        errno = error;
        fail("pthread_mutex_init"); /* some kernels have no robust mutexes */
    }
    pthread_mutexattr_destroy(&attributes);
    const kvca_params params = KVCA_PARAMS_DEFAULT;
    size_t bytes = shared_bytes() - POOL_OFFSET;
    kvca_status status = kvca_pool_init(memory + POOL_OFFSET, bytes, MAX_RANKS, MAX_OWNERS, &params, &shared.pool);
    if (status != KVCA_OK) {
        fprintf(stderr, "%s\n", kvca_strerror(status));
        exit(1);
    }
    return shared;
}

/* Every other process calls this. It refuses memory that is not ready, or a pool with another layout. */
static struct shared_pool attach(int descriptor)
{
    struct stat file;
    if (fstat(descriptor, &file) != 0 || (size_t)file.st_size < shared_bytes()) {
        fprintf(stderr, "the shared memory is not ready\n");
        exit(1);
    }
    char *memory = map(descriptor);
    struct shared_pool shared = {.mutex = (pthread_mutex_t *)(void *)memory};
    kvca_status status = kvca_pool_attach(memory + POOL_OFFSET, shared_bytes() - POOL_OFFSET, &shared.pool);
    if (status != KVCA_OK) {
        fprintf(stderr, "%s\n", kvca_strerror(status));
        exit(1);
    }
    return shared;
}

static void lock(struct shared_pool *shared)
{
    int error = pthread_mutex_lock(shared->mutex);
    if (error == EOWNERDEAD) {
        bool repaired;
        kvca_pool_repair(shared->pool, &repaired);
        pthread_mutex_consistent(shared->mutex);
        printf("took the mutex over from a dead process; its last update %s\n",
               repaired ? "had to be completed" : "was complete");
    } else if (error != 0) {
        errno = error;
        fail("pthread_mutex_lock"); /* without the lock, do not touch the pool */
    }
}

static void unlock(struct shared_pool *shared)
{
    pthread_mutex_unlock(shared->mutex);
}

/* A worker process that is soon killed. */
static void serve_and_die(int descriptor)
{
    struct shared_pool shared = attach(descriptor);
    kvca_owner owner;
    lock(&shared);
    if (kvca_pool_owner_claim(shared.pool, (uint64_t)getpid(), &owner) != KVCA_OK) {
        exit(1);
    }
    for (int i = 0; i < 3; i++) {
        kvca_request request = {.size = sizeof request, .blocks = kvca_blocks_for_tokens(4000, 16)};
        kvca_booking booking;
        kvca_pool_place(shared.pool, owner, &request, &booking, NULL);
    }
    raise(SIGKILL);
}

/*
 * A dead process cannot void its owner, so a living one looks for owners whose process is gone. The process number may
 * meanwhile belong to a new process, so a router that runs for long also compares start times. (A process that has died
 * but was not waited for still counts as alive.)
 */
static void void_dead_owners(struct shared_pool *shared)
{
    for (uint32_t i = 0; i < MAX_OWNERS; i++) {
        kvca_owner_info info = {.size = sizeof info};
        if (kvca_pool_owner_at(shared->pool, i, &info) != KVCA_OK) {
            continue;
        }
        bool dead = kill((pid_t)info.id, 0) != 0 && errno == ESRCH;
        uint64_t blocks;
        uint64_t requests;
        if (dead && kvca_pool_owner_void(shared->pool, info.owner, &blocks, &requests) == KVCA_OK) {
            printf("gave back %" PRIu64 " requests and %" PRIu64 " blocks of a dead process\n", requests, blocks);
        }
    }
}

static void print_column(const char *name, const uint64_t *values, size_t count, const char *end)
{
    printf("  \"%s\": [", name);
    for (size_t row = 0; row < count; row++) {
        printf("%s%" PRIu64, row == 0 ? "" : ", ", values[row]);
    }
    printf("]%s\n", end);
}

/* Makes the copy under the mutex, and the text outside it. */
static void print_pool(struct shared_pool *shared)
{
    size_t bytes = kvca_pool_snapshot_bytes(shared->pool);
    void *buffer = malloc(bytes);
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    if (!buffer) {
        fail("malloc");
    }
    lock(shared);
    kvca_pool_snapshot(shared->pool, buffer, bytes, &snapshot);
    unlock(shared);
    printf("{\n");
    print_column("worker_id", snapshot.ranks->worker_id, snapshot.ranks->count, ",");
    print_column("decode_cost_blocks", snapshot.ranks->decode_cost_blocks, snapshot.ranks->count, ",");
    print_column("active_requests", snapshot.ranks->active_requests, snapshot.ranks->count, ",");
    print_column("total_kv_blocks", snapshot.ranks->total_kv_blocks, snapshot.ranks->count, "");
    printf("}\n");
    free(buffer);
}

int main(void)
{
    char name[64];
    snprintf(name, sizeof name, "/kvca-example-%ld", (long)getpid());
    int descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (descriptor < 0) {
        fail("shm_open");
    }
    shm_unlink(name); /* the child inherits the descriptor; unrelated processes would open the name */
    struct shared_pool shared = create(descriptor);
    lock(&shared);
    for (uint64_t worker_id = 1; worker_id <= 3; worker_id++) {
        kvca_pool_put(shared.pool,
                      &(kvca_rank){.size = sizeof(kvca_rank), .worker_id = worker_id, .total_kv_blocks = 1000}, NULL);
    }
    kvca_owner owner;
    kvca_pool_owner_claim(shared.pool, (uint64_t)getpid(), &owner);
    kvca_request request = {
        .size = sizeof request, .blocks = kvca_blocks_for_tokens(8000, 16), .eligible = (const uint64_t[]){1}};
    kvca_booking booking;
    kvca_pool_place(shared.pool, owner, &request, &booking, NULL);
    unlock(&shared);
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        fail("fork");
    }
    if (child == 0) {
        serve_and_die(descriptor);
    }
    waitpid(child, NULL, 0);
    lock(&shared);
    void_dead_owners(&shared);
    unlock(&shared);
    print_pool(&shared);
    return 0;
}
