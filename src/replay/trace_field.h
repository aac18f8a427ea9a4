/* SPDX-License-Identifier: Apache-2.0 */
/* What a field of a trace may hold, and how it is read from CSV. */
#ifndef KVCA_REPLAY_TRACE_FIELD_H
#define KVCA_REPLAY_TRACE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Far above what a model takes, and little enough that a run, which makes a pass for each token, ends soon. */
#define REPLAY_MOST_TOKENS ((uint64_t)1 << 24)
#define REPLAY_COUNT_ACCEPTED "an integer from 0 to 16777216 (2^24)"

/* Some 300 years: times stay finite whatever they are divided by. */
#define REPLAY_MOST_SECONDS 1e10
#define REPLAY_SECONDS_ACCEPTED "a decimal number from 0 to 1e10, in seconds"

#define REPLAY_MILLISECONDS_ACCEPTED "a number from 0 to 1e13, in milliseconds"

#define REPLAY_DATE_ACCEPTED "a date and time like 2023-11-16 18:17:03.9799600, from 1970 to 2261"

/* A piece of a line; not terminated. */
struct replay_field {
    const char *text;
    size_t length;
};

/* When a request arrives, as the file says it. Only differences count: each format uses one of the two. */
struct replay_arrival {
    int64_t nanoseconds; /* since 1970, of a date: a double would round it */
    double number;       /* in the unit of the format */
};

/* These read a whole field, and return false where it does not hold what their _ACCEPTED tells. */

bool replay_field_count(const struct replay_field *field, uint64_t *count);

/* The byte after the field must be readable and no part of a number, as the comma before the next is. */
bool replay_field_seconds(const struct replay_field *field, struct replay_arrival *arrival);

bool replay_field_date(const struct replay_field *field, struct replay_arrival *arrival);

#endif
