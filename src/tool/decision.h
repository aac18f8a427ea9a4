/* SPDX-License-Identifier: Apache-2.0 */
/* A decision that `kvca select` made, and two ways to print it. */
#ifndef KVCA_TOOL_DECISION_H
#define KVCA_TOOL_DECISION_H

#include "config/policy_file.h"
#include "tool/ranks.h"

struct decision {
    const char *policy_path; /* printable */
    struct kvca_policy_file policy;
    kvca_ranks ranks;
    uint64_t seed;
    kvca_selection selection;
    const size_t *tied;                /* selection.ties rows */
    const kvca_explanation *explained; /* one for each row */
};

void decision_print(const struct decision *decision);
void decision_print_json(const struct decision *decision);

#endif
