/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for people: where, what was found, what is accepted. */
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
 * Fills `error` (which may be NULL): "NAME:LINE:COLUMN: " and the formatted text, or "NAME: " where line is 0.
 * Returns `status`, so that a function can fail in one statement.
 */
kvca_status kvca_error_set(kvca_error *error, kvca_status status, const char *name, size_t line, size_t column,
                           const char *format, ...) KVCA_PRINTF(6, 7);
kvca_status kvca_error_vset(kvca_error *error, kvca_status status, const char *name, size_t line, size_t column,
                            const char *format, va_list arguments) KVCA_PRINTF(6, 0);

/* Says that memory has run out; returns KVCA_ERR_NO_MEMORY. */
kvca_status kvca_error_no_memory(kvca_error *error, const char *name);

/* A piece of a document, short and printable. */
struct kvca_excerpt {
    char text[64];
};

/*
 * The beginning of `text`. What a terminal would obey and not show is written out, as <U+001B>, and what is no UTF-8 as
 * <FF>; "..." stands for what is cut off.
 */
struct kvca_excerpt kvca_excerpt(const char *text, size_t length);

/* A file name, written likewise; of a long one the end, which tells more. */
struct kvca_shown_name {
    char text[320];
};
struct kvca_shown_name kvca_shown_name(const char *name);

/* The one of `known` that `text` is most likely a slip for; NULL when none is near. */
const char *kvca_nearest(const char *text, size_t length, const char *const *known, size_t count);

/* How many slips make `text` of `known`; SIZE_MAX when they are too many to be slips. */
size_t kvca_slips(const char *text, size_t length, const char *known);

#endif
