/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include "common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CACHE_LINE 64

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized): va_start() is above */
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void *allocate(size_t count, size_t size)
{
    size_t bytes = (count * size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *memory = aligned_alloc(CACHE_LINE, bytes);
    if (!memory) {
        fail("no memory for %zu bytes", bytes);
    }
    memset(memory, 0, bytes);
    return memory;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
}

double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}
