/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for a terminal: columns as wide as their widest cell, two spaces apart. */
#ifndef KVCA_TABLE_H
#define KVCA_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS 12 /* the most that a table may have */

struct table_column {
    const char *title;
    bool right; /* align to the right, as numbers are */
};

struct table {
    const struct table_column *columns;
    size_t width; /* how many columns */
    char **cells; /* row by row */
    size_t count;
    size_t room;
};

/* Adds the next cell. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the titles and all full rows to standard output, each line after `indent` spaces. */
void table_print(const struct table *table, int indent);

void table_free(struct table *table);

#endif
