/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define MOST_RANKS 65536

uint64_t option_number(const char *option, const char *text, uint64_t low, uint64_t high)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < low || value > high) {
        fail("%s: found '%s', expected a number from %" PRIu64 " to %" PRIu64, option, text, low, high);
    }
    return value;
}

size_t option_ranks(const char *option, const char *text, size_t ranks[MOST_SIZES])
{
    char *list = strdup(text);
    char *rest = NULL;
    size_t sizes = 0;
    if (!list) {
        fail("no memory");
    }
    char *item = strtok_r(list, ",", &rest);
    for (; item && sizes < MOST_SIZES; item = strtok_r(NULL, ",", &rest)) {
        ranks[sizes++] = (size_t)option_number(option, item, 1, MOST_RANKS);
    }
    if (item) {
        fail("%s: found more than %d numbers in '%s', expected at most %d", option, MOST_SIZES, text, MOST_SIZES);
    }
    free(list);
    if (sizes == 0) {
        fail("%s: found '%s', expected numbers with commas between", option, text);
    }
    return sizes;
}

void option_variant(const char *runs)
{
    const char *wanted = getenv("KVCA_VARIANT");
    if (wanted && strcmp(wanted, runs) != 0) {
        fail("KVCA_VARIANT is \"%s\", which this processor has not", wanted);
    }
}
