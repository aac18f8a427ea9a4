/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as a policy file, read for each of the four pools. */
#include "message.h"

#define NAME "policy.yaml"
#define ROLES 4

struct load {
    kvca_status status;
    kvca_params params;
    kvca_error error;
};

/* Values that no file gives. */
static const kvca_params UNTOUCHED = {sizeof(kvca_params), -1.0, -2.0, 77, true};

static struct load load(const char *text, size_t size, kvca_role role)
{
    struct load load = {.params = UNTOUCHED};
    message_spoil(&load.error);
    load.status = kvca_config_load_buffer(text, size, NAME, role, &load.params, &load.error);
    return load;
}

static bool are_equal(const kvca_params *a, const kvca_params *b)
{
    return a->capacity_fraction == b->capacity_fraction && a->count_priority == b->count_priority &&
           a->decode_active_request_weight == b->decode_active_request_weight &&
           a->capacity_blocks == b->capacity_blocks;
}

static void check_load(const struct load *load, const char *text, size_t size)
{
    switch (load->status) {
    case KVCA_OK:
        assert_int_equal(kvca_params_validate(&load->params), KVCA_OK);
        return;
    case KVCA_NOT_SELECTED:
    case KVCA_ERR_TOO_LARGE:
    case KVCA_ERR_YAML:
    case KVCA_ERR_CONFIG:
        assert_true(are_equal(&load->params, &UNTOUCHED));
        message_check(&load->error, load->status, NAME, text, size);
        return;
    default:
        fail_msg("a document gives status %d: %s", (int)load->status, kvca_strerror(load->status));
    }
}

static void check_equal(const struct load *a, const struct load *b)
{
    assert_int_equal(a->status, b->status);
    assert_true(are_equal(&a->params, &b->params));
    if (a->status != KVCA_OK) {
        assert_string_equal(a->error.message, b->error.message);
    }
}

/* Parameters alone apply to every pool. A backslash can hide a key. */
static bool is_for_every_pool(const char *text, size_t size)
{
    static const char section[] = "worker_selection";
    for (size_t i = 0; i < size; i++) {
        bool begins = size - i >= strlen(section) && memcmp(text + i, section, strlen(section)) == 0;
        if (begins || text[i] == '\\') {
            return false;
        }
    }
    return true;
}

/* Whether a document is sound does not depend on the pool. */
static bool is_sound(kvca_status status)
{
    return status == KVCA_OK || status == KVCA_NOT_SELECTED;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    bool for_every_pool = is_for_every_pool(text, size);
    struct load first = load(text, size, KVCA_ROLE_DECODE);
    for (int role = 0; role < ROLES; role++) {
        struct load other = load(text, size, (kvca_role)role);
        check_load(&other, text, size);
        assert_int_equal(is_sound(other.status), is_sound(first.status));
        if (role == KVCA_ROLE_DECODE || for_every_pool || !is_sound(first.status)) {
            check_equal(&other, &first);
        }
        assert_int_equal(kvca_config_load_buffer(text, size, NAME, (kvca_role)role, &other.params, NULL),
                         other.status);
    }
    return 0;
}
