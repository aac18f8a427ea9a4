/* SPDX-License-Identifier: Apache-2.0 */
/* Separate from test.c, for suites that do not link the library. */
#define _DEFAULT_SOURCE /* mkstemp */
#include "support/test.h"

#include <unistd.h>

void make_file(char path[TEST_PATH], const void *content, size_t size)
{
    strcpy(path, "/tmp/kvca-test-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, content, size), size);
    assert_int_equal(close(descriptor), 0);
}
