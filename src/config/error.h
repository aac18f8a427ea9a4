/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages: where, what was found, what is accepted. */
#ifndef KVCA_ERROR_H
#define KVCA_ERROR_H

#include <stdarg.h>

#include <kvca/config.h>

#if defined(__GNUC__)
#define KVCA_PRINTF(position, first) __attribute__((__format__(__printf__, position, first)))
#else
#define KVCA_PRINTF(position, first)
#endif

/*
 * Writes "NAME:LINE:COLUMN: " and the formatted text to `error`, which may be NULL. If `line` is 0, writes only
 * "NAME: " in front. Returns `status`.
 */
kvca_status kvca_error_set(kvca_error *error, kvca_status status, const char *name, size_t line, size_t column,
                           const char *format, ...) KVCA_PRINTF(6, 7);
kvca_status kvca_error_vset(kvca_error *error, kvca_status status, const char *name, size_t line, size_t column,
                            const char *format, va_list arguments) KVCA_PRINTF(6, 0);

/* The message that memory has run out. Returns KVCA_ERR_NO_MEMORY. */
kvca_status kvca_error_no_memory(kvca_error *error, const char *name);

/* A short printable piece of a document. */
struct kvca_excerpt {
    char text[64];
};

/*
 * The beginning of `text`; "..." marks what is cut off. Characters that a terminal would not simply show become
 * <U+001B>, and bytes that are not UTF-8 become <FF>.
 */
struct kvca_excerpt kvca_excerpt(const char *text, size_t length);

/* A file name, written the same way. Of a long name the end is kept, because it says more. */
struct kvca_shown_name {
    char text[320];
};
struct kvca_shown_name kvca_shown_name(const char *name);

/* The text in `known` that `text` is probably meant to be; NULL if none is close. */
const char *kvca_nearest(const char *text, size_t length, const char *const *known, size_t count);

/* How many typing slips turn `known` into `text`; SIZE_MAX if there are too many. */
size_t kvca_slips(const char *text, size_t length, const char *known);

#endif
