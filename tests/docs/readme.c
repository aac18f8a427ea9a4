/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The README's piece of a router in a function, with the parts that it leaves to the reader. It is compiled, not run.
 */
#include <stdint.h>

#include <kvca/config.h>
#include <kvca/pool.h>

int use_own_selector(const char *message);
int fail(const char *message);
void send_to(size_t slot, kvca_booking booking);
void hold_back(kvca_request request);
void reject(kvca_request request);
int route(uint64_t prompt_tokens);

int route(uint64_t prompt_tokens)
{
#include "README.inc"
    return 0;
}
