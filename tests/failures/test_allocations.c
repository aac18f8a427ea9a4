/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out wherever it can. Each function that allocates is called until it passes: first its first
 * allocation fails, then its second, and so on, including those of libyaml and the C library. It must report the
 * failure, leave its outputs alone and lose no memory. All other functions are called with no memory at all.
 */
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include <kvca/config.h>
#include <kvca/pool.h>

#include "support/vectors.h"
#include "faults.h"

/* What a call has returned and written. It starts as a pattern that no call writes. */
struct output {
    kvca_status status;
    union {
        kvca_params params;
        kvca_policy *policy;
        kvca_pool *pool;
        unsigned char bytes[sizeof(kvca_params)];
    } made;
    kvca_error error;
    bool tells_error; /* whether the call fills `error` */
};

struct call {
    const char *name; /* the document's name in messages */
    const char *text; /* a document, or the content of the file `path` */
    size_t size;
    const char *path;
    kvca_role role;
};

/* A function that allocates: how to call it, to compare it with a call without faults, and to undo it. */
struct entry {
    const char *function;
    kvca_status (*run)(const struct call *call, struct output *output);
    bool (*same)(const struct output *output, const struct output *untouched);
    void (*undo)(struct output *output);
};

#define PATTERN 0xa5

/* The address sanitizer's strdup() does not use our allocator. The sanitizer finds leaks by itself. */
#if defined(__SANITIZE_ADDRESS__)
#define COUNTS_LIVE false
#else
#define COUNTS_LIVE true
#endif

static void blank(struct output *output)
{
    memset(output, PATTERN, sizeof *output);
    output->made.params.size = sizeof output->made.params;
    output->error.size = sizeof output->error;
    output->tells_error = false;
}

static bool is_blank(const struct output *output)
{
    struct output untouched;
    blank(&untouched);
    return memcmp(&output->made, &untouched.made, sizeof output->made) == 0;
}

/* The number that the next file would get. It is higher if a file was left open. */
static int next_descriptor(void)
{
    int descriptor = open("/dev/null", O_RDONLY);
    assert_true(descriptor >= 0);
    assert_int_equal(close(descriptor), 0);
    return descriptor;
}

/* Checks what a failed allocation must leave behind. Returns what is wrong, or NULL. */
static const char *check_no_memory(const struct call *call, const struct output *output)
{
    if (output->status != KVCA_ERR_NO_MEMORY) {
        return "the status is not KVCA_ERR_NO_MEMORY";
    }
    if (!is_blank(output)) {
        return "something was written";
    }
    if (!output->tells_error) {
        return NULL;
    }
    char message[128];
    snprintf(message, sizeof message, "%s: %s", call->name, kvca_strerror(KVCA_ERR_NO_MEMORY));
    bool told = output->error.status == KVCA_ERR_NO_MEMORY && output->error.line == 0 && output->error.column == 0 &&
                strcmp(output->error.message, message) == 0;
    return told ? NULL : output->error.message;
}

static const char *check_kept(long live, int descriptor)
{
    if (COUNTS_LIVE && faults_live() != live) {
        return "memory was lost, or freed twice";
    }
    return next_descriptor() == descriptor ? NULL : "a file was left open";
}

struct failure {
    bool reached; /* an allocation did fail */
    bool told;    /* and the call reported it */
};

/*
 * Runs a call in which allocation number `first`, or all from it on, fail. The C library can do without some of its
 * memory, such as a stream's buffer. The result must then be the same as without faults.
 */
static struct failure fail_at(const struct entry *entry, const struct call *call, unsigned long first,
                              enum faults_kind kind, const struct output *untouched)
{
    struct output output;
    blank(&output);
    long live = faults_live();
    int descriptor = next_descriptor();
    faults_begin(first, kind);
    output.status = entry->run(call, &output);
    bool reached = faults_end() >= first;
    const char *untold = check_no_memory(call, &output);
    bool same = output.status == untouched->status && entry->same(&output, untouched);
    if (output.status == KVCA_OK && entry->undo) {
        entry->undo(&output);
    }
    const char *wrong = untold && !same ? untold : check_kept(live, descriptor);
    if (wrong) {
        fail_msg("%s, allocation %lu %s: status %d: %s\n%.*s", entry->function, first,
                 kind == FAULTS_ONE ? "failing" : "and all after it failing", (int)output.status, wrong,
                 (int)call->size, call->text ? call->text : "");
    }
    return (struct failure){.reached = reached, .told = !untold};
}

/* Returns the number of allocations. `*told` is how many of them the call cannot do without. */
static unsigned long fail_each(const struct entry *entry, const struct call *call, unsigned long *told)
{
    struct output untouched;
    blank(&untouched);
    untouched.status = entry->run(call, &untouched);
    unsigned long allocations = 0;
    *told = 0;
    for (;;) {
        struct failure all = fail_at(entry, call, allocations + 1, FAULTS_ALL, &untouched);
        struct failure one = fail_at(entry, call, allocations + 1, FAULTS_ONE, &untouched);
        assert_int_equal(one.reached, all.reached); /* it makes the same allocations each time */
        if (!one.reached) {
            break;
        }
        allocations++;
        *told += one.told;
    }
    if (untouched.status == KVCA_OK && entry->undo) {
        entry->undo(&untouched);
    }
    return allocations;
}

static const kvca_params PARAMS = KVCA_PARAMS_DEFAULT;

static kvca_status run_policy_new(const struct call *call, struct output *output)
{
    (void)call;
    return kvca_policy_new(&PARAMS, &output->made.policy);
}

static kvca_status run_pool_new(const struct call *call, struct output *output)
{
    (void)call;
    return kvca_pool_new(64, 2, &PARAMS, &output->made.pool);
}

static kvca_status run_load_buffer(const struct call *call, struct output *output)
{
    output->tells_error = true;
    return kvca_config_load_buffer(call->text, call->size, call->name, call->role, &output->made.params,
                                   &output->error);
}

static kvca_status run_load_file(const struct call *call, struct output *output)
{
    output->tells_error = true;
    return kvca_config_load_file(call->path, call->role, &output->made.params, &output->error);
}

static kvca_status run_load_without_error(const struct call *call, struct output *output)
{
    return kvca_config_load_buffer(call->text, call->size, call->name, call->role, &output->made.params, NULL);
}

static bool same_pointer(const struct output *output, const struct output *untouched)
{
    (void)output;
    (void)untouched;
    return true; /* each call makes a new one */
}

static bool same_params(const struct output *output, const struct output *untouched)
{
    const kvca_params *a = &output->made.params;
    const kvca_params *b = &untouched->made.params;
    return memcmp(&a->capacity_fraction, &b->capacity_fraction, sizeof(double)) == 0 &&
           memcmp(&a->decode_active_request_weight, &b->decode_active_request_weight, sizeof(double)) == 0 &&
           memcmp(&a->count_priority, &b->count_priority, sizeof(bool)) == 0 &&
           a->capacity_blocks == b->capacity_blocks &&
           memcmp(&output->error, &untouched->error, offsetof(kvca_error, message)) == 0 &&
           strncmp(output->error.message, untouched->error.message, sizeof output->error.message) == 0;
}

static void undo_policy(struct output *output)
{
    kvca_policy_free(output->made.policy);
}

static void undo_pool(struct output *output)
{
    kvca_pool_free(output->made.pool);
}

static const struct entry POLICY_NEW = {"kvca_policy_new", run_policy_new, same_pointer, undo_policy};
static const struct entry POOL_NEW = {"kvca_pool_new", run_pool_new, same_pointer, undo_pool};
static const struct entry LOAD_BUFFER = {"kvca_config_load_buffer", run_load_buffer, same_params, NULL};
static const struct entry LOAD_WITHOUT_ERROR = {"kvca_config_load_buffer", run_load_without_error, same_params, NULL};
static const struct entry LOAD_FILE = {"kvca_config_load_file", run_load_file, same_params, NULL};

static void every_failure_is_reported(void **state)
{
    const struct entry *entry = *state;
    unsigned long told;
    unsigned long failed = fail_each(entry, &(struct call){.name = ""}, &told);
    assert_int_equal(failed, 1);
    assert_int_equal(told, 1);
}

/* Returns how many allocations were made to fail. */
static unsigned long fail_document(const char *text, size_t size, kvca_role role)
{
    const struct call call = {.name = "p", .text = text, .size = size, .role = role};
    unsigned long told;
    unsigned long failed = fail_each(&LOAD_BUFFER, &call, &told);
    assert_int_equal(told, failed); /* reading from memory needs every allocation */
    return failed;
}

/* Not in the vectors: everything for which libyaml allocates memory. */
static const char *const DOCUMENTS[] = {
    "a: &a {x: 1}\nb: &b [*a, *a]\nc: &a [*b]\nd: *a\nworker_selection: {decode: default}\n",
    "%YAML 1.1\n---\n# a comment\ncapacity_fraction: 0.5 # another\n...\n",
    "\xef\xbb\xbf"
    "capacity_fraction: .5\r\ncount_priority: false\r\n",
    "a: \"escapes \\\" \\x41 \\u00e4 \\U0001F600 \\L, and so long that a buffer of sixteen bytes grows and grows\"\n"
    "'single ''quoted'' text that is long as well, and folded\n\n  over lines': ~\n"
    "block: |+\n  literal lines that are kept, each of them\n\n  and their ends\n\n"
    "folded: >-2\n     folded lines, more of them\n     than one\n"
    "plain: text that goes on\n  over several\n\n  lines of text\n"
    "worker_selection: {instances: []}\n",
    "tags: [!!str a, !local b, !<tag:example.org,2000:verbatim%20tag> c, ! d, !!map {e: f}]\n"
    "worker_selection: {decode: default}\n",
    "? complex\n: value\n? [a, list, as key]\n: value\nworker_selection: {}\n",
    "? \"explicit\"\n: &anchored !!str tagged\nworker_selection: {}\n",
    "[a: b, {c, d: }, [], {}, ? e : f]\n",
    "a: [1, 2\nb: 3\n",
    "a: {b: c\n",
    "a: \"not closed\n",
    "a: 'not closed\n",
    "a: \"\\q\"\n",
    "a: !<not closed\n",
    "a: !undeclared!tag b\n",
    "%YAML 9.9\n---\na: b\n",
    "%UNKNOWN directive\n---\ncapacity_fraction: 1\n",
    "a: |9000\n b\n",
    "a: *nobody\n",
    "a: &a [*a]\n",
    "a: b: c\n",
    "\tx: y\n",
    "a: \xff\n",
    "capacity_fraction: 1\n---\ncapacity_fraction: 1\n",
    "capacity_fraction: 0.9\ncapacity_fraction: 0.8\n",
    "capacity_fractoin: 0.9\n",
    "%TAG ! tag:example.org,2000:\n---\na: b\n",
    "",
};

static void every_failure_in_a_document_is_reported(void **state)
{
    const char *text = *state;
    print_message("%lu allocations\n", fail_document(text, strlen(text), KVCA_ROLE_DECODE));
}

static yaml_document_t vectors;

static void every_failure_in_a_vector_is_reported(void **state)
{
    yaml_node_t *text = vector_get(&vectors, *state, "text");
    yaml_node_t *name = vector_get(&vectors, *state, "role");
    kvca_role role = KVCA_ROLE_DECODE;
    if (name) {
        assert_int_equal(kvca_role_parse(vector_text(name), &role), KVCA_OK);
    }
    print_message("%lu allocations\n",
                  fail_document((const char *)text->data.scalar.value, text->data.scalar.length, role));
}

struct text {
    size_t used;
    char bytes[32768];
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(text->bytes + text->used, sizeof text->bytes - text->used, format, arguments);
    va_end(arguments);
    text->used += (size_t)added;
    assert_true(text->used < sizeof text->bytes);
}

static struct text text; /* too large for a stack */

static void every_failure_with_many_keys_is_reported(void **state)
{
    (void)state;
    text.used = 0;
    add(&text, "key0: &anchor0 0\n");
    for (int i = 1; i < (int)rounds(100); i++) {
        add(&text, "key%d: &anchor%d [*anchor%d]\n", i, i, i - 1);
    }
    add(&text, "worker_selection:\n  decode: n1\n  instances:\n");
    for (int i = 0; i < (int)rounds(60); i++) {
        add(&text, "  - {name: n%d, type: " KVCA_CONFIG_TYPE ", parameters: {capacity_fraction: 0.%d}}\n", i, i + 1);
    }
    unsigned long failed = fail_document(text.bytes, text.used, KVCA_ROLE_DECODE);
    print_message("%zu bytes, %lu allocations\n", text.used, failed);
    assert_true(failed > rounds(160));
}

static void every_failure_in_deep_nesting_is_reported(void **state)
{
    (void)state;
    for (int depth = KVCA_CONFIG_MAX_DEPTH - 1; depth <= KVCA_CONFIG_MAX_DEPTH; depth++) {
        text.used = 0;
        add(&text, "worker_selection: {}\nother: ");
        for (int i = 0; i < depth; i++) {
            add(&text, "%s", i % 2 ? "[" : "{a: ");
        }
        for (int i = depth; i-- > 0;) {
            add(&text, "%s", i % 2 ? "]" : "}");
        }
        print_message("%d levels, %lu allocations\n", depth, fail_document(text.bytes, text.used, KVCA_ROLE_DECODE));
    }
}

static void every_failure_in_a_file_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH];
    text.used = 0;
    add(&text, "capacity_fraction: 0.25\n# ");
    while (text.used < 20000) { /* more than the reader's first buffer */
        add(&text, "more and more ");
    }
    make_file(path, text.bytes, text.used);
    unsigned long told;
    unsigned long failed = fail_each(&LOAD_FILE, &(struct call){.name = path, .path = path}, &told);
    unlink(path);
    print_message("%lu allocations, %lu of them needed\n", failed, told);
    assert_true(failed > told || told > 20);
    assert_in_range(failed - told, 0, 1); /* the stream's buffer */
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    static const char *const paths[] = {"/nonexistent/policy.yaml", "/", "/proc/self/mem"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        unsigned long told;
        fail_each(&LOAD_FILE, &(struct call){.name = paths[i], .path = paths[i]}, &told);
    }
}

static void the_error_may_be_null(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(DOCUMENTS); i++) {
        unsigned long told;
        const struct call call = {.name = "p", .text = DOCUMENTS[i], .size = strlen(DOCUMENTS[i])};
        fail_each(&LOAD_WITHOUT_ERROR, &call, &told);
    }
}

/* Made in advance for the functions below. */
static struct {
    kvca_policy *policy;
    kvca_pool *pool;
    kvca_owner owner;
    kvca_booking booking;
    _Alignas(KVCA_POOL_ALIGNMENT) char memory[65536];
    _Alignas(8) char buffer[65536];
    uint64_t blocks[8];
    uint64_t requests[8];
} desk;

static kvca_ranks desk_ranks(void)
{
    return (kvca_ranks){
        .size = sizeof(kvca_ranks), .count = 8, .decode_cost_blocks = desk.blocks, .active_requests = desk.requests};
}

static void count_warning(void *user, const kvca_warning *warning)
{
    (void)user;
    (void)warning;
}

static kvca_status call_select(void)
{
    kvca_selection selection = {.size = sizeof selection};
    kvca_ranks ranks = desk_ranks();
    return kvca_select(desk.policy, &ranks, &selection);
}

static kvca_status call_tie_set(void)
{
    size_t rows[8];
    kvca_selection selection = {.size = sizeof selection};
    kvca_ranks ranks = desk_ranks();
    return kvca_tie_set(desk.policy, &ranks, rows, 8, &selection);
}

static kvca_status call_explain(void)
{
    kvca_explanation explanation = {.size = sizeof explanation};
    kvca_selection selection = {.size = sizeof selection, .row = 1};
    kvca_ranks ranks = desk_ranks();
    return kvca_explain(kvca_policy_params(desk.policy), &ranks, &selection, 2, &explanation);
}

static kvca_status call_pool_explain(void)
{
    kvca_explanation explanation = {.size = sizeof explanation};
    kvca_selection selection = {.size = sizeof selection};
    kvca_request request = {.size = sizeof request};
    kvca_rank rank = {.size = sizeof rank, .worker_id = 1, .total_kv_blocks = 100};
    kvca_status status = kvca_pool_put(desk.pool, &rank, NULL);
    return status == KVCA_OK ? kvca_pool_explain(desk.pool, &request, NULL, &selection, 0, &explanation) : status;
}

static kvca_status call_ranks_validate(void)
{
    kvca_ranks ranks = desk_ranks();
    return kvca_ranks_validate(&ranks, NULL);
}

static kvca_status call_params_validate(void)
{
    return kvca_params_validate(&PARAMS);
}

static kvca_status call_params_init(void)
{
    kvca_params params;
    return kvca_params_init(&params, sizeof params);
}

static kvca_status call_no_capacity_filter(void)
{
    return kvca_no_capacity_filter() > 1.0 ? KVCA_OK : KVCA_ERR_NULL;
}

static kvca_status call_policy_params(void)
{
    return kvca_policy_params(desk.policy) ? KVCA_OK : KVCA_ERR_NULL;
}

static kvca_status call_policy_set_seed(void)
{
    return kvca_policy_set_seed(desk.policy, 1);
}

static kvca_status call_policy_set_warning(void)
{
    return kvca_policy_set_warning(desk.policy, count_warning, NULL);
}

static kvca_status call_policy_free(void)
{
    kvca_policy_free(NULL);
    return KVCA_OK;
}

static kvca_status call_pool_free(void)
{
    kvca_pool_free(NULL);
    return KVCA_OK;
}

static kvca_status call_pool_bytes(void)
{
    return kvca_pool_bytes(64, 2) != 0 ? KVCA_OK : KVCA_ERR_POOL_SIZE;
}

static kvca_status call_pool_init(void)
{
    kvca_pool *pool;
    return kvca_pool_init(desk.memory, sizeof desk.memory, 64, 2, &PARAMS, &pool);
}

static kvca_status call_pool_attach(void)
{
    kvca_pool *pool;
    return kvca_pool_attach(desk.memory, sizeof desk.memory, &pool);
}

static kvca_status call_pool_max_owners(void)
{
    return kvca_pool_max_owners(desk.pool) == 2 ? KVCA_OK : KVCA_ERR_NULL;
}

static kvca_status call_pool_max_ranks(void)
{
    return kvca_pool_max_ranks(desk.pool) == 64 ? KVCA_OK : KVCA_ERR_NULL;
}

static kvca_status call_pool_set_params(void)
{
    return kvca_pool_set_params(desk.pool, &PARAMS);
}

static kvca_status call_pool_set_seed(void)
{
    return kvca_pool_set_seed(desk.pool, 1);
}

static kvca_status call_pool_put(void)
{
    return kvca_pool_put(desk.pool, &(kvca_rank){.size = sizeof(kvca_rank), .worker_id = 1, .total_kv_blocks = 100},
                         NULL);
}

static kvca_status call_pool_find(void)
{
    uint32_t slot;
    return kvca_pool_find(desk.pool, 1, 0, &slot);
}

static kvca_status call_pool_owner_claim(void)
{
    return kvca_pool_owner_claim(desk.pool, 1, &desk.owner);
}

static kvca_status call_pool_owner_at(void)
{
    kvca_owner_info info = {.size = sizeof info};
    return kvca_pool_owner_at(desk.pool, 0, &info);
}

static kvca_status call_pool_place(void)
{
    kvca_selection selection = {.size = sizeof selection};
    return kvca_pool_place(desk.pool, desk.owner, &(kvca_request){.size = sizeof(kvca_request), .blocks = 10},
                           &desk.booking, &selection);
}

static kvca_status call_pool_grow(void)
{
    return kvca_pool_grow(desk.pool, &desk.booking, 1);
}

static kvca_status call_pool_repair(void)
{
    return kvca_pool_repair(desk.pool, NULL);
}

static kvca_status call_pool_snapshot_bytes(void)
{
    size_t bytes = kvca_pool_snapshot_bytes(desk.pool);
    return bytes > 0 && bytes <= sizeof desk.buffer ? KVCA_OK : KVCA_ERR_POOL_MEMORY;
}

static kvca_status call_pool_snapshot(void)
{
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    return kvca_pool_snapshot(desk.pool, desk.buffer, sizeof desk.buffer, &snapshot);
}

static kvca_status call_pool_release(void)
{
    return kvca_pool_release(desk.pool, &desk.booking);
}

static kvca_status call_pool_drain(void)
{
    return kvca_pool_drain(desk.pool, 1, 0);
}

static kvca_status call_pool_drop(void)
{
    kvca_status status = call_pool_put();
    return status == KVCA_OK ? kvca_pool_drop(desk.pool, 1, 0) : status;
}

static kvca_status call_pool_owner_void(void)
{
    return kvca_pool_owner_void(desk.pool, desk.owner, NULL, NULL);
}

static kvca_status call_blocks_for_tokens(void)
{
    return kvca_blocks_for_tokens(17, 16) == 2 ? KVCA_OK : KVCA_ERR_OVERFLOW;
}

static kvca_status call_role_name(void)
{
    return kvca_role_name(KVCA_ROLE_ENCODE) ? KVCA_OK : KVCA_ERR_ROLE;
}

static kvca_status call_role_parse(void)
{
    kvca_role role;
    return kvca_role_parse("prefill", &role);
}

static kvca_status call_strerror(void)
{
    return kvca_strerror(KVCA_NONE_FITS) && kvca_strerror((kvca_status)999) ? KVCA_OK : KVCA_ERR_NULL;
}

static kvca_status call_variant(void)
{
    return kvca_variant() ? KVCA_OK : KVCA_ERR_NULL;
}

static kvca_status call_version(void)
{
    return kvca_version() ? KVCA_OK : KVCA_ERR_NULL;
}

/* All functions that do not allocate, in an order in which they can be called. */
static const struct quiet {
    const char *function;
    kvca_status (*call)(void);
} QUIET[] = {
    {"kvca_select", call_select},
    {"kvca_tie_set", call_tie_set},
    {"kvca_explain", call_explain},
    {"kvca_pool_explain", call_pool_explain},
    {"kvca_ranks_validate", call_ranks_validate},
    {"kvca_params_init", call_params_init},
    {"kvca_no_capacity_filter", call_no_capacity_filter},
    {"kvca_params_validate", call_params_validate},
    {"kvca_policy_params", call_policy_params},
    {"kvca_policy_set_seed", call_policy_set_seed},
    {"kvca_policy_set_warning", call_policy_set_warning},
    {"kvca_policy_free", call_policy_free},
    {"kvca_pool_free", call_pool_free},
    {"kvca_pool_bytes", call_pool_bytes},
    {"kvca_pool_init", call_pool_init},
    {"kvca_pool_attach", call_pool_attach},
    {"kvca_pool_max_owners", call_pool_max_owners},
    {"kvca_pool_max_ranks", call_pool_max_ranks},
    {"kvca_pool_set_params", call_pool_set_params},
    {"kvca_pool_set_seed", call_pool_set_seed},
    {"kvca_pool_put", call_pool_put},
    {"kvca_pool_find", call_pool_find},
    {"kvca_pool_owner_claim", call_pool_owner_claim},
    {"kvca_pool_owner_at", call_pool_owner_at},
    {"kvca_pool_place", call_pool_place},
    {"kvca_pool_grow", call_pool_grow},
    {"kvca_pool_repair", call_pool_repair},
    {"kvca_pool_snapshot_bytes", call_pool_snapshot_bytes},
    {"kvca_pool_snapshot", call_pool_snapshot},
    {"kvca_pool_release", call_pool_release},
    {"kvca_pool_drain", call_pool_drain},
    {"kvca_pool_drop", call_pool_drop},
    {"kvca_pool_owner_void", call_pool_owner_void},
    {"kvca_blocks_for_tokens", call_blocks_for_tokens},
    {"kvca_role_name", call_role_name},
    {"kvca_role_parse", call_role_parse},
    {"kvca_strerror", call_strerror},
    {"kvca_variant", call_variant},
    {"kvca_version", call_version},
};

static void other_functions_need_no_memory(void **state)
{
    (void)state;
    desk.policy = make_policy(PARAMS);
    assert_int_equal(kvca_pool_new(64, 2, &PARAMS, &desk.pool), KVCA_OK);
    for (size_t i = 0; i < COUNT(QUIET); i++) {
        faults_begin(1, FAULTS_ALL);
        kvca_status status = QUIET[i].call();
        unsigned long asked = faults_end();
        if (status != KVCA_OK || asked > 0) {
            fail_msg("%s: status %d, %lu allocations", QUIET[i].function, (int)status, asked);
        }
    }
    kvca_policy_free(desk.policy);
    kvca_pool_free(desk.pool);
}

static bool is_covered(const char *function)
{
    static const struct entry *const entries[] = {&POLICY_NEW, &POOL_NEW, &LOAD_BUFFER, &LOAD_FILE};
    for (size_t i = 0; i < COUNT(entries); i++) {
        if (strcmp(entries[i]->function, function) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(QUIET); i++) {
        if (strcmp(QUIET[i].function, function) == 0) {
            return true;
        }
    }
    return false;
}

/* Each function that the library exports is in one of the two lists. */
static void no_function_is_forgotten(void **state)
{
    (void)state;
    FILE *map = fopen(KVCA_EXPORTS, "r");
    assert_non_null(map);
    char line[128];
    char function[128];
    size_t functions = 0;
    while (fgets(line, sizeof line, map)) {
        if (sscanf(line, " kvca_%100[a-z_0-9]", function + 5) != 1) {
            continue;
        }
        memcpy(function, "kvca_", 5);
        functions++;
        if (!is_covered(function)) {
            fail_msg("%s is not tested", function);
        }
    }
    fclose(map);
    assert_int_equal(functions, COUNT(QUIET) + 4);
}

/* Memory that the C library allocates once and keeps is not lost. */
static void make_what_is_kept(void)
{
    struct output output;
    blank(&output);
    run_load_file(&(struct call){.path = "/nonexistent"}, &output);
}

/* If another allocator were in use, the suite would see nothing and pass. */
static void the_allocator_is_ours(void **state)
{
    (void)state;
    void *volatile block;
    faults_begin(2, FAULTS_ONE);
    block = malloc(1);
    assert_non_null(block);
    free(block);
    block = malloc(1);
    assert_null(block);
    block = calloc(1, 1);
    assert_non_null(block);
    free(block);
    assert_int_equal(faults_end(), 3);
    faults_begin(1, FAULTS_ALL);
    FILE *file = fopen("/dev/null", "r"); /* from the C library */
    assert_true(faults_end() > 0);
    assert_null(file);
}

static const struct CMUnitTest OTHERS[] = {
    cmocka_unit_test(the_allocator_is_ours),
    cmocka_unit_test_prestate(every_failure_is_reported, (void *)(uintptr_t)&POLICY_NEW),
    cmocka_unit_test_prestate(every_failure_is_reported, (void *)(uintptr_t)&POOL_NEW),
    cmocka_unit_test(every_failure_with_many_keys_is_reported),
    cmocka_unit_test(every_failure_in_deep_nesting_is_reported),
    cmocka_unit_test(every_failure_in_a_file_is_reported),
    cmocka_unit_test(files_that_cannot_be_read),
    cmocka_unit_test(the_error_may_be_null),
    cmocka_unit_test(other_functions_need_no_memory),
    cmocka_unit_test(no_function_is_forgotten),
};

/* Each document is a test. Its name is its first line, or its name in the vectors. */
static struct CMUnitTest *add_documents(struct CMUnitTest *test)
{
    for (size_t i = 0; i < COUNT(DOCUMENTS); i++) {
        *test++ = (struct CMUnitTest){
            .name = DOCUMENTS[i][0] != '\0' ? DOCUMENTS[i] : "(empty)",
            .test_func = every_failure_in_a_document_is_reported,
            .initial_state = (void *)(uintptr_t)DOCUMENTS[i],
        };
    }
    for (size_t i = 0; i < vectors_count(&vectors); i++) {
        yaml_node_t *vector = vectors_case(&vectors, i);
        *test++ = (struct CMUnitTest){
            .name = vector_text(vector_get(&vectors, vector, "name")),
            .test_func = every_failure_in_a_vector_is_reported,
            .initial_state = vector,
        };
    }
    return test;
}

int main(void)
{
    vectors_load(&vectors, "config.yaml");
    size_t count = COUNT(OTHERS) + COUNT(DOCUMENTS) + vectors_count(&vectors);
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    memcpy(tests, OTHERS, sizeof OTHERS);
    add_documents(tests + COUNT(OTHERS));
    make_what_is_kept();
    int failed = _cmocka_run_group_tests("allocations", tests, count, NULL, NULL);
    free(tests);
    yaml_document_delete(&vectors);
    return failed;
}
