/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/policy.h"

#include <string.h>

#include "rule/random.h"
#include "program/input.h"

#define PARTS 4

static const char ACCEPTED[] =
    "accepted are default:W, kvca:FRACTION|off:on|off:W, least_requests, p2c, round_robin, or "
    "a policy file";

static kvca_status refuse(const char *text, const char *what, kvca_error *error)
{
    return kvca_error_set(error, KVCA_ERR_CONFIG, "--policy", 0, 0, "\"%s\": %s; %s",
                          kvca_excerpt(text, strlen(text)).text, what, ACCEPTED);
}

/* A text split at its colons. */
struct parts {
    char text[128];
    const char *part[PARTS];
    size_t count;
};

static bool cut(const char *text, struct parts *parts)
{
    size_t length = strlen(text);
    if (length >= sizeof parts->text) {
        return false;
    }
    memcpy(parts->text, text, length + 1);
    parts->count = 0;
    for (char *at = parts->text; at; at = strchr(at, ':')) {
        if (parts->count == PARTS) {
            return false;
        }
        if (parts->count > 0) {
            *at++ = '\0';
        }
        parts->part[parts->count++] = at;
    }
    return true;
}

static kvca_status parse_kvca(const char *text, const struct parts *parts, struct replay_policy *policy,
                              kvca_error *error)
{
    kvca_params params = KVCA_PARAMS_DEFAULT;
    if (parts->count > 1 && strcmp(parts->part[1], "off") == 0) {
        params.capacity_fraction = KVCA_NO_CAPACITY_FILTER;
    } else if (parts->count > 1 && !program_read_decimal(parts->part[1], &params.capacity_fraction)) {
        return refuse(text, "FRACTION is neither a number nor off", error);
    }
    if (parts->count > 2) {
        params.count_priority = strcmp(parts->part[2], "on") == 0;
        if (!params.count_priority && strcmp(parts->part[2], "off") != 0) {
            return refuse(text, "COUNT is neither on nor off", error);
        }
    }
    if (parts->count > 3 && !program_read_decimal(parts->part[3], &params.decode_active_request_weight)) {
        return refuse(text, "W is not a number", error);
    }
    *policy = (struct replay_policy){.kind = REPLAY_KVCA, .params = params, .name = text};
    return KVCA_OK;
}

/* The default cost: the rule without its filter and its count priority. */
static kvca_status parse_default(const char *text, const struct parts *parts, struct replay_policy *policy,
                                 kvca_error *error)
{
    kvca_params params = {.size = sizeof params, .capacity_fraction = KVCA_NO_CAPACITY_FILTER};
    if (parts->count > 2 ||
        (parts->count == 2 && !program_read_decimal(parts->part[1], &params.decode_active_request_weight))) {
        return refuse(text, "W is not a number", error);
    }
    *policy = (struct replay_policy){.kind = REPLAY_KVCA, .params = params, .name = text};
    return KVCA_OK;
}

static kvca_status parse_file(const char *text, struct replay_policy *policy, kvca_error *error)
{
    if (!strpbrk(text, "/.") && strcmp(text, "-") != 0) {
        return refuse(text, "this is not the name of a policy and does not look like a file", error);
    }
    struct kvca_policy_file file;
    kvca_status status = program_read_policy(text, KVCA_ROLE_DECODE, &file, error);
    if (status == KVCA_OK) {
        *policy = (struct replay_policy){.kind = REPLAY_KVCA, .params = file.params, .name = text};
    }
    return status;
}

static kvca_status parse_named(const char *text, const struct parts *parts, struct replay_policy *policy,
                               kvca_error *error)
{
    static const struct {
        const char *name;
        enum replay_policy_kind kind;
    } plain[] = {
        {"least_requests", REPLAY_LEAST_REQUESTS},
        {"p2c", REPLAY_P2C},
        {"round_robin", REPLAY_ROUND_ROBIN},
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (strcmp(text, plain[i].name) == 0) {
            *policy = (struct replay_policy){.kind = plain[i].kind, .params = KVCA_PARAMS_DEFAULT, .name = text};
            return KVCA_OK;
        }
    }
    if (strcmp(parts->part[0], "kvca") == 0) {
        return parse_kvca(text, parts, policy, error);
    }
    if (strcmp(parts->part[0], "default") == 0) {
        return parse_default(text, parts, policy, error);
    }
    return parse_file(text, policy, error);
}

kvca_status replay_policy_parse(const char *text, struct replay_policy *policy, kvca_error *error)
{
    struct parts parts;
    kvca_status status =
        cut(text, &parts) ? parse_named(text, &parts, policy, error) : parse_file(text, policy, error);
    if (status == KVCA_OK && kvca_params_validate(&policy->params) != KVCA_OK) {
        return refuse(text, kvca_strerror(kvca_params_validate(&policy->params)), error);
    }
    return status;
}

static size_t pick_least(const uint64_t *requests, size_t count, _Atomic uint64_t *generator)
{
    uint64_t least = UINT64_MAX;
    size_t ties = 0;
    for (size_t rank = 0; rank < count; rank++) {
        ties = requests[rank] < least ? 1 : ties + (requests[rank] == least);
        least = requests[rank] < least ? requests[rank] : least;
    }
    size_t skip = ties > 1 ? (size_t)kvca_draw(generator, ties) : 0;
    size_t rank = 0;
    while (requests[rank] != least || skip-- > 0) {
        rank++;
    }
    return rank;
}

static size_t pick_of_two(const uint64_t *requests, size_t count, _Atomic uint64_t *generator)
{
    if (count == 1) {
        return 0;
    }
    size_t first = (size_t)kvca_draw(generator, count);
    size_t second = (size_t)kvca_draw(generator, count - 1);
    second += second >= first;                                  /* any except the first */
    return requests[second] < requests[first] ? second : first; /* `first` is uniform, so a tie is fair */
}

size_t replay_policy_pick(const struct replay_policy *policy, const uint64_t *requests, size_t count, uint64_t turn,
                          _Atomic uint64_t *generator)
{
    switch (policy->kind) {
    case REPLAY_LEAST_REQUESTS:
        return pick_least(requests, count, generator);
    case REPLAY_P2C:
        return pick_of_two(requests, count, generator);
    case REPLAY_ROUND_ROBIN:
    case REPLAY_KVCA:
        break;
    }
    return (size_t)(turn % count);
}
