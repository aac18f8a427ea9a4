/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* getloadavg */

#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "baselines.h"
#include "commit.h"

/* Which of the library's code runs here. */
#define LIBRARY_CODE kvca_variant()

#define BUSY 0.5 /* runnable processes for each processor */

/* The value of the first line of /proc/cpuinfo that begins with `key`. */
static bool find_in_cpuinfo(const char *key, char *value, size_t size)
{
    char line[256];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, key, strlen(key)) == 0) {
            snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " "));
            value[strcspn(value, "\n")] = '\0';
            found = true;
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, (int)size, file);
    if (file) {
        fclose(file);
    }
    if (read) {
        line[strcspn(line, "\n")] = '\0';
    }
    return read;
}

/* As the kernel lists them, which it need not. */
static bool print_listed_caches(void)
{
    char path[96];
    char level[16];
    char type[32];
    char size[32];
    bool any = false;
    for (int index = 0; index < 8; index++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        bool known = read_line(path, level, sizeof level);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        known = known && read_line(path, type, sizeof type);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        if (known && read_line(path, size, sizeof size) && strcmp(type, "Instruction") != 0) {
            printf(" level %s: %s", level, size);
            any = true;
        }
    }
    return any;
}

/* As the C library knows them, if it does. */
static void print_known_caches(void)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
    const int sizes[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    for (int i = 0; i < 3; i++) {
        long bytes = sysconf(sizes[i]);
        if (bytes > 0) {
            printf(" level %d: %ldK", i + 1, bytes / 1024);
        }
    }
#endif
}

static void print_caches(void)
{
    printf("caches    ");
    if (!print_listed_caches()) {
        print_known_caches();
    }
    puts("");
}

void machine_print(void)
{
    char cpu[128] = "unknown";
    char date[32] = "unknown";
    struct utsname system = {0};
    time_t now = time(NULL);
    const struct tm *utc = gmtime(&now);
    if (!find_in_cpuinfo("model name", cpu, sizeof cpu)) {
        find_in_cpuinfo("CPU part", cpu, sizeof cpu);
    }
    if (utc) {
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", utc);
    }
    uname(&system);
    printf("date       %s\n", date);
    printf("commit     %s, kvca %s\n", BENCH_COMMIT, kvca_version());
    printf("processor  %s, %ld online, %s\n", cpu, sysconf(_SC_NPROCESSORS_ONLN), system.machine);
    print_caches();
    printf("system     %s %s\n", system.sysname, system.release);
    printf("compiler   %s\n", BENCH_COMPILER);
    printf("build      %s\n", BENCH_BUILD);
    printf("code       kvca: %s; D: %s\n", LIBRARY_CODE, floor_here().code);
}

void machine_warn_of_load(void)
{
    double load;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&load, 1) == 1 && processors > 0 && load > BUSY * (double)processors) {
        printf("WARNING: the machine is busy: its load average is %.2f on %ld processors, and above %.2f figures "
               "are to be quoted with their spread.\n",
               load, processors, BUSY * (double)processors);
    }
}
