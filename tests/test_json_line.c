/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of JSON: which are taken, what is found in them, and where the others are at fault. */
#include "test.h"

#include "../src/replay/json_line.h"

static const char *const KEYS[] = {"timestamp", "b"};

static bool read_line(const char *text, struct replay_field values[2], struct replay_json_fault *fault)
{
    struct replay_field line = {text, strlen(text)};
    return replay_json_line(&line, KEYS, COUNT(KEYS), values, fault);
}

/* What is found for each key; NULL for nothing. */
static const struct {
    const char *text;
    const char *values[2];
} TAKEN[] = {
    {"{}", {NULL}},
    {"{ } \t\r", {NULL}},
    {"{\"timestamp\":0,\"b\":-0.5e+7}", {"0", "-0.5e+7"}},
    {"{ \"b\" : 1.25 , \"timestamp\" : 20E-2 }", {"20E-2", "1.25"}},
    {"{\"b\":true,\"timestamp\":false}", {"false", "true"}},
    {"{\"b\":null,\"timestamp\":NaN}", {"NaN", "null"}},
    {"{\"b\":Infinity,\"timestamp\":-Infinity}", {"-Infinity", "Infinity"}},
    {"{\"b\":[],\"timestamp\":{}}", {"{}", "[]"}},
    {"{\"b\":[ 1, [2, {\"b\": 3}], \"]\" ],\"x\":{\"b\":{}}}", {NULL, "[ 1, [2, {\"b\": 3}], \"]\" ]"}},
    {"{\"b\":1,\"b\":\"2\"}", {NULL, "\"2\""}},
    {"{\"x\":{\"timestamp\":1}}", {NULL}},
    {"{\"x\":[{\"timestamp\":1},\"b\",2]}", {NULL}},
    {"{\"\\u0062\":1,\"time\\u0073tamp\":2}", {"2", "1"}},
    {"{\"\\u0042\":1,\"bb\":2,\"\":3,\"timestam\":4,\"timestamps\":5,\"\\b\":6,\"\\u0062b\":7}", {NULL}},
    {"{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\uABCD\\uefef\":\"\\\"\",\"b\":\"\\\\\"}", {NULL, "\"\\\\\""}},
    {"{\"\xc3\xa4\":\"\x7f\xff\",\"b\":\"}\"}", {NULL, "\"}\""}},
    {"{\"b\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
     {NULL, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"}},
};

static void values_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(TAKEN); i++) {
        struct replay_field values[2];
        struct replay_json_fault fault;
        if (!read_line(TAKEN[i].text, values, &fault)) {
            fail_msg("%s: %s at %s", TAKEN[i].text, fault.what, fault.at);
        }
        for (size_t key = 0; key < COUNT(KEYS); key++) {
            const char *wanted = TAKEN[i].values[key];
            bool found = values[key].text && wanted && values[key].length == strlen(wanted) &&
                         memcmp(values[key].text, wanted, values[key].length) == 0;
            if (!found && (values[key].text || wanted)) {
                fail_msg("%s: %s is %.*s", TAKEN[i].text, KEYS[key], (int)values[key].length,
                         values[key].text ? values[key].text : "");
            }
        }
    }
}

/* A fault is marked by the character ! that stands before it, and is no part of the line. */
static const char *const REFUSED[] = {
    "!",
    "!x",
    "![]",
    "! {}",
    "!\"{}\"",
    "{!",
    "{!]",
    "{!,}",
    "{!b:1}",
    "{!'b':1}",
    "{!1:1}",
    "{\"b!",
    "{\"b\"!",
    "{\"b\"!}",
    "{\"b\"!,1}",
    "{\"b\":!",
    "{\"b\":!}",
    "{\"b\":!,}",
    "{\"b\":1!",
    "{\"b\":1!]",
    "{\"b\":1!:2}",
    "{\"b\":1 !2}",
    "{\"b\":1,!",
    "{\"b\":1,!}",
    "{\"b\":1,!,\"c\":2}",
    "{\"b\":1}!}",
    "{\"b\":1} !{}",
    "{\"b\":1}!,",
    "{\"b\":[!",
    "{\"b\":[!,]}",
    "{\"b\":[1!}",
    "{\"b\":[1,!]}",
    "{\"b\":[1 !2]}",
    "{\"b\":[1!:2]}",
    "{\"b\":0!1}",
    "{\"b\":-!}",
    "{\"b\":-!-1}",
    "{\"b\":!+1}",
    "{\"b\":!.5}",
    "{\"b\":1.!}",
    "{\"b\":1.!e5}",
    "{\"b\":1e!}",
    "{\"b\":1e+!}",
    "{\"b\":1e!.5}",
    "{\"b\":1.5!.5}",
    "{\"b\":0!x10}",
    "{\"b\":!tru}",
    "{\"b\":true!e}",
    "{\"b\":!True}",
    "{\"b\":!nul",
    "{\"b\":!inf}",
    "{\"b\":-!Inf}",
    "{\"b\":-!NaN}",
    "{\"b\":\"!",
    "{\"b\":\"a!\nb\"}",
    "{\"b\":\"a!\x1f\"}",
    "{\"b\":\"\\!",
    "{\"b\":\"\\!x\"}",
    "{\"b\":\"\\u00!",
    "{\"b\":\"\\u00!g0\"}",
    "{\"b\":\"\\u!",
    "{\"b\":!'x'}",
    "{\"b\":1 !/* 2 */}",
    "{!\xc2\xa0}",
    "{\"b\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[![]",
    "{\"b\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[!{}",
};

static void faults_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(REFUSED); i++) {
        char line[128];
        size_t place = strcspn(REFUSED[i], "!");
        snprintf(line, sizeof line, "%.*s%s", (int)place, REFUSED[i], REFUSED[i] + place + 1);
        struct replay_field values[2];
        struct replay_json_fault fault;
        if (read_line(line, values, &fault)) {
            fail_msg("%s was taken", line);
        }
        assert_non_null(fault.what);
        if (fault.at != line + place) {
            fail_msg("%s: %s at %td: %s", REFUSED[i], fault.what, fault.at - line, fault.at);
        }
    }
}

/* A line that is cut anywhere is refused at its end or, within a word or number, before it; nothing past it is read. */
static void cut_lines_are_refused(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"timestamp\": -1.5e3, \"b\": [true, null, {\"c\": \"\\u00e4\\n\"}, []], \"d\": {}, \"e\": 0}";
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        char *line = malloc(length + 1); /* for the sanitizer and valgrind, with one byte that may be read */
        assert_non_null(line);
        memcpy(line, whole, length);
        line[length] = '\n';
        struct replay_field values[2];
        struct replay_json_fault fault;
        bool read = replay_json_line(&(struct replay_field){line, length}, KEYS, COUNT(KEYS), values, &fault);
        bool within = fault.at >= line && fault.at <= line + length;
        free(line);
        if (read || !within) {
            fail_msg("cut after %zu characters", length);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(cut_lines_are_refused),
    };
    return cmocka_run_group_tests_name("json_line", tests, NULL, NULL);
}
