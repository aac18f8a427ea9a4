/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: when requests arrive, and with how many tokens. */
#ifndef KVCA_REPLAY_TRACE_H
#define KVCA_REPLAY_TRACE_H

#include "config/error.h"

struct replay_request {
    double arrival_s; /* after the first request of the trace */
    uint64_t prompt_tokens;
    uint64_t output_tokens;
};

/* Requests in order of arrival. Those that arrive together are in the order of the file. */
struct replay_trace {
    struct replay_request *requests;
    size_t count;
    size_t unsorted; /* how many came in the file after one that arrived later */
};

/* Reads the trace that an argument of the command names. "-" is standard input. Free `trace` after KVCA_OK. */
kvca_status replay_trace_load(const char *argument, struct replay_trace *trace, kvca_error *error);

/* The same for a text of `size` bytes. Messages call it `name`. On failure `trace` is not written. */
kvca_status replay_trace_read(const char *text, size_t size, const char *name, struct replay_trace *trace,
                              kvca_error *error);

/* Makes a trace. `spec` is a possibly empty list KEY=VALUE,... (see synthetic.c). Fails with KVCA_ERR_CONFIG. */
kvca_status replay_trace_synthesize(const char *spec, struct replay_trace *trace, kvca_error *error);

void replay_trace_free(struct replay_trace *trace);

#endif
