/* SPDX-License-Identifier: Apache-2.0 */
/* Request traces: who arrives when, with how many tokens. */
#ifndef KVCA_REPLAY_TRACE_H
#define KVCA_REPLAY_TRACE_H

#include "config/error.h"

struct replay_request {
    double arrival_s; /* after the first request of the trace */
    uint64_t prompt_tokens;
    uint64_t output_tokens;
};

/* Requests in the order of their arrival; those that arrive together, in the order of the file. */
struct replay_trace {
    struct replay_request *requests;
    size_t count;
    size_t unsorted; /* how many stood in the file behind one that arrived later */
};

/*
 * Reads the trace that an argument of the command names; "-" is standard input. The format is told by the content: the
 * Azure LLM inference trace of 2023, Mooncake's JSON lines, or plain CSV with the header
 * arrival_s,prompt_tokens,output_tokens. Free `trace` after KVCA_OK.
 */
kvca_status replay_trace_load(const char *argument, struct replay_trace *trace, kvca_error *error);

/* The same for a text of `size` bytes, which messages call `name`. `trace` is written for KVCA_OK alone. */
kvca_status replay_trace_read(const char *text, size_t size, const char *name, struct replay_trace *trace,
                              kvca_error *error);

/*
 * Makes a trace: arrivals of a Poisson process, prompt and output lengths that are log-normal. `spec` is a list of
 * KEY=VALUE, separated by commas and possibly empty; the keys are told where they are read. Fails with KVCA_ERR_CONFIG.
 */
kvca_status replay_trace_synthesize(const char *spec, struct replay_trace *trace, kvca_error *error);

void replay_trace_free(struct replay_trace *trace);

#endif
