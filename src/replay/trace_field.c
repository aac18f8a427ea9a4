/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/trace_field.h"

#include <stdlib.h>
#include <string.h>

/* Nanoseconds since 1970 fit into 64 bits in these years. */
#define FIRST_YEAR 1970
#define LAST_YEAR 2261

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool replay_field_count(const struct replay_field *field, uint64_t *count)
{
    *count = 0;
    for (size_t i = 0; i < field->length; i++) {
        if (!is_digit(field->text[i])) {
            return false;
        }
        *count = *count * 10 + (uint64_t)(field->text[i] - '0');
        if (*count > REPLAY_MOST_TOKENS) {
            return false; /* before it can overflow */
        }
    }
    return field->length > 0;
}

/* An arrival may not have a sign, hexadecimal digits, "inf" or leading space, which strtod() would read. */
static bool is_decimal(const struct replay_field *field)
{
    for (size_t i = 0; i < field->length; i++) {
        char c = field->text[i];
        if (!is_digit(c) && (c == '\0' || !strchr(i == 0 ? "." : ".eE+-", c))) {
            return false;
        }
    }
    return field->length > 0;
}

bool replay_field_seconds(const struct replay_field *field, struct replay_arrival *arrival)
{
    char *end;
    if (!is_decimal(field)) {
        return false;
    }
    *arrival = (struct replay_arrival){.number = strtod(field->text, &end)};
    return end == field->text + field->length && arrival->number <= REPLAY_MOST_SECONDS;
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* From the first day of year 1, in the Gregorian calendar. */
static int64_t days_before_year(int64_t year)
{
    int64_t past = year - 1;
    return past * 365 + past / 4 - past / 100 + past / 400;
}

static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
    int64_t days = days_before_year(year) - days_before_year(1970) + day - 1;
    for (int64_t past = 1; past < month; past++) {
        days += days_in_month(year, past);
    }
    return days;
}

static int64_t digits(const char *text, size_t count)
{
    int64_t number = 0;
    for (size_t i = 0; i < count; i++) {
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* Whether the text begins like `pattern`. A 0 in `pattern` matches any digit. */
static bool begins_like(const struct replay_field *field, const char *pattern)
{
    size_t length = strlen(pattern);
    if (field->length < length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (pattern[i] == '0' ? !is_digit(field->text[i]) : field->text[i] != pattern[i]) {
            return false;
        }
    }
    return true;
}

static bool read_day(const char *text, int64_t *day)
{
    int64_t year = digits(text, 4);
    int64_t month = digits(text + 5, 2);
    int64_t day_of_month = digits(text + 8, 2);
    if (year < FIRST_YEAR || year > LAST_YEAR || month < 1 || month > 12) {
        return false;
    }
    *day = days_since_1970(year, month, day_of_month);
    return day_of_month >= 1 && day_of_month <= days_in_month(year, month);
}

static bool read_second_of_day(const char *text, int64_t *second)
{
    int64_t hours = digits(text, 2);
    int64_t minutes = digits(text + 3, 2);
    int64_t seconds = digits(text + 6, 2);
    *second = (hours * 60 + minutes) * 60 + seconds;
    return hours < 24 && minutes < 60 && seconds < 60;
}

/* Reads what follows the seconds: nothing, or a point and one to nine digits. */
static bool read_fraction(const struct replay_field *field, int64_t *nanoseconds)
{
    *nanoseconds = 0;
    if (field->length == 0) {
        return true;
    }
    int64_t unit = 1000000000;
    for (size_t i = 1; i < field->length; i++) {
        if (!is_digit(field->text[i]) || unit == 1) {
            return false;
        }
        unit /= 10;
        *nanoseconds += (field->text[i] - '0') * unit;
    }
    return field->text[0] == '.' && field->length > 1;
}

bool replay_field_date(const struct replay_field *field, struct replay_arrival *arrival)
{
    static const char pattern[] = "0000-00-00 00:00:00";
    int64_t day;
    int64_t second;
    int64_t nanoseconds;
    if (!begins_like(field, pattern) || !read_day(field->text, &day) ||
        !read_second_of_day(field->text + strlen("0000-00-00 "), &second)) {
        return false;
    }
    size_t used = strlen(pattern);
    struct replay_field fraction = {field->text + used, field->length - used};
    if (!read_fraction(&fraction, &nanoseconds)) {
        return false;
    }
    *arrival = (struct replay_arrival){.nanoseconds = (day * 86400 + second) * 1000000000 + nanoseconds};
    return true;
}
