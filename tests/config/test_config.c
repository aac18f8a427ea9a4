/* SPDX-License-Identifier: Apache-2.0 */
/* The policy file: the documents of vectors/config.yaml, each a test, and hostile files. */
#define _DEFAULT_SOURCE /* mkdtemp, sys/resource.h */

#include "support/test.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvca/config.h>

#include "support/vectors.h"

static yaml_document_t document;

static void check_place_in_message(const kvca_error *error, const char *name)
{
    char place[128];
    snprintf(place, sizeof place, "%s:%zu:%zu: ", name, error->line, error->column);
    if (strncmp(error->message, place, strlen(place)) != 0) {
        fail_msg("the message does not begin with its place %s: %s", place, error->message);
    }
}

static void check_loaded(yaml_node_t *expected, const kvca_params *params)
{
    yaml_node_t *fraction = vector_get(&document, expected, "capacity_fraction");
    yaml_node_t *blocks = vector_get(&document, expected, "capacity_blocks");
    double want = vector_is_null(fraction) ? KVCA_NO_CAPACITY_FILTER : vector_double(fraction, 0.0);
    assert_true(params->capacity_fraction == want);
    assert_int_equal(params->count_priority, vector_bool(vector_get(&document, expected, "count_priority"), false));
    assert_true(params->decode_active_request_weight ==
                vector_double(vector_get(&document, expected, "decode_active_request_weight"), -1.0));
    assert_int_equal(params->capacity_blocks, vector_is_null(blocks) ? 0 : vector_uint64(blocks, 0));
}

static void check_refused(yaml_node_t *expected, const kvca_error *error)
{
    print_message("%s\n", error->message);
    assert_int_equal(error->line, vector_uint64(vector_get(&document, expected, "line"), 0));
    check_place_in_message(error, "policy.yaml");
    yaml_node_t *mentions = vector_get(&document, expected, "mentions");
    for (size_t i = 0; vector_at(&document, mentions, i); i++) {
        const char *word = vector_text(vector_at(&document, mentions, i));
        if (!strstr(error->message, word)) {
            fail_msg("the message does not mention %s: %s", word, error->message);
        }
    }
}

static void document_loads_or_is_refused(void **state)
{
    yaml_node_t *vector = *state;
    yaml_node_t *text = vector_get(&document, vector, "text");
    yaml_node_t *role_name = vector_get(&document, vector, "role");
    yaml_node_t *loaded = vector_get(&document, vector, "ok");
    kvca_role role = KVCA_ROLE_DECODE;
    if (role_name) {
        assert_int_equal(kvca_role_parse(vector_text(role_name), &role), KVCA_OK);
    }
    kvca_params untouched = PARAMS(-1.0, false, -1.0, 1);
    kvca_params params = untouched;
    kvca_error error = {.size = sizeof error, .status = KVCA_OK};
    kvca_status status = kvca_config_load_buffer((const char *)text->data.scalar.value, text->data.scalar.length,
                                                 "policy.yaml", role, &params, &error);
    if (loaded) {
        if (status != KVCA_OK) {
            fail_msg("refused: %s", error.message);
        }
        check_loaded(loaded, &params);
        return;
    }
    assert_int_not_equal(status, KVCA_OK);
    assert_int_equal(error.status, status);
    assert_true(memcmp(&params.capacity_fraction, &untouched.capacity_fraction, sizeof(double)) == 0);
    assert_int_equal(params.capacity_blocks, untouched.capacity_blocks);
    check_refused(vector_get(&document, vector, "error"), &error);
}

/* Documents that are not in the vectors: the result, and the start of the message. */
static const struct {
    const char *text;
    kvca_status status;
    const char *message;
} DOCUMENTS[] = {
    {"worker_selection: {instances: []}\n", KVCA_NOT_SELECTED,
     "p:1:1: the decode pool is not served by dynamo-kv-capacity-aware: worker_selection names no instance for it"},
    {"worker_selection: {decode: default}\n", KVCA_NOT_SELECTED, "p:1:28: the decode pool is not served by"},
    {"worker_selection: {decode: t, instances: [{name: t, type: other}]}\n", KVCA_NOT_SELECTED,
     "p:1:59: the decode pool is not served by dynamo-kv-capacity-aware: the instance t is of type other"},
    {"worker_selection: {decode: t, instances: [{name: t, type: dynamo-kv-capacity-awar}]}\n", KVCA_NOT_SELECTED,
     "p:1:59: the decode pool is not served by dynamo-kv-capacity-aware: the instance t is of type "
     "dynamo-kv-capacity-awar (is that a slip?)"},
    {"worker_selection: {prefill: nobody}\n", KVCA_ERR_CONFIG,
     "p:1:29: prefill names the instance nobody, but no instance has that name"},
    {"worker_selection: {decode: kvac, instances: [{name: kvca, type: x}]}\n", KVCA_ERR_CONFIG,
     "p:1:28: decode names the instance kvac, but no instance has that name; did you mean kvca?"},
    {"worker_selection: {decode: 5}\n", KVCA_ERR_CONFIG, "p:1:28: decode must be the name of an instance"},
    {"worker_selection: {decode: }\n", KVCA_ERR_CONFIG, "p:1:28: decode must be the name of an instance"},
    {"worker_selection: {decode: \"\"}\n", KVCA_ERR_CONFIG, "p:1:28: decode must be the name of an instance"},
    {"worker_selection: {decode: \"a\\0\"}\n", KVCA_ERR_CONFIG, "p:1:28: decode must be the name of an instance"},
    {"worker_selection: {instances: [{name: 1, type: x}]}\n", KVCA_ERR_CONFIG, "p:1:39: name must be text"},
    {"worker_selection: {instances: [{name: a, type: null}]}\n", KVCA_ERR_CONFIG, "p:1:48: type must be text"},
    {"worker_selection: {instances: {a: b}}\n", KVCA_ERR_CONFIG, "p:1:31: instances must be a list"},
    {"worker_selection: {instances: [5]}\n", KVCA_ERR_CONFIG, "p:1:32: an instance must be a mapping; found 5"},
    {"worker_selection: !!map {}\n", KVCA_ERR_CONFIG,
     "p:1:19: worker_selection must be a mapping; found a value with"},
    {"worker_selection: {}\nworker_selection: {}\n", KVCA_ERR_CONFIG,
     "p:2:1: worker_selection stands here a second time; the first is in line 1"},
    {"models: {}\nworker_selection: {}\nmodels: {}\n", KVCA_ERR_CONFIG, "p:3:1: models stands here a second time"},
    {"<<: {a: b}\nworker_selection: {}\n", KVCA_ERR_CONFIG, "p:1:1: the merge key << is not supported"},
    {"\"<<\": 1\n", KVCA_ERR_CONFIG,
     "p:1:1: \"<<\" is not a parameter, and the file has no worker_selection; accepted are capacity_fraction, "
     "count_priority"},
    {"!!str capacity_fraction: 1\n", KVCA_ERR_CONFIG, "p:1:1: a key must be plain text; found a value with"},
    {"? \n: 1\n", KVCA_ERR_CONFIG,
     "p:1:2: \"\" is not a parameter, and the file has no worker_selection; accepted are"},
    {"capacity_fraction: \"\\e[31m\"\n", KVCA_ERR_CONFIG,
     "p:1:20: capacity_fraction must be a number above 0 and at most 1 (0.95 for 95 %), or null to turn the filter "
     "off; found the "
     "quoted text \"<U+001B>[31m\""},
    {"\"\\x9b\\u202e\\u2028\\ufeff\\\\\": 1\n", KVCA_ERR_CONFIG,
     "p:1:1: \"<U+009B><U+202E><U+2028><U+FEFF>\\\" is not a parameter"},
    {"capacity_fraction: |\n  0.5\n", KVCA_ERR_CONFIG,
     "p:1:20: capacity_fraction must be a number above 0 and at most 1 (0.95 for 95 %), or null to turn the filter "
     "off; found the block text \"0.5<U+000A>\""},
    {"CAPACITY_FRACTION: 1\n", KVCA_ERR_CONFIG,
     "p:1:1: \"CAPACITY_FRACTION\" is not a parameter, and the file has no worker_selection (did you mean "
     "capacity_fraction?)"},
    {"worker_selection: {decode: prod-wst, instances: [{name: prod-east, type: x}, {name: prod-west, type: x}]}\n",
     KVCA_ERR_CONFIG,
     "p:1:28: decode names the instance prod-wst, but no instance has that name; did you mean prod-west?"},
    {"worker_selection: {decode: defualt}\n", KVCA_ERR_CONFIG,
     "p:1:28: decode names the instance defualt, but no instance has that name; did you mean default?"},
    {"capacity_fraction: 0.5\nworker_selection: {}\n", KVCA_ERR_CONFIG,
     "p:1:1: capacity_fraction has no effect beside worker_selection; move it into the parameters of an instance"},
    {"!!map {capacity_fraction: 1}\n", KVCA_ERR_CONFIG, "p:1:1: a policy file must be a mapping"},
    {"%TAG !a! a\n---\ncapacity_fraction: 1\n", KVCA_ERR_CONFIG, "p:1:1: the directive %TAG is not accepted"},
    {"%YAML 1.2\n---\ncapacity_fraction: 1\n", KVCA_OK, NULL},
    {"\xef\xbb\xbf\ncapacity_fraction: \x01\n", KVCA_ERR_YAML, "p:2:20: the document is not text in UTF-8"},
    {"\xef\xbb\xbf"
     "capacity_fraction: \x01\n",
     KVCA_ERR_YAML, "p:1:20: the document is not text in UTF-8"},
    {"\xef\xbb\xbf"
     "capacity_fraction: 7\n",
     KVCA_ERR_CONFIG, "p:1:20: capacity_fraction must be"},
    {"capacity_fraction: 0.5\r# \x01\r", KVCA_ERR_YAML, "p:2:3: the document is not text in UTF-8"},
    {"capacity_fraction: 1e-400\n", KVCA_ERR_CONFIG, "p:1:20: capacity_fraction must be"},
    {"decode_active_request_weight: -.inf\n", KVCA_ERR_CONFIG, "p:1:31: decode_active_request_weight must be"},
    {"decode_active_request_weight: 0x10\n", KVCA_OK, NULL},
    {"decode_active_request_weight: 0o17\n", KVCA_OK, NULL},
    {"decode_active_request_weight: 1.\n", KVCA_OK, NULL},
    {"decode_active_request_weight: 0o7777777777777777777777777\n", KVCA_ERR_CONFIG, "p:1:31:"},
    {"capacity_blocks: +7\n", KVCA_OK, NULL},
    {"capacity_blocks: 007\n", KVCA_OK, NULL},
    {"capacity_blocks: -0\n", KVCA_ERR_CONFIG, "p:1:18: capacity_blocks must be an integer from 1"},
    {"capacity_blocks: 0x1_0\n", KVCA_ERR_CONFIG, "p:1:18: capacity_blocks must be an integer from 1"},
    {"capacity_blocks: 0X10\n", KVCA_ERR_CONFIG, "p:1:18: capacity_blocks must be an integer from 1"},
    {"capacity_fraction: &a [*a]\n", KVCA_ERR_YAML, "p:1:24: the alias *a cannot be followed: it stands inside what"},
    {"capacity_fraction: *a\n", KVCA_ERR_YAML, "p:1:20: the alias *a cannot be followed: no anchor of that name"},
    {"x: &a 0.5\ny: &a 0.25\nworker_selection: {decode: k, instances: [{name: k, type: dynamo-kv-capacity-aware, "
     "parameters: {capacity_fraction: *a}}]}\n",
     KVCA_OK, NULL},
    {"capacity_fraction: 1\n...\n---\n", KVCA_ERR_CONFIG, "p:3:1: a second document begins here"},
    {"a\xff: 1\n", KVCA_ERR_YAML, "p:1:2: the document is not text in UTF-8"},
    {"x: \xc3\xa4\n\xc3\xa4\xc3\xa4: \xc3\n", KVCA_ERR_YAML, "p:2:6: the document is not text in UTF-8"},
    {"a: {b: c", KVCA_ERR_YAML, "p:1:9: the document is not YAML: did not find expected ',' or '}'"},
    {"--- ", KVCA_ERR_CONFIG, "p:1:5: a policy file must be a mapping"},
    {"---\n", KVCA_ERR_CONFIG, "p:2:1: a policy file must be a mapping"},
    {"a: [", KVCA_ERR_YAML,
     "p:1:5: the document is not YAML: did not find expected node content, while parsing a flow node that begins in "
     "line 1, column 5"},
    {"a: {b: \xc3\xa4\xc3\xa4", KVCA_ERR_YAML, "p:1:10: the document is not YAML"},
    {"a: {b: c\n", KVCA_ERR_YAML, "p:2:1: the document is not YAML"},
    {"a: {b: c\r\n ", KVCA_ERR_YAML, "p:2:2: the document is not YAML"},
    {"a: {\"b", KVCA_ERR_YAML, "p:1:7: the document is not YAML"},
    {"a: \x01\n", KVCA_ERR_YAML, "p:1:4: the document is not text in UTF-8: control characters are not allowed"},
    {"- - -\n  - ]\n", KVCA_ERR_YAML, "p:2:5: the document is not YAML: "},
    {"--- \n", KVCA_ERR_CONFIG, "p:2:1: a policy file must be a mapping"},
    {"count_priority: >\n  true\n", KVCA_ERR_CONFIG,
     "p:1:17: count_priority must be true or false; found the block text \"true<U+000A>\""},
    {"count_priority: {}\n", KVCA_ERR_CONFIG, "p:1:17: count_priority must be true or false; found an empty mapping"},
    {"count_priority: []\n", KVCA_ERR_CONFIG, "p:1:17: count_priority must be true or false; found an empty list"},
    {"decode_active_request_weight: .INF\n", KVCA_ERR_CONFIG,
     "p:1:31: decode_active_request_weight must be a finite number from 0 on; found .INF"},
    {"decode_active_request_weight: .Inf\n", KVCA_ERR_CONFIG,
     "p:1:31: decode_active_request_weight must be a finite number from 0 on; found .Inf"},
    {"decode_active_request_weight: .inf1\n", KVCA_ERR_CONFIG, "p:1:31: decode_active_request_weight must be"},
    {"count_priority: a long text, of which only the beginning is shown where it is told\n", KVCA_ERR_CONFIG,
     "p:1:17: count_priority must be true or false; found a long text, of which only the beginning is shown where "
     "it i..."},
    {"a_key_that_is_longer_than_any_that_is_known_to_us: 1\n", KVCA_ERR_CONFIG,
     "p:1:1: \"a_key_that_is_longer_than_any_that_is_known_to_us\" is not a parameter, and the file has no "
     "worker_selection; accepted are"},
    {"worker_selection: {instances: !!seq []}\n", KVCA_ERR_CONFIG,
     "p:1:31: instances must be a list of instances; found a value with an explicit tag, which is not accepted"},
    {"worker_selection: {decode: a, instances: [{name: an-instance-with-a-name-that-is-longer-than-known-ones, type: "
     "x}]}\n",
     KVCA_ERR_CONFIG, "p:1:28: decode names the instance a, but no instance has that name"},
    {"worker_selection: {decode: a, instances: [{name: a, type: dynamo_kv-capacity_aware}]}\n", KVCA_NOT_SELECTED,
     "p:1:59: the decode pool is not served by dynamo-kv-capacity-aware: the instance a is of type "
     "dynamo_kv-capacity_aware (is that a slip?)"},
};

static void more_documents_load_or_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(DOCUMENTS); i++) {
        kvca_params params = {.size = sizeof params};
        kvca_error error = {.size = sizeof error, .status = KVCA_OK};
        kvca_status status = kvca_config_load_buffer(DOCUMENTS[i].text, strlen(DOCUMENTS[i].text), "p",
                                                     KVCA_ROLE_DECODE, &params, &error);
        const char *message = DOCUMENTS[i].message ? DOCUMENTS[i].message : "";
        if (status != DOCUMENTS[i].status || strncmp(error.message, message, strlen(message)) != 0) {
            fail_msg("%sgave status %d: %s", DOCUMENTS[i].text, (int)status, error.message);
        }
    }
}

static char *repeat(const char *before, const char *piece, size_t count, const char *after)
{
    size_t length = strlen(piece);
    char *text = malloc(strlen(before) + count * length + strlen(after) + 1);
    assert_non_null(text);
    char *end = stpcpy(text, before);
    for (size_t i = 0; i < count; i++) {
        end = stpcpy(end, piece);
    }
    strcpy(end, after);
    return text;
}

static void hostile_documents_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *piece;
        size_t count;
        const char *after;
        kvca_status status;
        size_t line;
        size_t column;
    } rows[] = {
        {"x: ", "[", 63, "", KVCA_ERR_YAML, 1, 67},
        {"x: ", "[", 64, "", KVCA_ERR_TOO_LARGE, 1, 67},
        {"x: ", "[", 10000, "", KVCA_ERR_TOO_LARGE, 1, 67},
        {"", "- ", 10000, "", KVCA_ERR_TOO_LARGE, 1, 129},
        {"x: ", "{a: ", 10000, "", KVCA_ERR_TOO_LARGE, 1, 256},
        {"# ", "x", (size_t)2 << 20, "\n", KVCA_ERR_TOO_LARGE, 1, 1048577},
        {"", "#\n", (size_t)1 << 20, "", KVCA_ERR_TOO_LARGE, 524289, 1},
        {"", "#\n", (size_t)1 << 19, "", KVCA_ERR_CONFIG, 1, 1},
        {"x: [", "\"\\L\",", 200000, "]", KVCA_ERR_CONFIG, 1, 1},
        {"x: {", "?,", 500000, "}", KVCA_ERR_CONFIG, 1, 1},
        {"x: [", "a,", 500000, "]", KVCA_ERR_CONFIG, 1, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = repeat(rows[i].before, rows[i].piece, rows[i].count, rows[i].after);
        kvca_params params = {.size = sizeof params};
        kvca_error error = {.size = sizeof error, .status = KVCA_OK};
        kvca_status status =
            kvca_config_load_buffer(text, strlen(text), "policy.yaml", KVCA_ROLE_DECODE, &params, &error);
        free(text);
        print_message("%zu times %s: %s\n", rows[i].count, rows[i].piece, error.message);
        assert_int_equal(status, rows[i].status);
        assert_int_equal(error.line, rows[i].line);
        assert_int_equal(error.column, rows[i].column);
    }
}

/* Tens of thousands of keys, instances and anchors are compared by hash, not each with each. */
static void many_names_are_read_fast(void **state)
{
    (void)state;
    size_t room = KVCA_CONFIG_MAX_BYTES;
    char *text = malloc(room);
    assert_non_null(text);
    size_t used = 0;
    for (int i = 0; i < 20000; i++) {
        used += (size_t)snprintf(text + used, room - used, "k%d: &a%d 0\n", i, i);
    }
    used += (size_t)snprintf(text + used, room - used, "worker_selection:\n  decode: n9999\n  instances:\n");
    for (int i = 0; i < 10000; i++) {
        used += (size_t)snprintf(text + used, room - used, "  - {name: n%d, type: dynamo-kv-capacity-aware}\n", i);
    }
    assert_true(used < room);
    kvca_params params = {.size = sizeof params};
    kvca_error error = {.size = sizeof error, .status = KVCA_OK};
    kvca_status status = kvca_config_load_buffer(text, used, "p", KVCA_ROLE_DECODE, &params, &error);
    free(text);
    if (status != KVCA_OK) {
        fail_msg("%s", error.message);
    }
}

static void long_names_leave_room_for_the_message(void **state)
{
    (void)state;
    char *name = repeat("", "directory/", 500, "policy.yaml");
    kvca_params params = {.size = sizeof params};
    kvca_error error = {.size = sizeof error};
    assert_int_equal(kvca_config_load_buffer("a: 1", 4, name, KVCA_ROLE_DECODE, &params, &error), KVCA_ERR_CONFIG);
    assert_non_null(strstr(error.message, "directory/policy.yaml:1:1: \"a\" is not a parameter"));
    free(name);
}

static void names_are_shown_printably(void **state)
{
    (void)state;
    kvca_params params = {.size = sizeof params};
    kvca_error error = {.size = sizeof error};
    assert_int_equal(kvca_config_load_buffer("a: 1", 4, "\x1b[31m\n\xff.yaml", KVCA_ROLE_DECODE, &params, &error),
                     KVCA_ERR_CONFIG);
    assert_int_equal(strncmp(error.message, "<U+001B>[31m<U+000A><FF>.yaml:1:1: ", 35), 0);
    assert_int_equal(kvca_config_load_buffer("a: 1", 4, "\xe2\x82(\xc3", KVCA_ROLE_DECODE, &params, &error),
                     KVCA_ERR_CONFIG);
    assert_int_equal(strncmp(error.message, "<E2><82>(<C3>:1:1: ", 19), 0); /* cut in the middle and at the end */
    char *accents = repeat("x", "\xc3\xa9", 200, ".yaml"); /* the cut falls into the middle of a character */
    assert_int_equal(kvca_config_load_buffer("a: 1", 4, accents, KVCA_ROLE_DECODE, &params, &error), KVCA_ERR_CONFIG);
    free(accents);
    assert_int_equal(strncmp(error.message, "...\xc3\xa9", 5), 0);
    assert_null(strchr(error.message, '<'));
}

static void unreadable_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        kvca_status status;
        const char *message;
    } rows[] = {
        {"/nonexistent/policy.yaml", KVCA_ERR_FILE,
         "/nonexistent/policy.yaml: cannot read this file: No such file or directory"},
        {"/", KVCA_ERR_FILE, "/: cannot read this file: Is a directory"},
        {"/dev/null", KVCA_ERR_CONFIG, "/dev/null:1:1: the document is empty"},
        {"/dev/zero", KVCA_ERR_TOO_LARGE, "/dev/zero:1:1048577: the document may be at most 1048576 bytes long"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        kvca_params params = {.size = sizeof params};
        kvca_error error = {.size = sizeof error, .status = KVCA_OK};
        assert_int_equal(kvca_config_load_file(rows[i].path, KVCA_ROLE_DECODE, &params, &error), rows[i].status);
        if (strncmp(error.message, rows[i].message, strlen(rows[i].message)) != 0) {
            fail_msg("%s", error.message);
        }
        assert_int_equal(kvca_config_load_file(rows[i].path, KVCA_ROLE_DECODE, &params, NULL), rows[i].status);
    }
}

static void a_file_loads_like_a_buffer(void **state)
{
    (void)state;
    char path[TEST_PATH];
    const char text[] = "capacity_fraction: 0.25\n";
    make_file(path, text, sizeof text - 1);
    kvca_params params = {.size = sizeof params};
    kvca_status status = kvca_config_load_file(path, KVCA_ROLE_DECODE, &params, NULL);
    unlink(path);
    assert_int_equal(status, KVCA_OK);
    assert_true(params.capacity_fraction == 0.25);
}

static void roles_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"decode", "prefill", "aggregated", "encode"};
    for (size_t i = 0; i < COUNT(names); i++) {
        kvca_role role;
        assert_int_equal(kvca_role_parse(names[i], &role), KVCA_OK);
        assert_int_equal(role, i);
        assert_string_equal(kvca_role_name(role), names[i]);
    }
    kvca_role role = KVCA_ROLE_ENCODE;
    assert_int_equal(kvca_role_parse("decoder", &role), KVCA_ERR_ROLE);
    assert_int_equal(kvca_role_parse("instances", &role), KVCA_ERR_ROLE);
    assert_int_equal(role, KVCA_ROLE_ENCODE);
    assert_null(kvca_role_name((kvca_role)4));
    assert_null(kvca_role_name((kvca_role)-1));
}

static void null_pointers_are_refused(void **state)
{
    (void)state;
    kvca_params params = {.size = sizeof params};
    kvca_error error = {.size = sizeof error};
    kvca_role role;
    assert_int_equal(kvca_role_parse(NULL, &role), KVCA_ERR_NULL);
    assert_int_equal(kvca_role_parse("decode", NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_config_load_file(NULL, KVCA_ROLE_DECODE, &params, &error), KVCA_ERR_NULL);
    assert_int_equal(kvca_config_load_file("x", KVCA_ROLE_DECODE, NULL, NULL), KVCA_ERR_NULL);
    assert_int_equal(kvca_config_load_buffer(NULL, 1, "x", KVCA_ROLE_DECODE, &params, &error), KVCA_ERR_NULL);
    assert_int_equal(kvca_config_load_buffer("", 0, NULL, KVCA_ROLE_DECODE, &params, &error), KVCA_ERR_NULL);
    assert_int_equal(kvca_config_load_buffer("", 0, "x", KVCA_ROLE_DECODE, NULL, &error), KVCA_ERR_NULL);
    assert_int_equal(kvca_config_load_buffer(NULL, 0, "x", KVCA_ROLE_DECODE, &params, &error), KVCA_ERR_CONFIG);
    assert_int_equal(kvca_config_load_buffer("{}", 2, "x", (kvca_role)9, &params, &error), KVCA_ERR_ROLE);
}

/* A C library may accept the name of any locale and change nothing. */
static bool writes_commas(const char *locale)
{
    return setlocale(LC_ALL, locale) && strcmp(localeconv()->decimal_point, ",") == 0;
}

/* In a locale with a decimal comma, numbers in a policy file still have a decimal point. */
static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    size_t i = 0;
    while (i < COUNT(locales) && !writes_commas(locales[i])) {
        i++;
    }
    if (i == COUNT(locales)) {
        print_message("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    kvca_params params = {.size = sizeof params};
    const char text[] = "capacity_fraction: 0.5\ndecode_active_request_weight: 1.5e1\n";
    kvca_status status = kvca_config_load_buffer(text, strlen(text), "p", KVCA_ROLE_DECODE, &params, NULL);
    assert_string_equal(localeconv()->decimal_point, ",");
    setlocale(LC_ALL, "C");
    assert_int_equal(status, KVCA_OK);
    assert_true(params.capacity_fraction == 0.5);
    assert_true(params.decode_active_request_weight == 15.0);
}

static const struct CMUnitTest OTHERS[] = {
    cmocka_unit_test(more_documents_load_or_are_refused), cmocka_unit_test(hostile_documents_are_bounded),
    cmocka_unit_test(many_names_are_read_fast),           cmocka_unit_test(long_names_leave_room_for_the_message),
    cmocka_unit_test(names_are_shown_printably),          cmocka_unit_test(unreadable_files_are_refused),
    cmocka_unit_test(a_file_loads_like_a_buffer),         cmocka_unit_test(roles_have_names),
    cmocka_unit_test(null_pointers_are_refused),          cmocka_unit_test(numbers_do_not_depend_on_the_locale),
};

int main(void)
{
    vectors_load(&document, "config.yaml");
    size_t count = vectors_count(&document);
    struct CMUnitTest *tests = calloc(count + COUNT(OTHERS), sizeof *tests);
    for (size_t i = 0; i < count; i++) {
        yaml_node_t *vector = vectors_case(&document, i);
        tests[i] = (struct CMUnitTest){
            .name = vector_text(vector_get(&document, vector, "name")),
            .test_func = document_loads_or_is_refused,
            .initial_state = vector,
        };
    }
    memcpy(tests + count, OTHERS, sizeof OTHERS);
    int failed = _cmocka_run_group_tests("config", tests, count + COUNT(OTHERS), NULL, NULL);
    free(tests);
    yaml_document_delete(&document);
    return failed;
}
