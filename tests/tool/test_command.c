/* SPDX-License-Identifier: Apache-2.0 */
/* `kvca check` on every document of vectors/config.yaml: its output, the stream, and its exit status. */
#define _DEFAULT_SOURCE /* popen */

#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/vectors.h"

static yaml_document_t document;

static char path[TEST_PATH];

static int write_file(void **state)
{
    yaml_node_t *text = vector_get(&document, *state, "text");
    make_file(path, text->data.scalar.value, text->data.scalar.length);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

/* Runs `kvca check` on the file. Returns its exit status, and what it printed on the stream `keep`. */
static int run_check(const char *role, const char *keep, char *output, size_t size)
{
    char command[4096];
    snprintf(command, sizeof command, "'%s' check --role %s %s %s", getenv("KVCA"), role, path, keep);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    output[fread(output, 1, size - 1, stream)] = '\0';
    int status = pclose(stream);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void check_prints_what_a_document_means(void **state)
{
    yaml_node_t *role = vector_get(&document, *state, "role");
    yaml_node_t *error = vector_get(&document, *state, "error");
    const char *role_name = role ? vector_text(role) : "decode";
    char output[8192];
    char place[128];
    if (!error) {
        assert_int_equal(run_check(role_name, "2>&1", output, sizeof output), 0);
        snprintf(place, sizeof place, "%s: sound", path);
        assert_int_equal(strncmp(output, place, strlen(place)), 0);
        return;
    }
    assert_int_equal(run_check(role_name, "2>/dev/null", output, sizeof output), 1);
    assert_string_equal(output, "");
    assert_int_equal(run_check(role_name, "2>&1", output, sizeof output), 1);
    print_message("%s", output);
    snprintf(place, sizeof place, "%s:%d:", path, (int)vector_uint64(vector_get(&document, error, "line"), 0));
    assert_int_equal(strncmp(output, place, strlen(place)), 0);
    assert_true(strchr(output, '\n') == output + strlen(output) - 1);
    yaml_node_t *mentions = vector_get(&document, error, "mentions");
    for (size_t i = 0; vector_at(&document, mentions, i); i++) {
        assert_non_null(strstr(output, vector_text(vector_at(&document, mentions, i))));
    }
}

int main(void)
{
    vectors_load(&document, "config.yaml");
    size_t count = vectors_count(&document);
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    for (size_t i = 0; i < count; i++) {
        yaml_node_t *vector = vectors_case(&document, i);
        tests[i] = (struct CMUnitTest){
            .name = vector_text(vector_get(&document, vector, "name")),
            .test_func = check_prints_what_a_document_means,
            .setup_func = write_file,
            .teardown_func = remove_file,
            .initial_state = vector,
        };
    }
    int failed = _cmocka_run_group_tests("command", tests, count, NULL, NULL);
    free(tests);
    yaml_document_delete(&document);
    return failed;
}
