/* SPDX-License-Identifier: Apache-2.0 */
/* Which configuration lines are accepted, and what they mean. */
#include "ngx_http_kvca.h"

#define DEFAULT_BLOCK_SIZE 16 /* vLLM's default */
#define DEFAULT_RETRY_AFTER 1

#define ACCEPTED_ROLES "accepted are role=decode, prefill, aggregated and encode"

/* If the argument is NAME=VALUE and `name` is its NAME=, sets `value`. */
static bool is_option(const ngx_str_t *argument, const char *name, ngx_str_t *value)
{
    size_t length = ngx_strlen(name);
    if (argument->len < length || ngx_strncmp(argument->data, name, length) != 0) {
        return false;
    }
    *value = (ngx_str_t){.len = argument->len - length, .data = argument->data + length};
    return true;
}

static char *refuse(ngx_conf_t *cf, const ngx_str_t *argument, const char *accepted)
{
    const ngx_str_t *words = cf->args->elts;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\" of \"%V\": %s", argument, &words[0], accepted);
    return NGX_CONF_ERROR;
}

/* The length of the NAME= of an option; 0 for other arguments. */
static size_t name_length(const ngx_str_t *argument)
{
    size_t length = 0;
    while (length < argument->len &&
           (argument->data[length] == '_' || (argument->data[length] >= 'a' && argument->data[length] <= 'z'))) {
        length++;
    }
    return length > 0 && length < argument->len && argument->data[length] == '=' ? length + 1 : 0;
}

/* Refuses an option that is given twice, from argument `first` on: one of the two would have no effect. */
static char *refuse_repeated(ngx_conf_t *cf, ngx_uint_t first)
{
    const ngx_str_t *words = cf->args->elts;
    for (ngx_uint_t i = first; i < cf->args->nelts; i++) {
        size_t length = name_length(&words[i]);
        for (ngx_uint_t j = first; j < i && length > 0; j++) {
            if (name_length(&words[j]) == length && ngx_strncmp(words[i].data, words[j].data, length) == 0) {
                return refuse(cf, &words[i], "it is given twice");
            }
        }
    }
    return NGX_CONF_OK;
}

static char *number(ngx_conf_t *cf, const ngx_str_t *argument, const ngx_str_t *value, uint64_t least, uint64_t most,
                    uint64_t *result)
{
    if (ngx_http_kvca_number(value, result) && *result >= least && *result <= most) {
        return NGX_CONF_OK;
    }
    u_char accepted[96];
    u_char *end = most == NGX_MAX_OFF_T_VALUE
                      ? ngx_slprintf(accepted, accepted + sizeof accepted - 1, "accepted is a number from %uL", least)
                      : ngx_slprintf(accepted, accepted + sizeof accepted - 1, "accepted is a number from %uL to %uL",
                                     least, most);
    *end = '\0';
    return refuse(cf, argument, (const char *)accepted);
}

static ngx_http_kvca_place_t place_of(ngx_conf_t *cf)
{
    return (ngx_http_kvca_place_t){.file = cf->conf_file->file.name, .line = cf->conf_file->line};
}

static char *set_zone_options(ngx_conf_t *cf, ngx_http_kvca_zone_t *zone)
{
    const ngx_str_t *words = cf->args->elts;
    zone->block_size = DEFAULT_BLOCK_SIZE;
    for (ngx_uint_t i = 3; i < cf->args->nelts; i++) {
        ngx_str_t value;
        uint64_t size;
        if (!is_option(&words[i], "block_size=", &value)) {
            return refuse(cf, &words[i], "accepted is block_size=TOKENS");
        }
        if (number(cf, &words[i], &value, 1, UINT32_MAX, &size) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
        zone->block_size = (ngx_uint_t)size;
    }
    return NGX_CONF_OK;
}

/* kvca_zone NAME SIZE [block_size=TOKENS] */
static char *set_zone(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    ngx_http_kvca_main_conf_t *main_conf = conf;
    ngx_str_t *words = cf->args->elts;
    ssize_t size = ngx_parse_size(&words[2]);
    if (words[1].len == 0) {
        return refuse(cf, &words[1], "accepted is a name");
    }
    if (size == NGX_ERROR || size < (ssize_t)(8 * ngx_pagesize)) {
        return refuse(cf, &words[2], "accepted is a size from 32k, such as 1m");
    }
    ngx_http_kvca_zone_t *zone = ngx_pcalloc(cf->pool, sizeof *zone);
    ngx_http_kvca_zone_t **entry = ngx_array_push(&main_conf->zones);
    ngx_shm_zone_t *shm = ngx_shared_memory_add(cf, &words[1], (size_t)size, &ngx_http_kvca_module);
    if (!zone || !entry || !shm ||
        ngx_array_init(&zone->ranks, cf->pool, 8, sizeof(ngx_http_kvca_rank_t)) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    if (shm->data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate zone \"%V\"", &words[1]);
        return NGX_CONF_ERROR;
    }
    zone->name = words[1];
    zone->cycle = cf->cycle;
    zone->params = (kvca_params)KVCA_PARAMS_DEFAULT;
    *entry = zone;
    shm->init = ngx_http_kvca_init_zone;
    shm->data = zone;
    return set_zone_options(cf, zone);
}

static char *load_policy(ngx_conf_t *cf, const ngx_str_t *file, const ngx_str_t *role_name, kvca_params *params)
{
    kvca_role role = KVCA_ROLE_DECODE;
    kvca_error error = {.size = sizeof error};
    ngx_str_t path = *file;
    if (role_name->len > 0 && kvca_role_parse((const char *)role_name->data, &role) != KVCA_OK) {
        return refuse(cf, role_name, ACCEPTED_ROLES);
    }
    if (file->len == 0) {
        return NGX_CONF_OK;
    }
    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    if (kvca_config_load_file((const char *)path.data, role, params, &error) != KVCA_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", error.message);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static char *set_overflow(ngx_conf_t *cf, const ngx_str_t *argument, const ngx_str_t *value,
                          ngx_http_kvca_srv_conf_t *upstream)
{
    upstream->reject = ngx_strcmp(value->data, "reject") == 0;
    if (!upstream->reject && ngx_strcmp(value->data, "place") != 0) {
        return refuse(cf, argument, "accepted are overflow=place and overflow=reject");
    }
    return NGX_CONF_OK;
}

/* Refuses the codes to which nginx gives a meaning of its own: it closes the connection, or answers 400. */
static char *set_status(ngx_conf_t *cf, const ngx_str_t *argument, const ngx_str_t *value,
                        ngx_http_kvca_srv_conf_t *upstream)
{
    uint64_t status;
    if (number(cf, argument, value, 400, 599, &status) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    if (status == NGX_HTTP_REQUEST_TIME_OUT || status == NGX_HTTP_CLOSE ||
        (status >= NGX_HTTP_NGINX_CODES && status <= NGX_HTTP_CLIENT_CLOSED_REQUEST)) {
        return refuse(cf, argument, "nginx does not answer with 408, 444 and 494 to 499");
    }
    upstream->status = (ngx_int_t)status;
    return NGX_CONF_OK;
}

/* Reads one option of `kvca`. `of_reject` is the last option that needs overflow=reject. */
static char *set_upstream_option(ngx_conf_t *cf, const ngx_str_t *argument, ngx_http_kvca_srv_conf_t *upstream,
                                 ngx_str_t *policy, ngx_str_t *role, const ngx_str_t **of_reject)
{
    ngx_str_t value;
    uint64_t number_given = 0;
    if (is_option(argument, "zone=", &upstream->zone_name)) {
        return NGX_CONF_OK;
    }
    if (is_option(argument, "policy=", policy)) {
        return policy->len > 0 ? NGX_CONF_OK : refuse(cf, argument, "accepted is policy=FILE");
    }
    if (is_option(argument, "role=", role)) {
        return role->len > 0 ? NGX_CONF_OK : refuse(cf, argument, ACCEPTED_ROLES);
    }
    if (is_option(argument, "overflow=", &value)) {
        return set_overflow(cf, argument, &value, upstream);
    }
    if (is_option(argument, "status=", &value)) {
        *of_reject = argument;
        return set_status(cf, argument, &value, upstream);
    }
    if (is_option(argument, "retry_after=", &value)) {
        *of_reject = argument;
        char *result = number(cf, argument, &value, 0, INT32_MAX, &number_given);
        upstream->retry_after = (time_t)number_given;
        return result;
    }
    return refuse(cf, argument, "accepted are zone=, policy=, role=, overflow=, status= and retry_after=");
}

static char *set_upstream_options(ngx_conf_t *cf, ngx_http_kvca_srv_conf_t *upstream)
{
    const ngx_str_t *words = cf->args->elts;
    const ngx_str_t *of_reject = NULL;
    ngx_str_t policy = ngx_null_string;
    ngx_str_t role = ngx_null_string;
    upstream->status = NGX_HTTP_SERVICE_UNAVAILABLE;
    upstream->retry_after = DEFAULT_RETRY_AFTER;
    upstream->params = (kvca_params)KVCA_PARAMS_DEFAULT;
    if (refuse_repeated(cf, 1) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        if (set_upstream_option(cf, &words[i], upstream, &policy, &role, &of_reject) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
    }
    if (upstream->zone_name.len == 0) {
        return "needs zone=NAME, of a \"kvca_zone\"";
    }
    if (of_reject && !upstream->reject) {
        return refuse(cf, of_reject, "it has no effect without overflow=reject");
    }
    return load_policy(cf, &policy, &role, &upstream->params);
}

/* kvca zone=NAME [policy=FILE] [role=ROLE] [overflow=place|reject] [status=CODE] [retry_after=SECONDS] */
static char *set_upstream(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    ngx_http_kvca_srv_conf_t *upstream = conf;
    ngx_http_upstream_srv_conf_t *us = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);
    if (upstream->enabled) {
        return "is duplicate";
    }
    if (us->peer.init_upstream) {
        return "must stand before \"keepalive\", and without another balancing method";
    }
    us->peer.init_upstream = ngx_http_kvca_init_upstream;
    /* Without NGX_HTTP_UPSTREAM_WEIGHT and _BACKUP nginx refuses these parameters of later servers. */
    us->flags = NGX_HTTP_UPSTREAM_CREATE | NGX_HTTP_UPSTREAM_MAX_CONNS | NGX_HTTP_UPSTREAM_MAX_FAILS |
                NGX_HTTP_UPSTREAM_FAIL_TIMEOUT | NGX_HTTP_UPSTREAM_DOWN;
    upstream->enabled = true;
    upstream->place = place_of(cf);
    return set_upstream_options(cf, upstream);
}

static char *compile_value(ngx_conf_t *cf, ngx_str_t *text, ngx_http_complex_value_t **value)
{
    if (*value) {
        return refuse(cf, text, "one value is accepted");
    }
    *value = ngx_pcalloc(cf->pool, sizeof **value);
    ngx_http_compile_complex_value_t compilation = {.cf = cf, .value = text, .complex_value = *value};
    if (!*value || ngx_http_compile_complex_value(&compilation) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static char needs_kvca[] = "needs \"kvca zone=NAME\" above it in the same upstream";

/* Begins a line that may stand once, below `kvca`. */
static char *begin_line(ngx_conf_t *cf, const ngx_http_kvca_srv_conf_t *upstream, bool *given)
{
    if (!upstream->enabled) {
        return needs_kvca;
    }
    if (*given) {
        return "is duplicate";
    }
    *given = true;
    return refuse_repeated(cf, 1);
}

/* kvca_tokens [VALUE] [bytes_per_token=BYTES] [max=TOKENS] */
static char *set_tokens(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    ngx_http_kvca_srv_conf_t *upstream = conf;
    ngx_str_t *words = cf->args->elts;
    char *result = begin_line(cf, upstream, &upstream->tokens_given);
    if (result != NGX_CONF_OK) {
        return result;
    }
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        ngx_str_t value;
        if (is_option(&words[i], "bytes_per_token=", &value)) {
            result = number(cf, &words[i], &value, 1, UINT32_MAX, &upstream->bytes_per_token);
        } else if (is_option(&words[i], "max=", &value)) {
            result = number(cf, &words[i], &value, 1, NGX_MAX_OFF_T_VALUE, &upstream->max_tokens);
        } else {
            result = compile_value(cf, &words[i], &upstream->prompt_tokens);
        }
        if (result != NGX_CONF_OK) {
            return result;
        }
    }
    return NGX_CONF_OK;
}

/* kvca_output [VALUE] [growth=sse] */
static char *set_output(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    ngx_http_kvca_srv_conf_t *upstream = conf;
    ngx_str_t *words = cf->args->elts;
    char *result = begin_line(cf, upstream, &upstream->output_given);
    if (result != NGX_CONF_OK) {
        return result;
    }
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        ngx_str_t value;
        if (!is_option(&words[i], "growth=", &value)) {
            result = compile_value(cf, &words[i], &upstream->output_tokens);
            if (result != NGX_CONF_OK) {
                return result;
            }
            continue;
        }
        if (ngx_strcmp(value.data, "sse") != 0) {
            return refuse(cf, &words[i], "accepted is growth=sse");
        }
        upstream->grows = true;
    }
    return NGX_CONF_OK;
}

/* kvca_rank ADDRESS total_kv_blocks=BLOCKS */
static char *set_rank(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    ngx_http_kvca_srv_conf_t *upstream = conf;
    ngx_str_t *words = cf->args->elts;
    ngx_str_t value;
    if (!upstream->enabled) {
        return needs_kvca;
    }
    ngx_http_kvca_capacity_t *capacity = ngx_array_push(&upstream->capacities);
    if (!capacity) {
        return NGX_CONF_ERROR;
    }
    *capacity = (ngx_http_kvca_capacity_t){.place = place_of(cf)};
    capacity->url.url = words[1];
    capacity->url.default_port = 80; /* as for "server" */
    if (ngx_parse_url(cf->pool, &capacity->url) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in rank \"%V\"",
                           capacity->url.err ? capacity->url.err : "no address", &words[1]);
        return NGX_CONF_ERROR;
    }
    if (!is_option(&words[2], "total_kv_blocks=", &value)) {
        return refuse(cf, &words[2], "accepted is total_kv_blocks=BLOCKS");
    }
    return number(cf, &words[2], &value, 1, NGX_MAX_OFF_T_VALUE, &capacity->total_kv_blocks);
}

/* kvca_status json|prometheus */
static char *set_status_location(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    (void)conf;
    const ngx_str_t *words = cf->args->elts;
    ngx_http_core_loc_conf_t *location = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    if (ngx_strcmp(words[1].data, "json") == 0) {
        location->handler = ngx_http_kvca_show_json;
    } else if (ngx_strcmp(words[1].data, "prometheus") == 0) {
        location->handler = ngx_http_kvca_show_prometheus;
    } else {
        return refuse(cf, &words[1], "accepted are json and prometheus");
    }
    return NGX_CONF_OK;
}

ngx_command_t ngx_http_kvca_commands[] = {
    {ngx_string("kvca_zone"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE23, set_zone, NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("kvca"), NGX_HTTP_UPS_CONF | NGX_CONF_1MORE, set_upstream, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL},
    {ngx_string("kvca_tokens"), NGX_HTTP_UPS_CONF | NGX_CONF_TAKE123, set_tokens, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL},
    {ngx_string("kvca_output"), NGX_HTTP_UPS_CONF | NGX_CONF_TAKE12, set_output, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL},
    {ngx_string("kvca_rank"), NGX_HTTP_UPS_CONF | NGX_CONF_TAKE2, set_rank, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL},
    {ngx_string("kvca_status"), NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1, set_status_location, NGX_HTTP_LOC_CONF_OFFSET, 0,
     NULL},
    ngx_null_command,
};
