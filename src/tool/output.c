/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output: whether all of it arrives. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool/tool.h"

static bool lost;
static int fault; /* why, if it is known: errno of the first failure */

static void note_loss(void)
{
    if (!lost) {
        lost = true;
        fault = errno;
    }
}

void tool_flush_output(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        note_loss();
    }
}

bool tool_close_output(void)
{
    tool_flush_output();
    /* Some file systems tell only now that a disk is full. Where it was never open, nothing is lost but what the flush
     * could not write. */
    if (fclose(stdout) != 0 && errno != EBADF) {
        note_loss();
    }
    if (lost) {
        fprintf(stderr, "kvca: cannot write the output: %s\n", strerror(fault));
    }
    return !lost;
}
