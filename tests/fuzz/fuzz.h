/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target is a function that is called with any bytes, one input after the other in one process. It ends the
 * process if something does not hold. It asserts with cmocka like the suites; see driver.c.
 */
#ifndef KVCA_FUZZ_H
#define KVCA_FUZZ_H

#include "support/test.h"

/* Called once, before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
