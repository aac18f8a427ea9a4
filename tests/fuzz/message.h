/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that hold for every message about a text. */
#ifndef KVCA_FUZZ_MESSAGE_H
#define KVCA_FUZZ_MESSAGE_H

#include "fuzz.h"

#include <kvca/config.h>

/* Fills an error with bytes that no message has. What is not written then shows. */
void message_spoil(kvca_error *error);

/*
 * Fails unless `error` has this status and a place inside the text (or none). Its message must be terminated UTF-8 that
 * a terminal shows unchanged: `name`, the place if any, and a sentence.
 */
void message_check(const kvca_error *error, kvca_status status, const char *name, const char *text, size_t size);

/* The message without the name and the place. */
const char *message_sentence(const kvca_error *error, const char *name);

#endif
