/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills or stops a worker in the middle of a call of the pool, while it holds the ledger's mutex. The test links this
 * into a module whose pool calls it before each of its stores. The environment variable KVCA_FAULT_FILE names a file.
 * When the file appears, the first process to see it renames it to FILE.taken and does what it says:
 *
 *     kill N    dies before its Nth store from then on
 *     hang N    stops there, with the mutex, until it is killed
 *
 * Then FILE.done holds its process number.
 */
#define _GNU_SOURCE

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void kvca_fault_point(void);

static struct {
    bool taken;
    bool hangs;
    long stores_left;
} fault;

static void path_of(const char *end, char *path, size_t size)
{
    const char *file = getenv("KVCA_FAULT_FILE");
    (void)snprintf(path, size, "%s%s", file ? file : "/nonexistent", end);
}

static void take(void)
{
    char path[4096];
    char taken[4096];
    char action[8] = "";
    path_of("", path, sizeof path);
    path_of(".taken", taken, sizeof taken);
    if (rename(path, taken) != 0) {
        return;
    }
    FILE *file = fopen(taken, "r");
    if (file && fscanf(file, "%7s %ld", action, &fault.stores_left) == 2) {
        fault.taken = true;
        fault.hangs = strcmp(action, "hang") == 0;
    }
    if (file) {
        (void)fclose(file);
    }
}

static void tell(void)
{
    char path[4096];
    path_of(".done", path, sizeof path);
    FILE *file = fopen(path, "w");
    if (file) {
        (void)fprintf(file, "%ld\n", (long)getpid());
        (void)fclose(file);
    }
}

void kvca_fault_point(void)
{
    if (!fault.taken) {
        take();
    }
    if (!fault.taken || --fault.stores_left > 0) {
        return;
    }
    tell();
    if (!fault.hangs) {
        (void)raise(SIGKILL);
    }
    for (;;) {
        (void)pause();
    }
}
