/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every message about a text. */
#ifndef KVCA_FUZZ_MESSAGE_H
#define KVCA_FUZZ_MESSAGE_H

#include "fuzz.h"

#include <kvca/config.h>

/* Fills an error with bytes that no message has, so that what was not written is seen. */
void message_spoil(kvca_error *error);

/*
 * Fails unless `error` tells this status and a place inside the text (or none), and its message is terminated UTF-8 that
 * a terminal shows as it stands: `name`, the place if any, and a sentence.
 */
void message_check(const kvca_error *error, kvca_status status, const char *name, const char *text, size_t size);

/* The message without the name and the place. */
const char *message_sentence(const kvca_error *error, const char *name);

#endif
