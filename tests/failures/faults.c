/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the C library's allocator: for a program that is linked with it, together with all its libraries; or, as a
 * library (LD_PRELOAD), for the program that it is loaded into. In the second case the environment says what to do:
 *
 *     KVCA_FAULTS_FIRST    the number of the allocation that fails
 *     KVCA_FAULTS_ALL      if set, all after it fail, too
 *     KVCA_FAULTS_COUNT    a descriptor that gets the number of allocations when the program ends
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *memory, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    void (*free)(void *memory);
} next;

static bool counting;
static unsigned long asked;
static unsigned long first_failing; /* 0: none */
static enum faults_kind failing;
static long live;

/* dlsym() returns a pointer to an object, which C does not convert to a function pointer. */
static void find(const char *name, void *function)
{
    *(void **)function = dlsym(RTLD_NEXT, name);
    if (!*(void **)function) {
        abort();
    }
}

/* The first allocation comes before the program begins. */
static void find_next(void)
{
    if (next.free) {
        return;
    }
    find("malloc", &next.malloc);
    find("calloc", &next.calloc);
    find("realloc", &next.realloc);
    find("aligned_alloc", &next.aligned_alloc);
    find("free", &next.free);
}

static bool fails(void)
{
    find_next();
    if (!counting) {
        return false;
    }
    asked++;
    bool fail = first_failing != 0 && (failing == FAULTS_ALL ? asked >= first_failing : asked == first_failing);
    if (fail) {
        errno = ENOMEM;
    }
    return fail;
}

static void *made(void *memory)
{
    live += memory != NULL;
    return memory;
}

void *malloc(size_t size)
{
    return fails() ? NULL : made(next.malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : made(next.calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    if (fails()) {
        return NULL;
    }
    return memory ? next.realloc(memory, size) : made(next.realloc(NULL, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : made(next.aligned_alloc(alignment, size));
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *block = fails() ? NULL : made(next.aligned_alloc(alignment, size));
    if (!block) {
        return ENOMEM;
    }
    *memory = block;
    return 0;
}

void free(void *memory)
{
    find_next();
    live -= memory != NULL;
    next.free(memory);
}

void faults_begin(unsigned long first, enum faults_kind kind)
{
    asked = 0;
    first_failing = first;
    failing = kind;
    counting = true;
}

unsigned long faults_end(void)
{
    counting = false;
    return asked;
}

long faults_live(void)
{
    return live;
}

static __attribute__((constructor)) void begin_by_environment(void)
{
    const char *first = getenv("KVCA_FAULTS_FIRST");
    if (first) {
        faults_begin(strtoul(first, NULL, 10), getenv("KVCA_FAULTS_ALL") ? FAULTS_ALL : FAULTS_ONE);
    }
}

static __attribute__((destructor)) void tell_count(void)
{
    const char *descriptor = getenv("KVCA_FAULTS_COUNT");
    if (descriptor) {
        dprintf(atoi(descriptor), "%lu\n", faults_end());
    }
}
