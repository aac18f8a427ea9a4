/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* strerror_l */

#include "config/file.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)16 * 1024)

/* strerror() is not safe in threads, and its language depends on the locale. */
static kvca_status cannot_read(const char *name, int number, kvca_error *error)
{
    if (number == ENOMEM) {
        return kvca_error_no_memory(error, name);
    }
    locale_t english = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (english == (locale_t)0) {
        return kvca_error_no_memory(error, name);
    }
    kvca_error_set(error, KVCA_ERR_FILE, name, 0, 0, "cannot read this file: %s", strerror_l(number, english));
    freelocale(english);
    return KVCA_ERR_FILE;
}

/* Doubles the room, up to `most`. */
static kvca_status make_room(char **text, size_t *room, size_t most)
{
    size_t wanted = *room == 0 ? FIRST_ROOM : *room * 2;
    wanted = wanted < most ? wanted : most;
    char *grown = realloc(*text, wanted);
    if (!grown) {
        return KVCA_ERR_NO_MEMORY;
    }
    *text = grown;
    *room = wanted;
    return KVCA_OK;
}

static kvca_status read_all(FILE *stream, const char *name, size_t max_bytes, char **text, size_t *size,
                            kvca_error *error)
{
    size_t room = 0;
    while (*size <= max_bytes) {
        if (make_room(text, &room, max_bytes + 1) != KVCA_OK) { /* one more byte shows that the file is too long */
            return kvca_error_no_memory(error, name);
        }
        size_t want = room - *size;
        size_t got = fread(*text + *size, 1, want, stream);
        *size += got;
        if (ferror(stream)) {
            return cannot_read(name, errno, error);
        }
        if (got < want) {
            break;
        }
    }
    return KVCA_OK;
}

kvca_status kvca_stream_read(FILE *stream, const char *name, size_t max_bytes, char **text, size_t *size,
                             kvca_error *error)
{
    char *read = NULL;
    size_t length = 0;
    kvca_status status = read_all(stream, name, max_bytes, &read, &length, error);
    if (status != KVCA_OK) {
        free(read);
        return status;
    }
    *text = read;
    *size = length;
    return KVCA_OK;
}

kvca_status kvca_file_read(const char *path, size_t max_bytes, char **text, size_t *size, kvca_error *error)
{
    FILE *stream = fopen(path, "rbe");
    if (!stream) {
        return cannot_read(path, errno, error);
    }
    kvca_status status = kvca_stream_read(stream, path, max_bytes, text, size, error);
    fclose(stream);
    return status;
}
