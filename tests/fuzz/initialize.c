/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200112L /* setenv */

#include "fuzz.h"

/* Outside of its own runner, cmocka ends the process with exit(), which AFL++ takes for success. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return setenv("CMOCKA_TEST_ABORT", "1", 1);
}
