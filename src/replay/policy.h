/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that a replay compares. */
#ifndef KVCA_REPLAY_POLICY_H
#define KVCA_REPLAY_POLICY_H

#include <stdatomic.h>

#include "config/error.h"

enum replay_policy_kind {
    REPLAY_KVCA,           /* the library's rule; with its filter and count priority off, the default cost */
    REPLAY_LEAST_REQUESTS, /* the fewest active requests */
    REPLAY_P2C,            /* the one with fewer active requests of two ranks drawn at random */
    REPLAY_ROUND_ROBIN,    /* one after the other, from rank 0 on */
};

struct replay_policy {
    enum replay_policy_kind kind;
    kvca_params params; /* of REPLAY_KVCA */
    const char *name;   /* as it was given */
};

/*
 * Reads a policy as the command line gives it: default:W, kvca:FRACTION|off:COUNT:W (parts may be left off from the
 * end), least_requests, p2c, round_robin, or the name of a policy file.
 */
kvca_status replay_policy_parse(const char *text, struct replay_policy *policy, kvca_error *error);

/*
 * Picks a rank without the library: for every kind but REPLAY_KVCA. `requests` are those active on each of `count` ranks;
 * `turn` is how many requests were routed before.
 */
size_t replay_policy_pick(const struct replay_policy *policy, const uint64_t *requests, size_t count, uint64_t turn,
                          _Atomic uint64_t *generator);

#endif
