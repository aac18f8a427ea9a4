/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVCA_FILE_H
#define KVCA_FILE_H

#include <stdio.h>

#include "config/error.h"

/*
 * Reads the file at `path`, or its first max_bytes + 1 bytes if it is longer, so that the reader of the text can tell
 * where it passes the bound. Free `*text` after KVCA_OK; it is not terminated.
 */
kvca_status kvca_file_read(const char *path, size_t max_bytes, char **text, size_t *size, kvca_error *error);

/* The same for an open stream, which messages call `name`. */
kvca_status kvca_stream_read(FILE *stream, const char *name, size_t max_bytes, char **text, size_t *size,
                             kvca_error *error);

#endif
