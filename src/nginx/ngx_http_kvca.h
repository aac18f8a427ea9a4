/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nginx module, between its files. The folder is for what nginx asks of a host of the library: it includes the
 * public headers and nginx's, and none of the library's own.
 *
 *     module.c      what nginx calls, and when
 *     directives.c  the configuration: what lines are accepted, what they mean
 *     upstream.c    an upstream's servers become ranks of its zone
 *     zone.c        the shared memory of a zone, its lock, and what a reload changes in it
 *     owners.c      which process has booked what, and who gives it back when it dies
 *     demand.c      how many tokens a request takes, and so how many KV blocks
 *     request.c     what is kept for a request, and the end of its booking
 *     peer.c        a request gets a rank, and gives it back
 *     reject.c      the answer to a request that no rank has room for
 *     growth.c      bookings that grow with streamed output
 *     variables.c   $kvca_rank, $kvca_outcome, $kvca_booked
 *     status.c      the location that shows ledgers and takes capacities
 *     report.c      what it shows, as JSON and for Prometheus
 *
 * docs/nginx.md tells what all this does for an operator.
 */
#ifndef NGX_HTTP_KVCA_H
#define NGX_HTTP_KVCA_H

/* nginx compiles its headers with fewer warnings than we use. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#pragma GCC diagnostic pop

#include <kvca/config.h>
#include <kvca/kvca.h>
#include <kvca/pool.h>

/* A configured rank of a zone. */
typedef struct {
    ngx_str_t address;        /* as nginx writes it, "10.0.0.1:8000"; it identifies the rank */
    uint64_t total_kv_blocks; /* from kvca_rank; 0: not given */
    bool in_pool;             /* if the pool had room for it; then: */
    uint32_t slot;
    uint32_t generation;
} ngx_http_kvca_rank_t;

/* A rank in shared memory. Its index is its worker_id in the pool. */
typedef struct {
    uint64_t configured_blocks;
    uint64_t reported_blocks; /* posted to the status location; 0: none */
    bool in_config;           /* if not, it drains or is gone */
    bool warned;              /* about its unknown capacity */
    size_t length;
    u_char address[NGX_SOCKADDR_STRLEN];
} ngx_http_kvca_entry_t;

/*
 * A zone: the ranks of one or more upstreams, and the pool with their bookings. Each process has its own copy of this
 * struct, made when the process began. What `entries` and `pool` point to is shared.
 */
typedef struct {
    ngx_str_t name;
    ngx_uint_t block_size; /* tokens in a block */
    ngx_cycle_t *cycle;
    ngx_array_t ranks; /* ngx_http_kvca_rank_t */
    kvca_params params;
    ngx_str_t *params_from; /* the upstream that the policy comes from; NULL: none yet */
    ngx_slab_pool_t *slab;  /* its mutex locks what is shared; nginx unlocks it if the holder dies */
    ngx_http_kvca_entry_t *entries;
    kvca_pool *pool;
    kvca_owner owner; /* this process in the pool; 0: none */
} ngx_http_kvca_zone_t;

typedef struct {
    ngx_array_t zones; /* ngx_http_kvca_zone_t *, in the order of their lines */
} ngx_http_kvca_main_conf_t;

/* The place of a line that can be checked only after all lines are read. */
typedef struct {
    ngx_str_t file;
    ngx_uint_t line;
} ngx_http_kvca_place_t;

/* A kvca_rank line. */
typedef struct {
    ngx_http_kvca_place_t place;
    ngx_url_t url;
    uint64_t total_kv_blocks;
} ngx_http_kvca_capacity_t;

/* An upstream that `kvca` balances. */
typedef struct {
    bool enabled;
    ngx_http_kvca_place_t place;
    ngx_str_t zone_name;
    ngx_http_kvca_zone_t *zone;
    kvca_params params;
    bool reject; /* overflow=reject; then: */
    ngx_int_t status;
    time_t retry_after;
    ngx_http_complex_value_t *prompt_tokens; /* NULL: only the length of the body counts */
    ngx_http_complex_value_t *output_tokens; /* NULL: no output is booked ahead */
    uint64_t bytes_per_token;
    uint64_t max_tokens;
    bool tokens_given;
    bool output_given;
    bool grows;
    ngx_array_t capacities; /* ngx_http_kvca_capacity_t */
    ngx_uint_t peers;
    ngx_uint_t *rank_of_peer; /* by the peer's place in nginx's list: its index in zone->ranks */
} ngx_http_kvca_srv_conf_t;

/* What became of the last try of a request. */
typedef enum {
    NGX_HTTP_KVCA_UNTRIED = 0,
    NGX_HTTP_KVCA_FIT,
    NGX_HTTP_KVCA_FALLBACK,
    NGX_HTTP_KVCA_NONE_FITS,
    NGX_HTTP_KVCA_NONE_ELIGIBLE,
    NGX_HTTP_KVCA_UNBOOKED
} ngx_http_kvca_outcome_t;

/* The state of a stream of server-sent events: the current line, and the events before it. */
typedef struct {
    enum { NGX_HTTP_KVCA_LINE_EMPTY, NGX_HTTP_KVCA_LINE_CR, NGX_HTTP_KVCA_LINE_DATA, NGX_HTTP_KVCA_LINE_OTHER } line;
    bool has_data;
    uint64_t events;
} ngx_http_kvca_stream_t;

/* A request that goes through one of our upstreams. */
typedef struct {
    ngx_http_upstream_rr_peer_data_t rrp; /* first: nginx's round robin takes this struct for its own */
    ngx_http_request_t *request;
    ngx_http_kvca_srv_conf_t *conf;
    uint64_t tokens; /* of the prompt */
    uint64_t blocks; /* what one try books */
    uint64_t *eligible;
    kvca_booking booking; /* all zero if there is none */
    ngx_http_kvca_stream_t stream;
    ngx_http_kvca_outcome_t outcome; /* of the last try, even if it has ended: */
    ngx_str_t rank;
    uint64_t booked;
} ngx_http_kvca_request_t;

extern ngx_module_t ngx_http_kvca_module;

static inline bool ngx_http_kvca_same(const ngx_str_t *a, const ngx_str_t *b)
{
    return a->len == b->len && ngx_strncmp(a->data, b->data, a->len) == 0;
}

/* directives.c */
extern ngx_command_t ngx_http_kvca_commands[];

/* upstream.c */
ngx_int_t ngx_http_kvca_init_upstream(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us);
/* Checks that `kvca` still balances each of its upstreams. */
ngx_int_t ngx_http_kvca_check_upstreams(ngx_conf_t *cf);

/* zone.c */
void ngx_http_kvca_lock(ngx_http_kvca_zone_t *zone);
void ngx_http_kvca_unlock(ngx_http_kvca_zone_t *zone);
ngx_int_t ngx_http_kvca_init_zone(ngx_shm_zone_t *shm, void *data);
void ngx_http_kvca_reload_zone(ngx_http_kvca_zone_t *zone, ngx_log_t *log);
/* Sets the capacity that a rank reports, in blocks of the zone. Returns false if the zone has no such rank. */
bool ngx_http_kvca_report(ngx_http_kvca_zone_t *zone, const ngx_str_t *address, uint64_t blocks);

/* owners.c */
/* Makes this process an owner in the zone's pool if it is not one yet. Returns false if there is no room. */
bool ngx_http_kvca_own(ngx_http_kvca_zone_t *zone);
void ngx_http_kvca_disown(ngx_http_kvca_zone_t *zone);
void ngx_http_kvca_void_dead_owners(ngx_http_kvca_zone_t *zone, ngx_log_t *log);

/* demand.c */
/* Reads a string of digits, at most 2^63-1. */
bool ngx_http_kvca_number(const ngx_str_t *text, uint64_t *number);
/* The KV blocks for this many tokens, after the limit that the configuration sets. */
uint64_t ngx_http_kvca_blocks(const ngx_http_kvca_srv_conf_t *conf, uint64_t tokens);
ngx_int_t ngx_http_kvca_estimate(ngx_http_request_t *r, ngx_http_kvca_request_t *request);

/* request.c */
/* From here on it is found, and nothing stays booked when it ends. */
ngx_int_t ngx_http_kvca_keep_request(ngx_http_request_t *r, ngx_http_kvca_request_t *request);
/* NULL for a request that did not go through an upstream of ours. */
ngx_http_kvca_request_t *ngx_http_kvca_request_of(ngx_http_request_t *r);
/* Ends its booking, if it has one. */
void ngx_http_kvca_release(ngx_http_kvca_request_t *request);

/* peer.c */
ngx_int_t ngx_http_kvca_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us);
ngx_int_t ngx_http_kvca_get_peer(ngx_peer_connection_t *pc, void *data);
void ngx_http_kvca_free_peer(ngx_peer_connection_t *pc, void *data, ngx_uint_t state);

/* reject.c */
ngx_int_t ngx_http_kvca_reject(ngx_http_kvca_request_t *request);
void ngx_http_kvca_init_reject(void);

/* growth.c */
void ngx_http_kvca_init_growth(void);

/* variables.c */
ngx_int_t ngx_http_kvca_add_variables(ngx_conf_t *cf);

/* status.c */
ngx_int_t ngx_http_kvca_show_json(ngx_http_request_t *r);
ngx_int_t ngx_http_kvca_show_prometheus(ngx_http_request_t *r);

/* report.c; NULL if memory runs out */
ngx_buf_t *ngx_http_kvca_report_json(ngx_http_request_t *r, const ngx_array_t *zones);
ngx_buf_t *ngx_http_kvca_report_prometheus(ngx_http_request_t *r, const ngx_array_t *zones);

#endif
