/* SPDX-License-Identifier: Apache-2.0 */
/* A line that is one JSON object (RFC 8259): the values of some of its keys. Read in place: there is no memory to run out. */
#ifndef KVCA_REPLAY_JSON_LINE_H
#define KVCA_REPLAY_JSON_LINE_H

#include "trace_field.h"

/* How deep objects and lists may nest. */
#define REPLAY_JSON_DEPTH 32

/* Why a line is no such object. */
struct replay_json_fault {
    const char *at; /* the end of the line, where more should come */
    const char *what;
};

/*
 * Finds the values of `count` keys as they are written; `text` is NULL of one that is absent, and of one that stands
 * several times the last counts. NaN, Infinity and -Infinity are let pass as values, since programs write them. Returns
 * false, with the fault, unless the line is one object and white space behind it.
 */
bool replay_json_line(const struct replay_field *line, const char *const *keys, size_t count,
                      struct replay_field *values, struct replay_json_fault *fault);

#endif
