/* SPDX-License-Identifier: Apache-2.0 */
/* What the status location shows. A ledger is copied under its lock and written outside it. */
#include "ngx_http_kvca.h"

#include <stdio.h>

/* The most text that a rank and a zone need besides their names, in either format. */
#define RANK_TEXT 512
#define ZONE_TEXT 2048

/* A copy of a zone. */
typedef struct {
    const ngx_http_kvca_zone_t *zone;
    kvca_snapshot snapshot;
    ngx_http_kvca_entry_t *entries; /* by row */
} ledger_t;

typedef struct {
    ngx_uint_t count;
    ledger_t *ledgers;
    size_t text; /* the most text that they need */
} picture_t;

static size_t escaped_length(const u_char *text, size_t length)
{
    return length + ngx_escape_json(NULL, (u_char *)text, length);
}

static bool copy(ngx_http_request_t *r, ngx_http_kvca_zone_t *zone, ledger_t *ledger)
{
    size_t ranks = kvca_pool_max_ranks(zone->pool);
    size_t bytes = kvca_pool_snapshot_bytes(zone->pool);
    void *buffer = ngx_palloc(r->pool, bytes);
    ledger->zone = zone;
    ledger->snapshot.size = sizeof ledger->snapshot;
    ledger->entries = ngx_palloc(r->pool, ranks * sizeof *ledger->entries);
    if (!buffer || !ledger->entries) {
        return false;
    }
    ngx_http_kvca_lock(zone);
    kvca_status status = kvca_pool_snapshot(zone->pool, buffer, bytes, &ledger->snapshot);
    for (size_t row = 0; status == KVCA_OK && row < ledger->snapshot.count; row++) {
        ledger->entries[row] = zone->entries[ledger->snapshot.ranks->worker_id[row]];
    }
    ngx_http_kvca_unlock(zone);
    return status == KVCA_OK;
}

static bool copy_all(ngx_http_request_t *r, const ngx_array_t *zones, picture_t *picture)
{
    ngx_http_kvca_zone_t **zone = zones->elts;
    picture->count = zones->nelts;
    picture->ledgers = ngx_pcalloc(r->pool, (zones->nelts + 1) * sizeof *picture->ledgers);
    picture->text = ZONE_TEXT;
    for (ngx_uint_t i = 0; picture->ledgers && i < zones->nelts; i++) {
        ledger_t *ledger = &picture->ledgers[i];
        if (!copy(r, zone[i], ledger)) {
            return false;
        }
        size_t name = escaped_length(zone[i]->name.data, zone[i]->name.len);
        picture->text += ZONE_TEXT + 8 * name;
        for (size_t row = 0; row < ledger->snapshot.count; row++) {
            const ngx_http_kvca_entry_t *entry = &ledger->entries[row];
            picture->text += RANK_TEXT + 3 * (escaped_length(entry->address, entry->length) + name);
        }
    }
    return picture->ledgers != NULL;
}

/* The capacity of a rank as the rule sees it; 0 if unknown. */
static uint64_t capacity_of(const ledger_t *ledger, size_t row)
{
    uint64_t reported = ledger->snapshot.ranks->total_kv_blocks[row];
    return reported != 0 ? reported : ledger->snapshot.params->capacity_blocks;
}

static u_char *put(u_char *to, const char *text)
{
    return ngx_cpymem(to, text, ngx_strlen(text));
}

static u_char *put_escaped(u_char *to, const u_char *text, size_t length)
{
    return (u_char *)ngx_escape_json(to, (u_char *)text, length);
}

static u_char *put_count(u_char *to, const char *name, uint64_t value)
{
    return ngx_sprintf(put(to, name), "%uL", value);
}

static u_char *put_optional(u_char *to, const char *name, uint64_t value)
{
    return value != 0 ? put_count(to, name, value) : put(put(to, name), "null");
}

/* Writes the shortest form that reads back as the same number. nginx's own formats cannot do this. */
static u_char *put_double(u_char *to, const char *name, double value)
{
    char text[32];
    int digits = 1;
    do {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
    } while (strtod(text, NULL) != value && ++digits <= 17);
    return put(put(to, name), text);
}

static u_char *put_rank_json(u_char *to, const ledger_t *ledger, size_t row)
{
    const kvca_ranks *ranks = ledger->snapshot.ranks;
    const ngx_http_kvca_entry_t *entry = &ledger->entries[row];
    to = put(to, row > 0 ? ",\n{\"rank\":\"" : "\n{\"rank\":\"");
    to = put_escaped(to, entry->address, entry->length);
    to = put(to, row < ranks->count ? "\",\"state\":\"active\"" : "\",\"state\":\"draining\"");
    to = put_count(to, ",\"decode_cost_blocks\":", ranks->decode_cost_blocks[row]);
    to = put_count(to, ",\"active_requests\":", ranks->active_requests[row]);
    to = put_optional(to, ",\"total_kv_blocks\":", capacity_of(ledger, row));
    return put(to, entry->reported_blocks != 0 ? ",\"reported\":true}" : ",\"reported\":false}");
}

static u_char *put_params_json(u_char *to, const kvca_params *params)
{
    if (params->capacity_fraction == KVCA_NO_CAPACITY_FILTER) {
        to = put(to, ",\"capacity_fraction\":null");
    } else {
        to = put_double(to, ",\"capacity_fraction\":", params->capacity_fraction);
    }
    to = put(to, params->count_priority ? ",\"count_priority\":true" : ",\"count_priority\":false");
    to = put_double(to, ",\"decode_active_request_weight\":", params->decode_active_request_weight);
    return put_optional(to, ",\"capacity_blocks\":", params->capacity_blocks);
}

static u_char *put_zone_json(u_char *to, const ledger_t *ledger)
{
    const ngx_http_kvca_zone_t *zone = ledger->zone;
    const kvca_counters *counters = ledger->snapshot.counters;
    to = put_escaped(put(to, "{\"name\":\""), zone->name.data, zone->name.len);
    to = put_count(to, "\",\"block_size\":", zone->block_size);
    to = put_count(to, ",\"max_ranks\":", kvca_pool_max_ranks(zone->pool));
    to = put_params_json(to, ledger->snapshot.params);
    to = put_count(to, ",\n\"counters\":{\"placed\":", counters->placed);
    to = put_count(to, ",\"fallbacks\":", counters->fallbacks);
    to = put_count(to, ",\"none\":", counters->none);
    to = put_count(to, ",\"stale\":", counters->stale);
    to = put_count(to, ",\"voided\":", counters->voided);
    to = put(to, "},\n\"ranks\":[");
    for (size_t row = 0; row < ledger->snapshot.count; row++) {
        to = put_rank_json(to, ledger, row);
    }
    return put(to, "]}");
}

ngx_buf_t *ngx_http_kvca_report_json(ngx_http_request_t *r, const ngx_array_t *zones)
{
    picture_t picture;
    ngx_buf_t *body = copy_all(r, zones, &picture) ? ngx_create_temp_buf(r->pool, picture.text) : NULL;
    if (!body) {
        return NULL;
    }
    body->last = put(put(put(body->last, "{\"version\":\""), kvca_version()), "\",\n\"zones\":[");
    for (ngx_uint_t i = 0; i < picture.count; i++) {
        body->last = put_zone_json(put(body->last, i > 0 ? ",\n" : "\n"), &picture.ledgers[i]);
    }
    body->last = put(body->last, "]}\n");
    return body;
}

/* A metric of ranks: its name, its meaning, and its value in a row if there is one. */
typedef struct {
    const char *name;
    const char *help;
    bool (*value)(const ledger_t *ledger, size_t row, uint64_t *value);
} rank_metric_t;

static bool decode_cost_blocks(const ledger_t *ledger, size_t row, uint64_t *value)
{
    *value = ledger->snapshot.ranks->decode_cost_blocks[row];
    return true;
}

static bool active_requests(const ledger_t *ledger, size_t row, uint64_t *value)
{
    *value = ledger->snapshot.ranks->active_requests[row];
    return true;
}

static bool total_kv_blocks(const ledger_t *ledger, size_t row, uint64_t *value)
{
    *value = capacity_of(ledger, row);
    return *value != 0;
}

static const rank_metric_t rank_metrics[] = {
    {"kvca_decode_cost_blocks", "KV blocks booked on the rank.", decode_cost_blocks},
    {"kvca_active_requests", "Requests booked on the rank.", active_requests},
    {"kvca_total_kv_blocks", "Capacity of the rank in KV blocks, if known.", total_kv_blocks},
};

/* A counter of zones: its offset in kvca_counters. */
typedef struct {
    const char *name;
    const char *help;
    size_t offset;
} zone_metric_t;

static const zone_metric_t zone_metrics[] = {
    {"kvca_placed_total", "Tries booked on a rank.", offsetof(kvca_counters, placed)},
    {"kvca_fallbacks_total", "Tries booked on a rank that they did not fit.", offsetof(kvca_counters, fallbacks)},
    {"kvca_none_total", "Tries that got no rank.", offsetof(kvca_counters, none)},
    {"kvca_stale_total", "Releases of what was given back before.", offsetof(kvca_counters, stale)},
    {"kvca_voided_total", "Requests given back for processes that ended.", offsetof(kvca_counters, voided)},
};

static u_char *put_head(u_char *to, const char *name, const char *help, const char *type)
{
    return ngx_sprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static u_char *put_labels(u_char *to, const ledger_t *ledger, const ngx_http_kvca_entry_t *entry)
{
    to = put_escaped(put(to, "{zone=\""), ledger->zone->name.data, ledger->zone->name.len);
    if (entry) {
        to = put_escaped(put(to, "\",rank=\""), entry->address, entry->length);
    }
    return put(to, "\"} ");
}

static u_char *put_rank_metric(u_char *to, const picture_t *picture, const rank_metric_t *metric)
{
    to = put_head(to, metric->name, metric->help, "gauge");
    for (ngx_uint_t i = 0; i < picture->count; i++) {
        const ledger_t *ledger = &picture->ledgers[i];
        for (size_t row = 0; row < ledger->snapshot.count; row++) {
            uint64_t value;
            if (metric->value(ledger, row, &value)) {
                to = put_labels(put(to, metric->name), ledger, &ledger->entries[row]);
                to = ngx_sprintf(to, "%uL\n", value);
            }
        }
    }
    return to;
}

static u_char *put_zone_metric(u_char *to, const picture_t *picture, const zone_metric_t *metric)
{
    to = put_head(to, metric->name, metric->help, "counter");
    for (ngx_uint_t i = 0; i < picture->count; i++) {
        const ledger_t *ledger = &picture->ledgers[i];
        uint64_t value;
        ngx_memcpy(&value, (const char *)ledger->snapshot.counters + metric->offset, sizeof value);
        to = put_labels(put(to, metric->name), ledger, NULL);
        to = ngx_sprintf(to, "%uL\n", value);
    }
    return to;
}

ngx_buf_t *ngx_http_kvca_report_prometheus(ngx_http_request_t *r, const ngx_array_t *zones)
{
    picture_t picture;
    ngx_buf_t *body = copy_all(r, zones, &picture) ? ngx_create_temp_buf(r->pool, picture.text) : NULL;
    if (!body) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof rank_metrics / sizeof rank_metrics[0]; i++) {
        body->last = put_rank_metric(body->last, &picture, &rank_metrics[i]);
    }
    for (size_t i = 0; i < sizeof zone_metrics / sizeof zone_metrics[0]; i++) {
        body->last = put_zone_metric(body->last, &picture, &zone_metrics[i]);
    }
    return body;
}
