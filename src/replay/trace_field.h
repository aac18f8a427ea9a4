/* SPDX-License-Identifier: Apache-2.0 */
/* The values that a field of a trace may have, and functions that read them from CSV. */
#ifndef KVCA_REPLAY_TRACE_FIELD_H
#define KVCA_REPLAY_TRACE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Far above what a model takes. A run makes a pass for each token, and must still end soon. */
#define REPLAY_MOST_TOKENS ((uint64_t)1 << 24)
#define REPLAY_COUNT_ACCEPTED "an integer from 0 to 16777216 (2^24)"

/* About 300 years. Times stay finite whatever they are divided by. */
#define REPLAY_MOST_SECONDS 1e10
#define REPLAY_SECONDS_ACCEPTED "a decimal number from 0 to 1e10, in seconds"

#define REPLAY_MILLISECONDS_ACCEPTED "a number from 0 to 1e13, in milliseconds"

#define REPLAY_DATE_ACCEPTED "a date and time like 2023-11-16 18:17:03.9799600, from 1970 to 2261"

/* A piece of a line. It is not terminated. */
struct replay_field {
    const char *text;
    size_t length;
};

/* When a request arrives, as the file gives it. A format uses one of the two. Only differences matter. */
struct replay_arrival {
    int64_t nanoseconds; /* of a date, since 1970; a double would round it */
    double number;       /* in the unit of the format */
};

/* These read a whole field. They return false if it is not what their _ACCEPTED text says. */

bool replay_field_count(const struct replay_field *field, uint64_t *count);

/* The byte after the field must be readable and not part of a number, such as a comma. */
bool replay_field_seconds(const struct replay_field *field, struct replay_arrival *arrival);

bool replay_field_date(const struct replay_field *field, struct replay_arrival *arrival);

#endif
