/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tables. Each column is as wide as its widest cell. */
#ifndef KVCA_TABLE_H
#define KVCA_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS 12 /* at most */

struct table_column {
    const char *title;
    bool right; /* align to the right */
};

struct table {
    const struct table_column *columns;
    size_t width; /* how many columns */
    char **cells; /* row by row */
    size_t count;
    size_t room;
};

void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the titles and all full rows to standard output, indented by `indent` spaces. */
void table_print(const struct table *table, int indent);

void table_free(struct table *table);

#endif
