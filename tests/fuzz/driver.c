/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A main() for use without a fuzzer. It calls a target with each named file, and with each file in a named folder. It
 * prints the name of a file before it takes it. So the last name is the one that failed, however the process ends.
 */
#define _DEFAULT_SOURCE /* scandir, alphasort */

#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define PATH 4096

_Noreturn static void give_up(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(2);
}

/* The block ends where the input ends, so that a read past it is found. */
static void take_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (!file || !data || fread(data, 1, size, file) != size) {
        give_up(path);
    }
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static size_t take(const char *path);

static size_t take_folder(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_shown, alphasort);
    if (count < 0) {
        give_up(path);
    }
    size_t taken = 0;
    for (int i = 0; i < count; i++) {
        char inner[PATH];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        taken += take(inner);
        free(entries[i]);
    }
    free(entries);
    return taken;
}

static size_t take(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        give_up(path);
    }
    if (S_ISDIR(status.st_mode)) {
        return take_folder(path);
    }
    take_file(path, (size_t)status.st_size);
    return 1;
}

int main(int argc, char **argv)
{
    size_t taken = 0;
    if (LLVMFuzzerInitialize(&argc, &argv) != 0) {
        give_up(argv[0]);
    }
    for (int i = 1; i < argc; i++) {
        taken += take(argv[i]);
    }
    printf("%zu inputs\n", taken);
    return taken > 0 ? 0 : 2; /* no file at all is a failure: the corpus was not found */
}
