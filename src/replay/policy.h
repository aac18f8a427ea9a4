/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that a replay compares. */
#ifndef KVCA_REPLAY_POLICY_H
#define KVCA_REPLAY_POLICY_H

#include <stdatomic.h>

#include "config/error.h"

enum replay_policy_kind {
    REPLAY_KVCA,           /* the library's rule; it is the default cost if the filter and count priority are off */
    REPLAY_LEAST_REQUESTS, /* the fewest active requests */
    REPLAY_P2C,            /* two random ranks, the one with fewer active requests */
    REPLAY_ROUND_ROBIN,    /* in turn, from rank 0 on */
};

struct replay_policy {
    enum replay_policy_kind kind;
    kvca_params params; /* of REPLAY_KVCA */
    const char *name;   /* as given */
};

/*
 * Reads an argument of --policy: default:W, kvca:FRACTION|off:on|off:W (the last parts are optional), least_requests,
 * p2c, round_robin, or a policy file.
 */
kvca_status replay_policy_parse(const char *text, struct replay_policy *policy, kvca_error *error);

/*
 * Picks a rank, for every kind except REPLAY_KVCA. `requests` are the active requests of each of `count` ranks. `turn`
 * is how many requests were routed before.
 */
size_t replay_policy_pick(const struct replay_policy *policy, const uint64_t *requests, size_t count, uint64_t turn,
                          _Atomic uint64_t *generator);

#endif
