/* SPDX-License-Identifier: Apache-2.0 */
/* Request traces: short texts in each format, each a test, and synthetic traces. */

#include "support/test.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "replay/trace.h"

#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define PLAIN "arrival_s,prompt_tokens,output_tokens\n"
#define FORMATS                                                                                                      \
    "a trace must begin with the line TIMESTAMP,ContextTokens,GeneratedTokens (Azure LLM inference trace), the "     \
    "line "                                                                                                          \
    "arrival_s,prompt_tokens,output_tokens (plain CSV), or a JSON object with timestamp, input_length and "          \
    "output_length (Mooncake, one a line); found "
#define DATE "TIMESTAMP must be a date and time like 2023-11-16 18:17:03.9799600, from 1970 to 2261; found "
#define COUNT_RANGE "must be an integer from 0 to 16777216 (2^24); found "
#define MILLISECONDS "timestamp must be a number from 0 to 1e13, in milliseconds; found "
#define NO_OBJECT "this line is not one JSON object: "

/* A JSON object with these values. OTHERS are more keys, each with a comma after it. */
#define OBJECT(others, timestamp, input, output)                                                                     \
    "{" others "\"timestamp\":" timestamp ",\"input_length\":" input ",\"output_length\":" output "}\n"
#define SOUND OBJECT("", "0", "1", "1")
#define LEVELS(open_or_close)                                                                                        \
    TEN(open_or_close) TEN(open_or_close) TEN(open_or_close) TEN(open_or_close) TEN(open_or_close)
#define TEN(text) text text text text text text text text text text

/* Reads a text through a file. Takes the file's name off the message. */
static kvca_status load(const char *text, size_t size, struct replay_trace *trace, kvca_error *error)
{
    char path[TEST_PATH];
    make_file(path, text, size);
    *error = (kvca_error){.size = sizeof(kvca_error), .status = KVCA_OK};
    kvca_status status = replay_trace_load(path, trace, error);
    assert_int_equal(unlink(path), 0);
    if (status != KVCA_OK) {
        size_t length = strlen(path) + strlen(":");
        assert_true(strncmp(error->message, path, strlen(path)) == 0);
        memmove(error->message, error->message + length, strlen(error->message + length) + 1);
    }
    return status;
}

static const struct readable {
    const char *name;
    const char *text;
    size_t count;
    size_t unsorted;
    struct replay_request requests[4];
} READABLE[] = {
    {"azure",
     AZURE "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n",
     2,
     0,
     {{0, 4808, 10}, {0.052, 3180, 8}}},
    {"azure, CRLF and no end of the last line",
     "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9,1,2\r\n2023-11-16 18:17:04,3,4",
     2,
     0,
     {{0, 1, 2}, {0.1, 3, 4}}},
    {"azure, single nanoseconds",
     AZURE
     "2023-11-16 18:17:03.999999999,1,1\n2023-11-16 18:17:04.000000000,1,1\n2023-11-16 18:17:04.000000001,1,1\n",
     3,
     0,
     {{0, 1, 1}, {1e-9, 1, 1}, {2e-9, 1, 1}}},
    {"azure, one to nine digits of a second",
     AZURE "2023-11-16 00:00:00,1,1\n2023-11-16 00:00:00.5,1,1\n"
           "2023-11-16 00:00:00.123456789,2,2\n",
     3,
     1,
     {{0, 1, 1}, {0.123456789, 2, 2}, {0.5, 1, 1}}},
    {"azure, over midnight",
     AZURE "2023-11-16 23:59:59.5,1,1\n2023-11-17 00:00:00.25,1,1\n",
     2,
     0,
     {{0, 1, 1}, {0.75, 1, 1}}},
    {"azure, over a leap day",
     AZURE "2024-02-28 23:59:59,1,1\n2024-02-29 00:00:00,1,1\n2024-03-01 00:00:00,1,1\n",
     3,
     0,
     {{0, 1, 1}, {1, 1, 1}, {86401, 1, 1}}},
    {"azure, over a February without one",
     AZURE "2023-02-28 23:59:59,1,1\n2023-03-01 00:00:00,1,1\n",
     2,
     0,
     {{0, 1, 1}, {1, 1, 1}}},
    {"azure, 2000 was a leap year and 2100 is not",
     AZURE "2000-02-29 00:00:00,1,1\n2000-03-01 00:00:00,1,1\n2100-02-28 00:00:00,1,1\n2100-03-01 00:00:00,1,1\n",
     4,
     0,
     {{0, 1, 1}, {86400, 1, 1}, {3155673600, 1, 1}, {3155760000, 1, 1}}},
    {"azure, over the end of a year",
     AZURE "2023-12-31 23:59:59.75,1,1\n2024-01-01 00:00:00,1,1\n",
     2,
     0,
     {{0, 1, 1}, {0.25, 1, 1}}},
    {"azure, the first and the last second",
     AZURE "1970-01-01 00:00:00,1,1\n2261-12-31 23:59:59,1,1\n",
     2,
     0,
     {{0, 1, 1}, {9214646399, 1, 1}}},
    {"azure, out of order across the first",
     AZURE "2023-11-16 18:17:04.1,1,1\n2023-11-16 18:17:03.9,2,2\n",
     2,
     1,
     {{0, 2, 2}, {0.2, 1, 1}}},
    {"plain", PLAIN "0.25,4808,10\n0.5,3180,8\n", 2, 0, {{0, 4808, 10}, {0.25, 3180, 8}}},
    {"plain, each notation of a number",
     PLAIN "0,1,1\n.5,1,1\n1.,1,1\n12.5e-1,0,007\n",
     4,
     0,
     {{0, 1, 1}, {0.5, 1, 1}, {1, 1, 1}, {1.25, 0, 7}}},
    {"plain, the largest numbers",
     PLAIN "0,16777216,0\n1e10,16777215,0\n",
     2,
     0,
     {{0, 16777216, 0}, {1e10, 16777215, 0}}},
    {"plain, a number below the smallest double", PLAIN "0,1,1\n1e-400,1,1\n", 2, 0, {{0, 1, 1}, {0, 1, 1}}},
    {"plain, blank lines", "\n \t\r\n" PLAIN "\n\n1,1,1\n\r\n  \n2,2,2\n\n", 2, 0, {{0, 1, 1}, {1, 2, 2}}},
    {"plain, a byte order mark", "\xef\xbb\xbf" PLAIN "1,1,1\n", 1, 0, {{0, 1, 1}}},
    {"plain, a carriage return at the very end", PLAIN "1,1,1\r", 1, 0, {{0, 1, 1}}},
    {"plain, out of order", PLAIN "3,3,3\n1,1,1\n4,4,4\n2,2,2\n", 4, 2, {{0, 1, 1}, {1, 2, 2}, {2, 3, 3}, {3, 4, 4}}},
    {"plain, equal arrivals keep their order",
     PLAIN "2,3,3\n1,1,1\n2,4,4\n1,2,2\n",
     4,
     2,
     {{0, 1, 1}, {0, 2, 2}, {1, 3, 3}, {1, 4, 4}}},
    {"plain, equal arrivals are in order", PLAIN "1,2,2\n1,1,1\n1,3,3\n", 3, 0, {{0, 2, 2}, {0, 1, 1}, {0, 3, 3}}},
    {"mooncake",
     "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1, 2]}\n"
     "{\"timestamp\": 3000, \"input_length\": 7322, \"output_length\": 490, \"hash_ids\": []}\n",
     2,
     0,
     {{0, 6758, 500}, {3, 7322, 490}}},
    {"mooncake, blanks around objects",
     "  {\"timestamp\":0,\"input_length\":1,\"output_length\":2} \t\n"
     "\t{ \"timestamp\":1000,\"input_length\":3,\"output_length\":4}  \r\n",
     2,
     0,
     {{0, 1, 2}, {1, 3, 4}}},
    {"mooncake, floats, other orders and keys, CRLF and no end of the last line",
     "{\"output_length\":1,\"timestamp\":27482.5,\"input_length\":2}\r\n\r\n"
     "{\"x\":{\"timestamp\":\"\xc3\xa4\"},\"timestamp\":27483,\"input_length\":16777216,\"output_length\":0}",
     2,
     0,
     {{0, 2, 1}, {0.0005, 16777216, 0}}},
    {"mooncake, space around and within, out of order",
     "{ \"timestamp\" : 2 , \"input_length\" : 2 , \"output_length\" : 2 } \t\n"
     "{\"timestamp\":1e0,\"input_length\":1,\"output_length\":1}\n",
     2,
     1,
     {{0, 1, 1}, {0.001, 2, 2}}},
    {"mooncake, each notation of a number",
     OBJECT("", "-0", "0", "-0") OBJECT("", "20E-2", "1", "10") OBJECT("", "1.25", "2", "20")
         OBJECT("", "1e+13", "3", "30"),
     4,
     0,
     {{0, 0, 0}, {0.0002, 1, 10}, {0.00125, 2, 20}, {1e10, 3, 30}}},
    {"mooncake, escapes in keys",
     "{\"time\\u0073tamp\":0,\"\\u0069nput_length\":5,\"output\\u005Flength\":6}",
     1,
     0,
     {{0, 5, 6}}},
    {"mooncake, keys that are nearly ours",
     OBJECT("\"\":9,\"timestam\":9,\"timestamps\":9,\"Timestamp\":9,\"\\u0000timestamp\":9,", "1", "2", "3"),
     1,
     0,
     {{0, 2, 3}}},
    {"mooncake, values of all types beside ours",
     OBJECT(
         "\"a\":-0.5e+7,\"b\":true,\"c\":false,\"d\":null,\"e\":NaN,\"f\":Infinity,\"g\":-Infinity,\"h\":{},\"i\":[],"
         "\"j\":\"\",\"hash_ids\":[46, 47 ,2000000000000000000000],",
         "0", "2", "3"),
     1,
     0,
     {{0, 2, 3}}},
    {"mooncake, our keys within other values, and brackets in texts",
     OBJECT("\"a\":[ 1, [2, {\"timestamp\": 3}], \"]\", {\"timestamp\": 4, \"timestamp\": 5} ],\"b\":\"}, # "
            "\",\"#\":\"- : \",",
            "0", "2", "3"),
     1,
     0,
     {{0, 2, 3}}},
    {"mooncake, each escape, and characters of each length",
     OBJECT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uFfFf\":\"\xc3\xa4\xe2\x82\xac\xf0\x9d\x84\x9e\",", "0", "2", "3"),
     1,
     0,
     {{0, 2, 3}}},
    {"mooncake, nested as deep as can be",
     OBJECT("\"a\":" LEVELS("[") TEN("[") "[[[1]]]" TEN("]") LEVELS("]") ",", "0", "2", "3"),
     1,
     0,
     {{0, 2, 3}}},
    {"mooncake, notations that only YAML has",
     "{timestamp: 0, 'input_length': 0x10, output_length: 0o10,} # a comment\n{\"timestamp\": 1, input_length: 07, "
     "output_length: +8, prompt: [a, b c]}",
     2,
     0,
     {{0, 16, 8}, {0.001, 7, 8}}},
};

static void text_is_read(void **state)
{
    const struct readable *row = *state;
    struct replay_trace trace;
    kvca_error error = {.size = sizeof error};
    if (load(row->text, strlen(row->text), &trace, &error) != KVCA_OK) {
        fail_msg("refused: %s", error.message);
    }
    assert_int_equal(trace.count, row->count);
    assert_int_equal(trace.unsorted, row->unsorted);
    for (size_t i = 0; i < row->count; i++) {
        const struct replay_request *found = &trace.requests[i];
        const struct replay_request *expected = &row->requests[i];
        /* The difference of two decimals may be next to the double that the test has. */
        if (fabs(found->arrival_s - expected->arrival_s) > 4 * DBL_EPSILON * expected->arrival_s ||
            found->prompt_tokens != expected->prompt_tokens || found->output_tokens != expected->output_tokens) {
            fail_msg("request %zu arrives at %.17g with %" PRIu64 " and %" PRIu64 " tokens", i, found->arrival_s,
                     found->prompt_tokens, found->output_tokens);
        }
    }
    replay_trace_free(&trace);
    assert_null(trace.requests);
}

static const struct faulty {
    const char *name;
    const char *text;
    const char *message; /* the beginning, without the file's name */
} FAULTY[] = {
    {"empty", "", "1:1: " FORMATS "nothing"},
    {"blank lines alone", "\n  \r\n\n", "1:1: " FORMATS "nothing"},
    {"a byte order mark alone", "\xef\xbb\xbf", "1:1: " FORMATS "nothing"},
    {"another header", "\ntimestamp,ContextTokens,GeneratedTokens\n1,1,1\n",
     "2:1: " FORMATS "\"timestamp,ContextTokens,GeneratedTokens\""},
    {"half a header", "arrival_s,prompt_tokens\n", "1:1: " FORMATS "\"arrival_s,prompt_tokens\""},
    {"a longer header", "arrival_s,prompt_tokens,output_tokens,x\n", "1:1: " FORMATS "\"arrival_s,prompt_tokens,out"},
    {"no header", "0,1,1\n", "1:1: " FORMATS "\"0,1,1\""},
    {"a JSON list", "[{}]\n", "1:1: " FORMATS "\"[{}]\""},
    {"not UTF-8: too long, surrogates, past the last character",
     "\xe0\x80\x9b\xed\xa0\x80\xf0\x8f\xbf\xbf\xf4\x90\x80\x80\n",
     "1:1: " FORMATS "\"<E0><80><9B><ED><A0><80><F0><8F><BF><BF><F4><90><80><80>\""},
    {"the last characters of UTF-8 before each of those", "\xdf\xbf\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\n",
     "1:1: " FORMATS "\"\xdf\xbf\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\""},
    {"unprintable", "\x1b[31m\xff\n", "1:1: " FORMATS "\"<U+001B>[31m<FF>\""},
    {"azure, no requests", AZURE, "1:1: this trace has no requests; at least one is needed"},
    {"plain, no requests", PLAIN "\n \n", "3:1: this trace has no requests; at least one is needed"},

    {"too few fields", PLAIN "0,1\n",
     "2:4: a line must have the 3 fields arrival_s,prompt_tokens,output_tokens; "
     "found \"0,1\""},
    {"one field", PLAIN "0,1,1\n\nx\n", "4:2: a line must have the 3 fields arrival_s,prompt_tokens,output_tokens; "},
    {"too many fields", AZURE "x,1,1,1\n",
     "2:7: a line must have the 3 fields TIMESTAMP,ContextTokens,GeneratedToke"},
    {"columns count characters", PLAIN "\xc3\xa4,1,1,1\n", "2:7: a line must have the 3 fields"},

    {"plain, no arrival", PLAIN ",1,1\n",
     "2:1: arrival_s must be a decimal number from 0 to 1e10, in seconds; found \"\""},
    {"plain, negative", PLAIN "-1,1,1\n",
     "2:1: arrival_s must be a decimal number from 0 to 1e10, in seconds; found \"-1\""},
    {"plain, a sign", PLAIN "+1,1,1\n", "2:1: arrival_s must be"},
    {"plain, infinite", PLAIN "inf,1,1\n", "2:1: arrival_s must be"},
    {"plain, too large", PLAIN "1.0000001e10,1,1\n", "2:1: arrival_s must be"},
    {"plain, not a number", PLAIN "nan,1,1\n", "2:1: arrival_s must be"},
    {"plain, hexadecimal", PLAIN "0x10,1,1\n", "2:1: arrival_s must be"},
    {"plain, space before", PLAIN " 1,1,1\n", "2:1: arrival_s must be"},
    {"plain, space after", PLAIN "1 ,1,1\n", "2:1: arrival_s must be"},
    {"plain, two points", PLAIN "1.2.3,1,1\n", "2:1: arrival_s must be"},
    {"plain, a point alone", PLAIN ".,1,1\n", "2:1: arrival_s must be"},
    {"plain, half an exponent", PLAIN "1e,1,1\n", "2:1: arrival_s must be"},
    {"plain, a date", PLAIN "2023-11-16 18:17:03,1,1\n", "2:1: arrival_s must be"},

    {"no prompt tokens", PLAIN "0,,1\n", "2:3: prompt_tokens " COUNT_RANGE "\"\""},
    {"no output tokens", PLAIN "0,1,\r\n", "2:5: output_tokens " COUNT_RANGE "\"\""},
    {"negative tokens", PLAIN "0,-1,1\n", "2:3: prompt_tokens " COUNT_RANGE "\"-1\""},
    {"half a token", PLAIN "0,1,1.5\n", "2:5: output_tokens " COUNT_RANGE "\"1.5\""},
    {"too many tokens", PLAIN "0,16777217,1\n", "2:3: prompt_tokens " COUNT_RANGE "\"16777217\""},
    {"tokens that overflow", PLAIN "0,1,18446744073709551617\n",
     "2:5: output_tokens " COUNT_RANGE "\"1844674407370955"},
    {"tokens and space", PLAIN "0,1,1 \n", "2:5: output_tokens " COUNT_RANGE "\"1 \""},
    {"quoted tokens", AZURE "2023-11-16 18:17:03,\"1\",1\n", "2:21: ContextTokens " COUNT_RANGE "\"\"1\"\""},
    {"a fault after sound lines", PLAIN "0,1,1\n1,1,1\n2,1,x\n3,1,1\n", "4:5: output_tokens " COUNT_RANGE "\"x\""},

    {"azure, a number", AZURE "0,1,1\n", "2:1: " DATE "\"0\""},
    {"azure, no time", AZURE "2023-11-16,1,1\n", "2:1: " DATE "\"2023-11-16\""},
    {"azure, a T between", AZURE "2023-11-16T18:17:03,1,1\n", "2:1: " DATE "\"2023-11-16T18:17:03\""},
    {"azure, month 13", AZURE "2023-13-16 18:17:03,1,1\n", "2:1: " DATE "\"2023-13-16 18:17:03\""},
    {"azure, month 0", AZURE "2023-00-16 18:17:03,1,1\n", "2:1: " DATE},
    {"azure, day 0", AZURE "2023-11-00 18:17:03,1,1\n", "2:1: " DATE},
    {"azure, 31 November", AZURE "2023-11-31 18:17:03,1,1\n", "2:1: " DATE},
    {"azure, 30 February", AZURE "2024-02-30 18:17:03,1,1\n", "2:1: " DATE},
    {"azure, 29 February, not a leap year", AZURE "2023-02-29 18:17:03,1,1\n", "2:1: " DATE},
    {"azure, 29 February 2100", AZURE "2100-02-29 18:17:03,1,1\n", "2:1: " DATE},
    {"azure, hour 24", AZURE "2023-11-16 24:00:00,1,1\n", "2:1: " DATE},
    {"azure, minute 60", AZURE "2023-11-16 18:60:00,1,1\n", "2:1: " DATE},
    {"azure, second 60", AZURE "2023-11-16 18:17:60,1,1\n", "2:1: " DATE},
    {"azure, ten digits of a second", AZURE "2023-11-16 18:17:03.1234567890,1,1\n", "2:1: " DATE},
    {"azure, a point alone", AZURE "2023-11-16 18:17:03.,1,1\n", "2:1: " DATE},
    {"azure, a comma for the point", AZURE "2023-11-16 18:17:03:5,1,1\n", "2:1: " DATE},
    {"azure, a time zone", AZURE "2023-11-16 18:17:03.5+00:00,1,1\n", "2:1: " DATE},
    {"azure, before 1970", AZURE "1969-12-31 23:59:59,1,1\n", "2:1: " DATE},
    {"azure, after 2261", AZURE "2262-01-01 00:00:00,1,1\n", "2:1: " DATE},

    {"mooncake, an empty object", "{}\n",
     "1:1: this object has no timestamp; timestamp, input_length and output_length are needed"},
    {"mooncake, no output", "{\"timestamp\":0,\"input_length\":1}\n", "1:1: this object has no output_length; "},
    {"mooncake, a negative arrival", OBJECT("", "-1", "1", "1"), "1:14: " MILLISECONDS "-1"},
    {"mooncake, an arrival that is too late", OBJECT("", "10000000000000.01", "1", "1"),
     "1:14: " MILLISECONDS "10000000000000.01"},
    {"mooncake, an infinite arrival", OBJECT("", "1e999", "1", "1"), "1:14: " MILLISECONDS "1e999"},
    {"mooncake, an arrival that is not a number", OBJECT("", "NaN", "1", "1"), "1:14: " MILLISECONDS "NaN"},
    {"mooncake, an arrival that is not a number in YAML", OBJECT("", ".nan", "1", "1"), "1:14: " MILLISECONDS ".nan"},
    {"mooncake, a quoted arrival", OBJECT("", "\"0\"", "1", "1"), "1:14: " MILLISECONDS "the quoted text \"0\""},
    {"mooncake, an arrival left out", OBJECT("", "", "1", "1"), "1:14: " MILLISECONDS "nothing"},
    {"mooncake, an arrival with a tag", OBJECT("", "!!int 0", "1", "1"), "1:14: " MILLISECONDS "a value with an ex"},
    {"mooncake, a float of tokens", OBJECT("", "0", "1.0", "1"), "1:31: input_length " COUNT_RANGE "1.0"},
    {"mooncake, tokens with an exponent", OBJECT("", "0", "1e3", "1"), "1:31: input_length " COUNT_RANGE "1e3"},
    {"mooncake, negative tokens", OBJECT("", "0", "1", "-1"), "1:49: output_length " COUNT_RANGE "-1"},
    {"mooncake, too many tokens", OBJECT("", "0", "16777217", "1"), "1:31: input_length " COUNT_RANGE "16777217"},
    {"mooncake, tokens that overflow", OBJECT("", "0", "18446744073709551617", "1"),
     "1:31: input_length " COUNT_RANGE "18446744073709551617"},
    {"mooncake, null", OBJECT("", "0", "null", "1"), "1:31: input_length " COUNT_RANGE "null"},
    {"mooncake, a list", OBJECT("", "0", "[1]", "1"), "1:31: input_length " COUNT_RANGE "a list"},
    {"mooncake, an object within", OBJECT("", "0", "1", "{\"a\":1}"), "1:49: output_length " COUNT_RANGE "a mapping"},
    {"mooncake, a key twice", SOUND OBJECT("\"timestamp\":0,", "1", "1", "1"),
     "2:16: timestamp stands here a second time; the first is in line 2: remove one of them"},
    {"mooncake, another key twice", OBJECT("\"hash_ids\":[],\"\\u0068ash_ids\":[],", "1", "1", "1"),
     "1:16: hash_ids stands here a second time; "},
    {"mooncake, a key that is a list", OBJECT("[a]: 1,", "1", "1", "1"),
     "1:2: a key must be plain text; found a list"},
    {"mooncake, an object cut off", "{\"timestamp\":0,\n\"input_length\":1,\"output_length\":1}\n",
     "1:16: " NO_OBJECT},
    {"mooncake, an object over several lines", "{\n  \"timestamp\":0,\n", "1:2: " NO_OBJECT},
    {"mooncake, the last line cut off", SOUND "{\"time",
     "2:7: " NO_OBJECT
     "found unexpected end of stream, while scanning a quoted scalar that begins in line 2, column 2"},
    {"mooncake, no JSON", SOUND "{\"timestamp\" 0}\n",
     "2:14: " NO_OBJECT
     "did not find expected ',' or '}', while parsing a flow mapping that begins in line 2, column 1"},
    {"mooncake, columns count characters", "{\"\xc3\xa4\" 0}\n", "1:6: " NO_OBJECT},
    {"mooncake, two objects in a line", "{} {}\n", "1:4: " NO_OBJECT},
    {"mooncake, a comma between objects", "{},\n{}\n", "1:3: " NO_OBJECT},
    {"mooncake, a list after objects", SOUND "[1]\n", "2:1: each line must be a JSON object; found \"[1]\""},
    {"mooncake, an indented list", SOUND "  [{}]\n", "2:3: each line must be a JSON object; found \"[{}]\""},
    {"mooncake, a text after objects", SOUND "null\n", "2:1: each line must be a JSON object; found \"null\""},
    {"mooncake, a byte order mark after objects", SOUND "\xef\xbb\xbf{}\n",
     "2:1: each line must be a JSON object; found \"<U+FEFF>{}\""},
    {"mooncake, a directive after objects", SOUND "%TAG ! a\n", "2:1: each line must be a JSON object; found \"%TAG"},
    {"mooncake, an indented fault", "\t {\"timestamp\" 0}\n", "1:16: " NO_OBJECT},
    {"mooncake, two indented objects", "  {} {}\n", "1:6: " NO_OBJECT},
    {"mooncake, an indented object without arrival", SOUND "\n \t{}\n", "3:3: this object has no timestamp; "},
    {"mooncake, an indented value", SOUND "  " OBJECT("", "0", "x", "1"), "2:33: input_length " COUNT_RANGE "x"},
    {"mooncake, brackets that do not match", "{\"a\":[1}\n", "1:8: " NO_OBJECT "did not find expected ',' or ']', "},
    {"mooncake, a bracket too many", "{\"a\":1}}\n", "1:8: " NO_OBJECT},
    {"mooncake, an unknown escape", "{\"a\":\"\\x\"}\n", "1:9: " NO_OBJECT},
    {"mooncake, half a character as an escape", "{\"a\":\"\\ud834\\udd1e\"}\n",
     "1:9: " NO_OBJECT "found invalid Unicode"},
    {"mooncake, a control character", SOUND "  {\"a\":\"\x1f\"}\n",
     "2:9: this line is not text in UTF-8: control char"},
    {"mooncake, not UTF-8", "{\"\xc3\xa4\":\"\xff\"}\n", "1:7: this line is not text in UTF-8: "},
    {"mooncake, nested too deep",
     OBJECT("\"\xc3\xa4\":" LEVELS("[") TEN("[") "[[[[1]]]]" TEN("]") LEVELS("]") ",", "0", "2", "3"),
     "1:69: lists and mappings may nest at most 64 levels deep; this one is deeper"},
    {"mooncake, an alias", SOUND "{\"a\":*b}\n", "2:6: the alias *b cannot be followed: "},
    {"mooncake, line ends that only YAML has",
     "{\"a\":\"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\",\r\"timestamp\":x}\n" SOUND,
     "1:1: this object has no input_length; "},
    {"mooncake, a value behind line ends that only YAML has",
     SOUND " {\"a\":\"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\",\r\"timestamp\":x,\"input_length\":1,\"output_length\":1}\n",
     "2:26: " MILLISECONDS "x"},
    {"mooncake, a fault behind line ends that only YAML has", SOUND "{\"a\":\r1}}\n", "2:9: " NO_OBJECT},
    {"mooncake, a second document", "{}\r---\r{}\n",
     "1:4: a second document begins here; a line must hold exactly one"},
};

/* Whether a status is about the text. */
static bool is_of_text(kvca_status status)
{
    return status == KVCA_ERR_CONFIG || status == KVCA_ERR_YAML || status == KVCA_ERR_TOO_LARGE;
}

static void text_is_refused(void **state)
{
    const struct faulty *row = *state;
    struct replay_trace trace = {.count = 7};
    kvca_error error = {.size = sizeof error};
    assert_true(is_of_text(load(row->text, strlen(row->text), &trace, &error)));
    print_message("%s\n", error.message);
    assert_true(is_of_text(error.status));
    if (strncmp(error.message, row->message, strlen(row->message)) != 0) {
        fail_msg("expected %s", row->message);
    }
    assert_int_equal(trace.count, 7);
    assert_null(trace.requests);
}

/* A null character is like any other, also for strtod(). */
static void null_characters_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *message;
    } rows[] = {
        {"\0\n", 2, "1:1: " FORMATS "\"<U+0000>\""},
        {PLAIN "1\0,1,1\n", sizeof PLAIN "1\0,1,1\n" - 1, "2:1: arrival_s must be"},
        {PLAIN "\0,1,1\n", sizeof PLAIN "\0,1,1\n" - 1, "2:1: arrival_s must be"},
        {PLAIN "1,1,1\0\n", sizeof PLAIN "1,1,1\0\n" - 1, "2:5: output_tokens must be"},
        {"{}\0{}\n", 6, "1:3: this line is not text in UTF-8: control characters are not allowed"},
        {"{\"a\"\0:1}\n", 9, "1:5: this line is not text in UTF-8: "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct replay_trace trace;
        kvca_error error = {.size = sizeof error};
        assert_true(is_of_text(load(rows[i].text, rows[i].size, &trace, &error)));
        if (strncmp(error.message, rows[i].message, strlen(rows[i].message)) != 0) {
            fail_msg("%s", error.message);
        }
    }
}

/* An object that is cut anywhere is refused in its line. Nothing past its end is read. */
static void cut_objects_are_refused(void **state)
{
    (void)state;
    static const char whole[] = SOUND "{\"timestamp\": 1.5e3, \"b\": [true, null, {\"c\": \"\\u00e4\\n\"}, []], "
                                      "\"input_length\": 1, \"output_length\": 12}";
    for (size_t length = sizeof SOUND; length < sizeof whole - 1; length++) {
        char *text = malloc(length); /* exact, so that the sanitizer and valgrind see a read past it */
        assert_non_null(text);
        memcpy(text, whole, length);
        struct replay_trace trace;
        kvca_error error = {.size = sizeof error};
        kvca_status status = replay_trace_read(text, length, "t", &trace, &error);
        free(text);
        if (status != KVCA_ERR_YAML || error.line != 2 || error.column > length - strlen(SOUND) + 1) {
            fail_msg("cut after %zu characters: %s", length, status == KVCA_OK ? "read" : error.message);
        }
    }
}

/* The limit is for each line, not for the trace. */
static void longest_lines_are_read(void **state)
{
    (void)state;
    enum { MOST_BYTES = 16777216, OTHERS = sizeof SOUND SOUND - 1 };
    char *text = malloc(OTHERS + MOST_BYTES + 1);
    assert_non_null(text);
    memcpy(text, SOUND SOUND, OTHERS);
    memset(text + OTHERS, ' ', MOST_BYTES + 1);
    text[OTHERS - 2] = ','; /* the last bracket goes to the end of its line */
    text[OTHERS - 1] = ' ';
    size_t start = strlen(SOUND);
    struct replay_trace trace;
    kvca_error error = {.size = sizeof error};
    text[start + MOST_BYTES - 1] = '}';
    assert_int_equal(replay_trace_read(text, start + MOST_BYTES, "t", &trace, &error), KVCA_OK);
    assert_int_equal(trace.count, 2);
    replay_trace_free(&trace);
    text[start + MOST_BYTES] = ' ';
    assert_int_equal(replay_trace_read(text, start + MOST_BYTES + 1, "t", &trace, &error), KVCA_ERR_TOO_LARGE);
    assert_string_equal(error.message,
                        "t:2:16777217: this line may be at most 16777216 bytes long; here it passes that");
    free(text);
}

static void errors_need_no_room(void **state)
{
    (void)state;
    struct replay_trace trace;
    assert_int_equal(replay_trace_load("/dev/null", &trace, NULL), KVCA_ERR_CONFIG);
    assert_int_equal(replay_trace_load("/nonexistent/trace", &trace, NULL), KVCA_ERR_FILE);
    assert_int_equal(replay_trace_read("{}}", 3, "t", &trace, NULL), KVCA_ERR_YAML);
    assert_int_equal(replay_trace_synthesize("x", &trace, NULL), KVCA_ERR_CONFIG);
}

static void unreadable_files_are_refused(void **state)
{
    (void)state;
    struct replay_trace trace;
    kvca_error error = {.size = sizeof error};
    assert_int_equal(replay_trace_load("/nonexistent/trace", &trace, &error), KVCA_ERR_FILE);
    assert_string_equal(error.message, "/nonexistent/trace: cannot read this file: No such file or directory");
}

static void standard_input_is_read(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(fputs(PLAIN "0,1,2\n0,x,2\n", file) >= 0);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
    int kept = dup(STDIN_FILENO);
    assert_true(kept >= 0);
    assert_true(dup2(fileno(file), STDIN_FILENO) >= 0);
    struct replay_trace trace;
    kvca_error error = {.size = sizeof error};
    kvca_status status = replay_trace_load("-", &trace, &error);
    assert_true(dup2(kept, STDIN_FILENO) >= 0);
    close(kept);
    fclose(file);
    assert_int_equal(status, KVCA_ERR_CONFIG);
    assert_string_equal(error.message, "<stdin>:3:3: prompt_tokens " COUNT_RANGE "\"x\"");
}

/* From the last to the first, two at a time. */
static void large_traces_are_sorted(void **state)
{
    (void)state;
    enum { REQUESTS = 100000 };
    size_t room = sizeof PLAIN + (size_t)REQUESTS * 24;
    char *text = malloc(room);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, room, "%s", PLAIN);
    for (int i = 0; i < REQUESTS; i++) {
        used += (size_t)snprintf(text + used, room - used, "%d,%d,1\n", (REQUESTS - 1 - i) / 2, i);
    }
    struct replay_trace trace;
    kvca_error error = {.size = sizeof error};
    kvca_status status = load(text, used, &trace, &error);
    free(text);
    assert_int_equal(status, KVCA_OK);
    assert_int_equal(trace.count, REQUESTS);
    assert_int_equal(trace.unsorted, REQUESTS - 2);
    for (size_t i = 0; i < REQUESTS; i++) {
        assert_true(trace.requests[i].arrival_s == (double)(i / 2));
        assert_int_equal(trace.requests[i].prompt_tokens, REQUESTS - 2 - i / 2 * 2 + i % 2);
    }
    replay_trace_free(&trace);
}

static struct replay_trace synthesize(const char *spec)
{
    struct replay_trace trace;
    kvca_error error = {.size = sizeof error};
    if (replay_trace_synthesize(spec, &trace, &error) != KVCA_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(trace.unsorted, 0);
    return trace;
}

static bool requests_are_equal(const struct replay_request *a, const struct replay_request *b)
{
    return a->arrival_s == b->arrival_s && a->prompt_tokens == b->prompt_tokens &&
           a->output_tokens == b->output_tokens;
}

/* How many requests, of those that both traces have, are equal. */
static size_t count_equal(struct replay_trace a, struct replay_trace b)
{
    size_t equal = 0;
    for (size_t i = 0; i < a.count && i < b.count; i++) {
        equal += requests_are_equal(&a.requests[i], &b.requests[i]);
    }
    replay_trace_free(&a);
    replay_trace_free(&b);
    return equal;
}

static void seeds_decide_the_trace(void **state)
{
    (void)state;
    assert_int_equal(count_equal(synthesize("seed=7"), synthesize("seed=7")), 2000);
    assert_int_equal(count_equal(synthesize("seed=7"), synthesize("seed=8")), 0);
}

static void keys_have_defaults_and_any_order(void **state)
{
    (void)state;
    assert_int_equal(count_equal(synthesize(""), synthesize("seed=0,sigma=1,output=200,prompt=1000,rate=20,"
                                                            "requests=2000")),
                     2000);
    assert_int_equal(count_equal(synthesize("rate=2e1,seed=0x0,prompt=1e3"), synthesize("sigma=1.0")), 2000);
}

static void longer_traces_begin_with_shorter_ones(void **state)
{
    (void)state;
    assert_int_equal(count_equal(synthesize("requests=100,seed=3"), synthesize("requests=1000,seed=3")), 100);
}

/* As the comment of synthetic.c says, with the suites' own generator. */
static void numbers_are_those_of_splitmix64(void **state)
{
    (void)state;
    struct replay_trace trace = synthesize("requests=1000,seed=18446744073709551615,rate=5,prompt=300,output=40,"
                                           "sigma=0.5");
    uint64_t random = UINT64_MAX;
    double arrival_s = 0;
    for (size_t i = 0; i < trace.count; i++) {
        double u[3];
        for (size_t k = 0; k < COUNT(u); k++) {
            u[k] = ldexp((double)(next_random(&random) >> 11 | 1), -53);
        }
        arrival_s += i == 0 ? 0 : -log(u[0]) / 5;
        double radius = sqrt(-2 * log(u[1]));
        double angle = 2 * acos(-1.0) * u[2];
        assert_true(fabs(trace.requests[i].arrival_s - arrival_s) <= 1e-9);
        assert_true(fabs((double)trace.requests[i].prompt_tokens - 300 * exp(radius * cos(angle) / 2)) < 0.500001);
        assert_true(fabs((double)trace.requests[i].output_tokens - 40 * exp(radius * sin(angle) / 2)) < 0.500001);
    }
    replay_trace_free(&trace);
}

static int compare_counts(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct lengths {
    double median;
    double upper; /* one standard deviation of the logarithm above */
};

static struct lengths measure(const struct replay_trace *trace, bool output)
{
    uint64_t *counts = calloc(trace->count, sizeof *counts);
    assert_non_null(counts);
    for (size_t i = 0; i < trace->count; i++) {
        counts[i] = output ? trace->requests[i].output_tokens : trace->requests[i].prompt_tokens;
    }
    qsort(counts, trace->count, sizeof *counts, compare_counts);
    struct lengths lengths = {
        .median = (double)counts[trace->count / 2],
        .upper = (double)counts[(size_t)((double)trace->count * 0.841345)],
    };
    free(counts);
    return lengths;
}

static void assert_near(double value, double expected)
{
    if (fabs(value / expected - 1) > 0.03) {
        fail_msg("%g is not near %g", value, expected);
    }
}

static void distributions_match_their_parameters(void **state)
{
    (void)state;
    struct replay_trace trace = synthesize("requests=20000,seed=1,rate=50,prompt=2000,output=300,sigma=0.8");
    struct lengths prompts = measure(&trace, false);
    struct lengths outputs = measure(&trace, true);
    assert_near(prompts.median, 2000);
    assert_near(prompts.upper, 2000 * exp(0.8));
    assert_near(outputs.median, 300);
    assert_near(outputs.upper, 300 * exp(0.8));
    assert_true(trace.requests[0].arrival_s == 0);
    assert_near(19999 / trace.requests[19999].arrival_s, 50);
    size_t long_gaps = 0; /* longer than the mean: one in e */
    for (size_t i = 1; i < trace.count; i++) {
        double gap = trace.requests[i].arrival_s - trace.requests[i - 1].arrival_s;
        assert_true(gap >= 0);
        long_gaps += gap > 1.0 / 50;
    }
    assert_near((double)long_gaps, 19999 * exp(-1.0));
    replay_trace_free(&trace);
}

static void lengths_stay_in_bounds(void **state)
{
    (void)state;
    struct replay_trace trace = synthesize("requests=20000,prompt=131072,output=1,sigma=4");
    bool capped = false;
    bool least = false;
    for (size_t i = 0; i < trace.count; i++) {
        assert_in_range(trace.requests[i].prompt_tokens, 1, 131072);
        assert_in_range(trace.requests[i].output_tokens, 1, 131072);
        capped = capped || trace.requests[i].prompt_tokens == 131072;
        least = least || trace.requests[i].output_tokens == 1;
    }
    assert_true(capped && least);
    replay_trace_free(&trace);
}

static void extreme_settings_stay_finite(void **state)
{
    (void)state;
    struct replay_trace trace = synthesize("requests=100000,rate=0.001,prompt=41.4,output=2.5,sigma=0");
    assert_true(trace.requests[99999].arrival_s < 1e10);
    for (size_t i = 0; i < trace.count; i++) {
        assert_int_equal(trace.requests[i].prompt_tokens, 41);
        assert_int_equal(trace.requests[i].output_tokens, 3);
    }
    replay_trace_free(&trace);
    trace = synthesize("requests=1,rate=1e308");
    assert_int_equal(trace.count, 1);
    replay_trace_free(&trace);
}

#define KEYS_LISTED "accepted are requests, rate, prompt, output, sigma and seed, each as KEY=VALUE"
#define REQUESTS_RANGE "requests must be an integer from 1 to 10000000; found "
#define RATE_RANGE "rate must be arrivals per second, a finite number from 0.001 on; found "
#define PROMPT_RANGE "prompt must be the median of the prompt tokens, a number from 1 to 131072; found "
#define SIGMA_RANGE "sigma must be the standard deviation of the logarithm of lengths, a number from 0 to 4; found "
#define SEED_RANGE "seed must be an integer from 0 to 18446744073709551615; found "

static void faulty_specs_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t column;
        const char *message;
    } rows[] = {
        {"x", 1, "\"x\" is not a key; " KEYS_LISTED},
        {"rates=3", 1, "\"rates\" is not a key (did you mean rate?); " KEYS_LISTED},
        {"rate=3,Seed=1", 8, "\"Seed\" is not a key (did you mean seed?); " KEYS_LISTED},
        {"=3", 1, "\"\" is not a key; " KEYS_LISTED},
        {",", 1, "\"\" is not a key; " KEYS_LISTED},
        {"rate=3,", 8, "\"\" is not a key; " KEYS_LISTED},
        {"rate=3,,seed=1", 8, "\"\" is not a key; " KEYS_LISTED},
        {"rate=3, seed=1", 8, "\" seed\" is not a key (did you mean seed?); " KEYS_LISTED},
        {"\x1b=3", 1, "\"<U+001B>\" is not a key; " KEYS_LISTED},
        {"rate=3,seed=1,rate=3", 15, "rate stands here a second time; remove one of them"},
        {"requests", 1, REQUESTS_RANGE "nothing"},
        {"requests=", 1, REQUESTS_RANGE "nothing"},
        {"requests=0", 1, REQUESTS_RANGE "0"},
        {"requests=10000001", 1, REQUESTS_RANGE "10000001"},
        {"requests=-1", 1, REQUESTS_RANGE "-1"},
        {"requests=1.5", 1, REQUESTS_RANGE "1.5"},
        {"requests=99999999999999999999", 1, REQUESTS_RANGE "99999999999999999999"},
        {"seed=1,rate=0", 8, RATE_RANGE "0"},
        {"rate=-1", 1, RATE_RANGE "-1"},
        {"rate=.inf", 1, RATE_RANGE ".inf"},
        {"rate=1e309", 1, RATE_RANGE "1e309"},
        {"rate=.nan", 1, RATE_RANGE ".nan"},
        {"rate=fast", 1, RATE_RANGE "fast"},
        {"rate=1=2", 1, RATE_RANGE "1=2"},
        {"rate=1 ", 1, RATE_RANGE "1 "},
        {"prompt=0.5", 1, PROMPT_RANGE "0.5"},
        {"prompt=131073", 1, PROMPT_RANGE "131073"},
        {"output=0", 1, "output must be the median of the output tokens, a number from 1 to 131072; found 0"},
        {"sigma=-0.1", 1, SIGMA_RANGE "-0.1"},
        {"sigma=4.1", 1, SIGMA_RANGE "4.1"},
        {"seed=-1", 1, SEED_RANGE "-1"},
        {"seed=18446744073709551616", 1, SEED_RANGE "18446744073709551616"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct replay_trace trace = {.count = 7};
        kvca_error error = {.size = sizeof error};
        char message[1024];
        snprintf(message, sizeof message, "--synthetic:1:%zu: %s", rows[i].column, rows[i].message);
        assert_int_equal(replay_trace_synthesize(rows[i].spec, &trace, &error), KVCA_ERR_CONFIG);
        assert_string_equal(error.message, message);
        assert_int_equal(trace.count, 7);
    }
}

static const struct CMUnitTest OTHERS[] = {
    cmocka_unit_test(null_characters_are_refused),      cmocka_unit_test(cut_objects_are_refused),
    cmocka_unit_test(longest_lines_are_read),           cmocka_unit_test(errors_need_no_room),
    cmocka_unit_test(unreadable_files_are_refused),     cmocka_unit_test(standard_input_is_read),
    cmocka_unit_test(large_traces_are_sorted),          cmocka_unit_test(seeds_decide_the_trace),
    cmocka_unit_test(keys_have_defaults_and_any_order), cmocka_unit_test(longer_traces_begin_with_shorter_ones),
    cmocka_unit_test(numbers_are_those_of_splitmix64),  cmocka_unit_test(distributions_match_their_parameters),
    cmocka_unit_test(lengths_stay_in_bounds),           cmocka_unit_test(extreme_settings_stay_finite),
    cmocka_unit_test(faulty_specs_are_refused),
};

/* cmocka passes its tests the rows without const. */
static struct CMUnitTest row_test(const char *name, CMUnitTestFunction run, const void *row)
{
    union {
        const void *row;
        void *state;
    } handed = {row};
    return (struct CMUnitTest){.name = name, .test_func = run, .initial_state = handed.state};
}

int main(void)
{
    struct CMUnitTest tests[COUNT(READABLE) + COUNT(FAULTY) + COUNT(OTHERS)];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(READABLE); i++) {
        tests[count++] = row_test(READABLE[i].name, text_is_read, &READABLE[i]);
    }
    for (size_t i = 0; i < COUNT(FAULTY); i++) {
        tests[count++] = row_test(FAULTY[i].name, text_is_refused, &FAULTY[i]);
    }
    memcpy(tests + count, OTHERS, sizeof OTHERS);
    return _cmocka_run_group_tests("trace", tests, COUNT(tests), NULL, NULL);
}
