/* SPDX-License-Identifier: Apache-2.0 */
/* Reports output that could not be written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool/tool.h"

static bool lost;
static int fault; /* errno of the first failure */

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
    /* Some file systems report a full disk only here. EBADF means that standard output was never open: the flush has
     * already reported what was lost. */
    if (fclose(stdout) != 0 && errno != EBADF) {
        note_loss();
    }
    if (lost) {
        fprintf(stderr, "kvca: cannot write the output: %s\n", strerror(fault));
    }
    return !lost;
}
