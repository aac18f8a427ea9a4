/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes random traces.
 *
 * Arrivals are a Poisson process: the gaps are independent and exponential, -ln(u) / rate. The first request arrives at
 * 0. Lengths are independent and log-normal: median * exp(sigma * z) with a standard normal z, rounded to an integer
 * from 1 to MOST_TOKENS. Their mean is the median times exp(sigma^2 / 2), if few reach the maximum. The normal numbers
 * come in pairs, one for the prompt and one for the output (Box and Muller, "A Note on the Generation of Random Normal
 * Deviates", 1958).
 *
 * Request i uses the numbers 3i, 3i + 1 and 3i + 2 of SplitMix64. So with the same seed, a longer trace begins with the
 * shorter one. These numbers are the same on every machine. Their logarithms and cosines may differ in the last bit
 * between C libraries.
 */
#include "replay/trace.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rule/random.h"
#include "config/scalar.h"
#include "program/fail.h"

/* The name of the list in messages. */
#define SPEC_NAME "--synthetic"

#define MOST_REQUESTS 10000000
#define MOST_TOKENS 131072
#define MOST_SIGMA 4

/* At a lower rate the last of MOST_REQUESTS might arrive after more than 300 years. */
#define LEAST_RATE 1e-3

#define TWO_PI 6.283185307179586

enum key { REQUESTS, RATE, PROMPT, OUTPUT, SIGMA, SEED, KEYS };

static const char *const NAMES[KEYS] = {
    [REQUESTS] = "requests", [RATE] = "rate",   [PROMPT] = "prompt",
    [OUTPUT] = "output",     [SIGMA] = "sigma", [SEED] = "seed",
};
#define NAMES_LISTED "requests, rate, prompt, output, sigma and seed"

static const char *const ACCEPTED[KEYS] = {
    [REQUESTS] = "an integer from 1 to 10000000",
    [RATE] = "arrivals per second, a finite number from 0.001 on",
    [PROMPT] = "the median of the prompt tokens, a number from 1 to 131072",
    [OUTPUT] = "the median of the output tokens, a number from 1 to 131072",
    [SIGMA] = "the standard deviation of the logarithm of lengths, a number from 0 to 4",
    [SEED] = "an integer from 0 to 18446744073709551615",
};

struct settings {
    uint64_t requests;
    double rate;
    double prompt;
    double output;
    double sigma;
    uint64_t seed;
};

static const struct settings DEFAULTS = {
    .requests = 2000,
    .rate = 20,
    .prompt = 1000,
    .output = 200,
    .sigma = 1,
    .seed = 0,
};

/* One KEY=VALUE of the list; not terminated. */
struct item {
    const char *text;
    size_t length;
    size_t column;
    size_t key_length; /* that of the item if it has no "=" */
};

static struct item item_at(const char *spec, const char *text)
{
    struct item item = {.text = text, .length = strcspn(text, ","), .column = (size_t)(text - spec) + 1};
    const char *equals = memchr(text, '=', item.length);
    item.key_length = equals ? (size_t)(equals - text) : item.length;
    return item;
}

/* The key of an item; KEYS if it is unknown. */
static enum key find_key(const struct item *item)
{
    int key = 0;
    while (key < KEYS &&
           (strlen(NAMES[key]) != item->key_length || memcmp(NAMES[key], item->text, item->key_length) != 0)) {
        key++;
    }
    return (enum key)key;
}

static kvca_status refuse_unknown(const struct item *item, kvca_error *error)
{
    const char *nearest = kvca_nearest(item->text, item->key_length, NAMES, KEYS);
    return kvca_error_set(error, KVCA_ERR_CONFIG, SPEC_NAME, 1, item->column,
                          "\"%s\" is not a key%s%s%s; accepted are " NAMES_LISTED ", each as KEY=VALUE",
                          kvca_excerpt(item->text, item->key_length).text, nearest ? " (did you mean " : "",
                          nearest ? nearest : "", nearest ? "?)" : "");
}

/* The value of an item, in the notation of policy files. */
static struct kvca_node value_of(const struct item *item)
{
    size_t skipped = item->key_length < item->length ? item->key_length + 1 : item->length;
    return (struct kvca_node){
        .kind = KVCA_NODE_SCALAR, .plain = true, .text = item->text + skipped, .length = item->length - skipped};
}

static bool read_integer(const struct kvca_node *node, uint64_t least, uint64_t most, uint64_t *value)
{
    return kvca_scalar_type(node) == KVCA_SCALAR_INTEGER && kvca_scalar_uint64(node, value) && *value >= least &&
           *value <= most;
}

static bool read_number(const struct kvca_node *node, double least, double most, double *value)
{
    enum kvca_scalar_type type = kvca_scalar_type(node);
    bool number = type == KVCA_SCALAR_INTEGER || type == KVCA_SCALAR_FLOAT;
    return number && kvca_scalar_double(node, value) == KVCA_OK && *value >= least && *value <= most;
}

static bool read_value(enum key key, const struct kvca_node *node, struct settings *settings)
{
    switch (key) {
    case REQUESTS:
        return read_integer(node, 1, MOST_REQUESTS, &settings->requests);
    case RATE:
        return read_number(node, LEAST_RATE, DBL_MAX, &settings->rate);
    case PROMPT:
        return read_number(node, 1, MOST_TOKENS, &settings->prompt);
    case OUTPUT:
        return read_number(node, 1, MOST_TOKENS, &settings->output);
    case SIGMA:
        return read_number(node, 0, MOST_SIGMA, &settings->sigma);
    default: /* SEED */
        return read_integer(node, 0, UINT64_MAX, &settings->seed);
    }
}

static kvca_status read_item(const struct item *item, bool seen[KEYS], struct settings *settings, kvca_error *error)
{
    enum key key = find_key(item);
    if (key == KEYS) {
        return refuse_unknown(item, error);
    }
    if (seen[key]) {
        return kvca_error_set(error, KVCA_ERR_CONFIG, SPEC_NAME, 1, item->column,
                              "%s stands here a second time; remove one of them", NAMES[key]);
    }
    seen[key] = true;
    struct kvca_node node = value_of(item);
    if (!read_value(key, &node, settings)) {
        return kvca_error_set(error, KVCA_ERR_CONFIG, SPEC_NAME, 1, item->column, "%s must be %s; found %s",
                              NAMES[key], ACCEPTED[key], kvca_found(&node).text);
    }
    return KVCA_OK;
}

static kvca_status read_spec(const char *spec, struct settings *settings, kvca_error *error)
{
    bool seen[KEYS] = {false};
    kvca_status status = KVCA_OK;
    const char *at = spec[0] != '\0' ? spec : NULL;
    while (at && status == KVCA_OK) {
        struct item item = item_at(spec, at);
        status = read_item(&item, seen, settings, error);
        at = at[item.length] == ',' ? at + item.length + 1 : NULL;
    }
    return status;
}

/* A number above 0 and below 1, from the upper 53 bits of SplitMix64. The lowest bit is set, so it is never 0. */
static double uniform(uint64_t seed, uint64_t index)
{
    return (double)(kvca_nth(seed, index) >> 11 | 1) * 0x1p-53;
}

static uint64_t tokens(double median, double sigma, double normal)
{
    double length = round(median * exp(sigma * normal));
    return (uint64_t)fmax(1, fmin(length, MOST_TOKENS));
}

static struct replay_request make_request(const struct settings *settings, uint64_t index, double previous_s)
{
    double gap = -log(uniform(settings->seed, 3 * index)) / settings->rate;
    double radius = sqrt(-2 * log(uniform(settings->seed, 3 * index + 1)));
    double angle = TWO_PI * uniform(settings->seed, 3 * index + 2);
    return (struct replay_request){
        .arrival_s = index == 0 ? 0 : previous_s + gap,
        .prompt_tokens = tokens(settings->prompt, settings->sigma, radius * cos(angle)),
        .output_tokens = tokens(settings->output, settings->sigma, radius * sin(angle)),
    };
}

kvca_status replay_trace_synthesize(const char *spec, struct replay_trace *trace, kvca_error *error)
{
    struct settings settings = DEFAULTS;
    kvca_status status = read_spec(spec, &settings, error);
    if (status != KVCA_OK) {
        return status;
    }
    size_t count = (size_t)settings.requests;
    struct replay_request *requests = program_resize(NULL, count * sizeof *requests);
    double arrival_s = 0;
    for (size_t i = 0; i < count; i++) {
        requests[i] = make_request(&settings, i, arrival_s);
        arrival_s = requests[i].arrival_s;
    }
    *trace = (struct replay_trace){.requests = requests, .count = count};
    return KVCA_OK;
}
