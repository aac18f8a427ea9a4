/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/fail.h"

/* Longer cells are cut. */
#define CELL 160

static void make_room(struct table *table)
{
    if (table->count < table->room) {
        return;
    }
    table->room = table->room == 0 ? 64 : table->room * 2;
    table->cells = program_resize(table->cells, table->room * sizeof *table->cells);
}

void table_add(struct table *table, const char *format, ...)
{
    char text[CELL];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t size = strlen(text) + 1;
    make_room(table);
    table->cells[table->count++] = memcpy(program_resize(NULL, size), text, size);
}

/* The next column, or the first column after the last. */
static size_t following(const struct table *table, size_t column)
{
    return column + 1 == table->width ? 0 : column + 1;
}

static void measure(const struct table *table, int *widths)
{
    for (size_t column = 0; column < table->width; column++) {
        widths[column] = (int)strlen(table->columns[column].title);
    }
    size_t column = 0;
    for (size_t i = 0; i < table->count; i++, column = following(table, column)) {
        int width = (int)strlen(table->cells[i]);
        widths[column] = width > widths[column] ? width : widths[column];
    }
}

static void print_cell(const struct table *table, size_t column, const char *text, const int *widths, int indent)
{
    bool last = column + 1 == table->width;
    printf("%*s", column == 0 ? indent : 2, "");
    if (table->columns[column].right) {
        printf("%*s", widths[column], text);
    } else {
        printf("%-*s", last ? 0 : widths[column], text);
    }
    if (last) {
        putchar('\n');
    }
}

void table_print(const struct table *table, int indent)
{
    int widths[TABLE_COLUMNS] = {0};
    measure(table, widths);
    for (size_t i = 0; i < table->width; i++) {
        print_cell(table, i, table->columns[i].title, widths, indent);
    }
    size_t column = 0;
    for (size_t i = 0; i < table->count; i++, column = following(table, column)) {
        print_cell(table, column, table->cells[i], widths, indent);
    }
}

void table_free(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
}
