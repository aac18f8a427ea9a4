/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Robust mutexes for programs in QEMU's user mode. A process has a list of the robust mutexes that it holds. When it
 * dies, the kernel marks them, and the next process that locks one gets EOWNERDEAD. QEMU does not pass the list to the
 * kernel, so the mutex would stay locked for ever. And if glibc asks whether the kernel supports the list, as on 64-bit
 * RISC-V, it refuses to make a robust mutex. This library is linked before the C library and does the kernel's part. It
 * depends on the internals of glibc's mutexes.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#define KIND_ROBUST 16 /* PTHREAD_MUTEX_ROBUST_NORMAL_NP */

/* The functions of the C library. */
static int (*next_init)(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
static int (*next_lock)(pthread_mutex_t *mutex);

/* ISO C cannot cast the address of an object to that of a function. */
static void find(const char *name, void *function)
{
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(function, &address, sizeof address);
}

__attribute__((constructor)) static void find_next(void)
{
    find("pthread_mutex_init", &next_init);
    find("pthread_mutex_lock", &next_lock);
}

static bool is_gone(int process)
{
    int before = errno;
    bool gone = kill(process, 0) != 0 && errno == ESRCH;
    errno = before;
    return gone;
}

static void mark_if_owner_died(pthread_mutex_t *mutex)
{
    int word = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE);
    int owner = word & FUTEX_TID_MASK;
    if ((mutex->__data.__kind & KIND_ROBUST) != 0 && owner != 0 && is_gone(owner)) {
        int marked = (int)(((unsigned)word & FUTEX_WAITERS) | FUTEX_OWNER_DIED);
        __atomic_compare_exchange_n(&mutex->__data.__lock, &word, marked, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    int error = next_init(mutex, attributes);
    if (error != ENOTSUP) {
        return error;
    }
    pthread_mutexattr_t stalled = *attributes;
    pthread_mutexattr_setrobust(&stalled, PTHREAD_MUTEX_STALLED);
    error = next_init(mutex, &stalled);
    mutex->__data.__kind |= KIND_ROBUST;
    return error;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    mark_if_owner_died(mutex);
    return next_lock(mutex);
}
