/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVCA_FILE_H
#define KVCA_FILE_H

#include <stdio.h>

#include "config/error.h"

/*
 * Reads at most max_bytes + 1 bytes of the file at `path`. The one more byte lets the caller say where a file is too
 * long. `*text` is not terminated. Free it after KVCA_OK.
 */
kvca_status kvca_file_read(const char *path, size_t max_bytes, char **text, size_t *size, kvca_error *error);

/* The same for an open stream. Messages call it `name`. */
kvca_status kvca_stream_read(FILE *stream, const char *name, size_t max_bytes, char **text, size_t *size,
                             kvca_error *error);

#endif
