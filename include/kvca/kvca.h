/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kvca.h
 * @brief The rule: which decode rank takes a request, so that its KV cache fits.
 *
 * A router calls kvca_select() once for every decode request. It hands in the candidate ranks as columns and
 * gets one row back:
 *
 *     kvca_params params = KVCA_PARAMS_DEFAULT;
 *     kvca_policy *policy;
 *     if (kvca_policy_new(&params, &policy) != KVCA_OK) ...
 *
 *     kvca_ranks ranks = {.size = sizeof ranks, .count = 8, .decode_cost_blocks = d, .active_requests = n,
 *                         .total_kv_blocks = capacity, .request_blocks = 32};
 *     kvca_selection selection = {.size = sizeof selection};
 *     if (kvca_select(policy, &ranks, &selection) == KVCA_OK)
 *         send_to(selection.row);
 *
 * (In C++17: `kvca_ranks ranks = {};`, then the fields one by one, `size` first.)
 *
 * kvca_select() books nothing. Two requests that are picked for from the same columns may both be given the last room
 * of a rank: either hold a lock of your own from the call until the request is added to the columns, or let pool.h
 * keep them, whose kvca_pool_place() picks and books in one step.
 *
 * The rule itself is told in docs/rule.md and written in src/rule/rule.c.
 *
 * Threads. A kvca_policy may be used by any number of threads at once without a lock: kvca_select(),
 * kvca_tie_set(), kvca_explain(), kvca_policy_params() and kvca_policy_set_seed(). The exceptions are
 * kvca_policy_set_warning() and kvca_policy_free(), which need the policy to themselves. All other functions here
 * work on their arguments alone. Columns are read without synchronisation: the caller keeps them still during the
 * call.
 *
 * Floating point. Costs are IEEE 754 doubles, rounded to nearest and with subnormal numbers: the mode that a C program
 * starts in. A host that is linked with -ffast-math may start in another.
 *
 * Sizes. A structure that may gain fields begins with `size`, its bytes where it was made. Set it to sizeof the structure
 * and zero the rest before you hand the structure in, be it to be read or to be filled. So a library and a program of
 * different versions understand each other: a field that the program does not have is zero to the library, which means
 * "as before"; one that the library does not have must be zero. Any other size is KVCA_ERR_SIZE: one below that of 0.2,
 * one above 4096, and a larger one than the library's if the library reads the structure and what it does not know is not
 * zero. What the library fills keeps its size, and what the library does not know there becomes zero. What the library
 * hands out by pointer has the library's size: read from it, but do not assign it to a structure of your own.
 *
 * Layout. An enumeration has fixed values and takes 4 bytes, a bool takes 1, and there are no bit-fields. Tests record the
 * layout of each structure (tests/interface/interface.txt).
 *
 * Errors. Functions that can fail return a kvca_status. Unless it is KVCA_OK they have written nothing, but for what is
 * there to tell the fault.
 */
#ifndef KVCA_KVCA_H
#define KVCA_KVCA_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** In front of what the library exports. */
#if defined(__GNUC__)
#define KVCA_API __attribute__((visibility("default")))
#else
#define KVCA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The version of these headers. MAJOR rises when a program must be changed to go on working, MINOR when something
 * is added, PATCH when only faults are mended. Before 1.0.0 MINOR stands for MAJOR.
 */
#define KVCA_VERSION_MAJOR 0
/** See KVCA_VERSION_MAJOR. */
#define KVCA_VERSION_MINOR 2
/** See KVCA_VERSION_MAJOR. */
#define KVCA_VERSION_PATCH 0
/** All three, as a text. */
#define KVCA_VERSION "0.2.0"

/** The version of the library that runs, in the form of KVCA_VERSION. A static string. */
KVCA_API const char *kvca_version(void);

/**
 * The variant of the rule that runs: "avx512", "avx2", "neon" or "plain", the fastest that the processor has. All of
 * them give the same results, draws included. The environment variable KVCA_VARIANT may name another one when the
 * program starts; a name that is no variant of this processor leaves "plain". A static string.
 */
KVCA_API const char *kvca_variant(void);

/** What a function answers. Values are never reused for another meaning. */
typedef enum kvca_status {
    /** Done. */
    KVCA_OK = 0,
    /** A pointer that must not be NULL is NULL. */
    KVCA_ERR_NULL = 1,
    /** Memory ran out. */
    KVCA_ERR_NO_MEMORY = 2,
    /** A structure's size is not set, or not one that this library knows. */
    KVCA_ERR_SIZE = 3,

    /** kvca_params.capacity_fraction is neither in (0, 1] nor KVCA_NO_CAPACITY_FILTER. */
    KVCA_ERR_CAPACITY_FRACTION = 10,
    /** kvca_params.decode_active_request_weight is not finite or below 0. */
    KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT = 11,

    /** kvca_ranks.count is 0: there is no rank to pick. */
    KVCA_ERR_NO_RANKS = 20,
    /** kvca_ranks.decode_cost_blocks is NULL. */
    KVCA_ERR_DECODE_COST_BLOCKS = 21,
    /** kvca_ranks.active_requests is NULL. */
    KVCA_ERR_ACTIVE_REQUESTS = 22,
    /** A kvca_ranks.preferred_taint_multiplier is not finite or not above 0; kvca_ranks_validate() tells its row. */
    KVCA_ERR_PREFERRED_TAINT_MULTIPLIER = 23,
    /** A row number is not below kvca_ranks.count. */
    KVCA_ERR_ROW = 24,

    /** A file cannot be opened or read. */
    KVCA_ERR_FILE = 30,
    /** A document passes the bounds on size or nesting that config.h states. */
    KVCA_ERR_TOO_LARGE = 31,
    /** A document is not well-formed YAML. */
    KVCA_ERR_YAML = 32,
    /** A document is YAML but says something that a policy file cannot say. */
    KVCA_ERR_CONFIG = 33,
    /** A role is none of kvca_role. */
    KVCA_ERR_ROLE = 34,
    /** The document is sound and leaves this pool to another selector. */
    KVCA_NOT_SELECTED = 35,

    /** A pool cannot be made for so many ranks or owners. */
    KVCA_ERR_POOL_SIZE = 40,
    /** Memory for a pool or a snapshot is too small or not aligned. */
    KVCA_ERR_POOL_MEMORY = 41,
    /** The memory holds no pool, or one of another layout. */
    KVCA_ERR_POOL_LAYOUT = 42,
    /** Every slot of the pool has a rank. */
    KVCA_ERR_POOL_FULL = 43,
    /** Every owner of the pool is claimed. */
    KVCA_ERR_OWNERS_FULL = 44,
    /** The pool has no rank of this worker_id and dp_rank. */
    KVCA_ERR_NO_SUCH_RANK = 45,
    /** The owner is not, or no longer, claimed in this pool. */
    KVCA_ERR_OWNER = 46,
    /** A rank's decode_cost_blocks would pass UINT64_MAX. */
    KVCA_ERR_OVERFLOW = 47,
    /** The booking is empty: it was never made, or was released already. */
    KVCA_ERR_NO_BOOKING = 48,
    /** The booking was not made by this pool, or was changed since. */
    KVCA_ERR_FOREIGN_BOOKING = 49,
    /** The booking is gone: its rank was dropped or its owner voided. */
    KVCA_STALE = 50,
    /** No rank of the pool may be picked for this request. */
    KVCA_NONE_ELIGIBLE = 51,
    /** No rank of the pool has room for this request now, and it asked for one that has. */
    KVCA_NONE_FITS = 52,
    /** No rank of the pool will ever have room for this request: it is larger than every limit. Waiting does not help. */
    KVCA_NEVER_FITS = 53
} kvca_status;

/** What `status` means, as one English phrase. A static string, for values that are no kvca_status too. */
KVCA_API const char *kvca_strerror(kvca_status status);

/**
 * The value of kvca_params.capacity_fraction that turns the capacity filter off: positive infinity. Every rank fits. Any
 * language spells it: Python float("inf"), Rust f64::INFINITY, Go math.Inf(1).
 */
#define KVCA_NO_CAPACITY_FILTER HUGE_VAL

/** KVCA_NO_CAPACITY_FILTER, for languages that cannot read the macro. Any thread may call it. */
KVCA_API double kvca_no_capacity_filter(void);

/** The parameters of the policy. Plain values, copied wherever they are taken. */
typedef struct kvca_params {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /**
     * The share of its capacity that a rank's booking may fill, 0 < x <= 1, or KVCA_NO_CAPACITY_FILTER.
     * Default 1.
     */
    double capacity_fraction;
    /** W in the cost D + W x N: the blocks that one active request weighs. Finite, >= 0. Default 0. */
    double decode_active_request_weight;
    /** The capacity in KV blocks of ranks that report none; 0 leaves it unset. Default unset. */
    uint64_t capacity_blocks;
    /** Among the ranks that fit, prefer fewer active requests before the block cost. Default true. */
    bool count_priority;
} kvca_params;

/** Initialises a kvca_params to the defaults: `kvca_params params = KVCA_PARAMS_DEFAULT;`. */
/* clang-format off */
#define KVCA_PARAMS_DEFAULT {sizeof(kvca_params), 1.0, 0.0, 0, true}
/* clang-format on */

/**
 * Sets `params` to the defaults and its size to `size`, as KVCA_PARAMS_DEFAULT does, for languages that cannot read the
 * macro. Any thread may call it.
 * @param[out] params  written for KVCA_OK alone; its size need not be set
 * @param size         sizeof the caller's kvca_params
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_SIZE
 */
KVCA_API kvca_status kvca_params_init(kvca_params *params, size_t size);

/**
 * Checks that every parameter is in its range.
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, or the KVCA_ERR_ value named after the first parameter that is not.
 */
KVCA_API kvca_status kvca_params_validate(const kvca_params *params);

/**
 * The policy: parameters that never change, the generator that breaks ties, and the ranks that were warned about.
 * About 33 KiB, of one size whatever the number of ranks and however long it lives.
 */
typedef struct kvca_policy kvca_policy;

/**
 * Makes a policy from `params`, which are copied.
 *
 * The generator starts from a seed that differs between processes, since two routers that draw alike would send
 * simultaneous requests to the same rank.
 *
 * @param[out] policy  the new policy; free it with kvca_policy_free()
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_NO_MEMORY, or what kvca_params_validate() says
 */
KVCA_API kvca_status kvca_policy_new(const kvca_params *params, kvca_policy **policy);

/**
 * Frees `policy`, which no thread may be using. NULL is allowed. To change parameters while other threads select, make
 * a new policy, hand that to new requests, and free the old one when the last call on it has returned.
 */
KVCA_API void kvca_policy_free(kvca_policy *policy);

/**
 * The parameters that `policy` was made from; NULL for NULL. They live as long as the policy, and their size is that of the
 * library.
 */
KVCA_API const kvca_params *kvca_policy_params(const kvca_policy *policy);

/**
 * Restarts the tie-break generator from `seed`. The same seed and the same calls in the same order, from one
 * thread, give the same picks on every machine.
 * @return KVCA_OK or KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_policy_set_seed(kvca_policy *policy, uint64_t seed);

/** A rank without a known capacity, as a warning tells it. */
typedef struct kvca_warning {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /**
     * Its kvca_ranks.worker_id, or its row where that column is NULL: a host whose rows are not always the same ranks
     * must give the column.
     */
    uint64_t worker_id;
    /** Its kvca_ranks.dp_rank, or 0 where that column is NULL. */
    uint32_t dp_rank;
    /** Its row in the selection under way. */
    size_t row;
} kvca_warning;

/**
 * Told of a rank that has no known capacity and so passes the filter unseen. Runs inside kvca_select() or
 * kvca_tie_set(), on the thread that called it and before it returns; several threads may run it at once, each for
 * another rank. It must not free the policy. `warning` lives until it returns, and its size is that of the library.
 */
typedef void (*kvca_warning_fn)(void *user, const kvca_warning *warning);

/**
 * Sets who is told of ranks without a known capacity: each rank, known by (worker_id, dp_rank), once.
 *
 * While no callback is set nobody is marked as warned about. The first selection after this call, and each in which the
 * number of ranks or of those without a known capacity is not that of the selection before, looks at all of them. The
 * others look at one rank in sixteen selections, drawn at random: one that takes the place of another is found within
 * sixteen selections for each rank on average, and nearly always within a hundred.
 *
 * The policy remembers up to 4096 ranks. When it needs room it forgets one that was not seen while the others were, some
 * 64 times each; it is warned about again should it come back. Where more than about 2000 such ranks are in use at
 * once, or have been, some find no room and are not warned about, so that no number of them floods a log.
 * kvca_selection.unknown_capacity counts them all in every case.
 *
 * Not for use while another thread uses the policy: call it before the policy is shared.
 *
 * @param callback  NULL for nobody
 * @param user      handed to `callback`; the caller keeps it alive
 * @return KVCA_OK or KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_policy_set_warning(kvca_policy *policy, kvca_warning_fn callback, void *user);

/**
 * The candidate ranks, as columns of `count` values: row i of every column is the same rank. Columns are borrowed
 * for the call and only read.
 */
typedef struct kvca_ranks {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The number of rows. At least 1. */
    size_t count;
    /** The worker that serves the rank. NULL: the row number stands in. Only warnings use it. */
    const uint64_t *worker_id;
    /** The rank's number in its worker. NULL: 0. Only warnings use it. */
    const uint32_t *dp_rank;
    /** D: the KV blocks booked on the rank, by running and by waiting requests alike. Required. */
    const uint64_t *decode_cost_blocks;
    /** N: the requests active on the rank: running and waiting. Required. */
    const uint64_t *active_requests;
    /** The capacity in KV blocks that the rank reports, 0 for none. NULL: no rank reports one. */
    const uint64_t *total_kv_blocks;
    /** Scales the rank's cost, so that above 1 it is liked less; finite and > 0. NULL: 1 everywhere. */
    const double *preferred_taint_multiplier;
    /**
     * The KV blocks of the request, added to every row's decode_cost_blocks (the sum stops at UINT64_MAX). 0 when
     * that column counts the request already.
     */
    uint64_t request_blocks;
} kvca_ranks;

/**
 * Checks `ranks` as kvca_select() does, and tells where the fault is.
 * @param[out] row  the first faulty row, written for KVCA_ERR_PREFERRED_TAINT_MULTIPLIER alone; may be NULL
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, KVCA_ERR_NO_RANKS, KVCA_ERR_DECODE_COST_BLOCKS,
 *         KVCA_ERR_ACTIVE_REQUESTS or KVCA_ERR_PREFERRED_TAINT_MULTIPLIER
 */
KVCA_API kvca_status kvca_ranks_validate(const kvca_ranks *ranks, size_t *row);

/** How a rank was picked. */
typedef enum kvca_outcome {
    /** The rank has room for the request. */
    KVCA_FIT = 0,
    /** No rank has room now: this one has the smallest D. A host that can wait would wait here. */
    KVCA_FALLBACK = 1,
    /**
     * No rank will ever have room: kvca_ranks.request_blocks is above the limit of every rank, even when it is empty.
     * This one has the smallest D. Waiting does not help. With request_blocks 0 this never comes.
     */
    KVCA_FALLBACK_NEVER = 2
} kvca_outcome;

/** What came of a selection. */
typedef struct kvca_selection {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The row that was picked, below kvca_ranks.count. */
    size_t row;
    /** Whether it fits. */
    kvca_outcome outcome;
    /** How many rows fit; 0 exactly when the outcome is not KVCA_FIT. */
    size_t fits;
    /** How many rows were equally good, the picked one among them; at least 1. */
    size_t ties;
    /** How many rows have no known capacity; 0 while the filter is off, since no capacity is asked for then. */
    size_t unknown_capacity;
} kvca_selection;

/**
 * Picks a rank. Never fails while there is a rank: where none fits, the one with the smallest D is picked and the
 * outcome says KVCA_FALLBACK or KVCA_FALLBACK_NEVER. One row of several equally good ones is drawn uniformly.
 *
 * Allocates nothing, takes no lock and makes no system call (a warning callback is the host's own). Time grows
 * linearly with the number of rows.
 *
 * @param[out] selection  written for KVCA_OK alone, but for its size, which the caller sets
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, or what kvca_ranks_validate() says
 */
KVCA_API kvca_status kvca_select(kvca_policy *policy, const kvca_ranks *ranks, kvca_selection *selection);

/**
 * Finds every row that kvca_select() would draw from, and draws none: for hosts that break ties themselves, by
 * session affinity or by prefix overlap. The generator stays where it is; warnings are given as by kvca_select().
 *
 * @param[out] rows       the tied rows in rising order, as many as there is room for; may be NULL when room is 0
 * @param      room       how many rows `rows` can hold; kvca_ranks.count is always enough
 * @param[out] selection  its `ties` is the full number, its `row` the first tied row; written for KVCA_OK alone
 * @return as kvca_select(); KVCA_ERR_NULL also when `rows` is NULL and `room` is not 0
 */
KVCA_API kvca_status kvca_tie_set(kvca_policy *policy, const kvca_ranks *ranks, size_t *rows, size_t room,
                                  kvca_selection *selection);

/** Where the capacity of a rank comes from. */
typedef enum kvca_capacity_source {
    /** The rank reports total_kv_blocks. */
    KVCA_CAPACITY_REPORTED = 0,
    /** It reports none, and kvca_params.capacity_blocks stands in. */
    KVCA_CAPACITY_PARAMETER = 1,
    /** There is neither. */
    KVCA_CAPACITY_UNKNOWN = 2
} kvca_capacity_source;

/** Why a row was or was not among the best, by the first criterion that tells it from the picked row. */
typedef enum kvca_reason {
    /** Nothing tells it from the picked row: it is the pick or ties with it. */
    KVCA_REASON_TIED = 0,
    /** Its D is above its limit, while another rank fits. */
    KVCA_REASON_DOES_NOT_FIT = 1,
    /** It fits, but has more active requests. */
    KVCA_REASON_MORE_REQUESTS = 2,
    /** It fits and has no more requests, but a higher cost. */
    KVCA_REASON_HIGHER_COST = 3,
    /** No rank fits, and its D is larger. */
    KVCA_REASON_MORE_BLOCKS = 4,
    /** It may not be picked: it drains, or the request's bitmap leaves it out. Only kvca_pool_explain() gives it. */
    KVCA_REASON_NOT_ELIGIBLE = 5
} kvca_reason;

/** One row as the rule sees it. */
typedef struct kvca_explanation {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** D with the request's blocks, in KV blocks. */
    uint64_t decode_cost_blocks;
    /** N. */
    uint64_t active_requests;
    /** The capacity in KV blocks; 0 when unknown. */
    uint64_t capacity;
    /** Where `capacity` comes from. */
    kvca_capacity_source capacity_source;
    /** The largest D that fits; UINT64_MAX where the filter is off or the capacity unknown. */
    uint64_t limit;
    /** Whether D <= limit. */
    bool fits;
    /** (D + W x N) x preferred_taint_multiplier; infinite where that is past the largest double. */
    double cost;
    /** How the row compares with the picked one. */
    kvca_reason reason;
} kvca_explanation;

/**
 * Explains one row of a selection, for logs and for people. Takes the same time whatever the number of rows.
 * @param params     those that the selection was made by
 * @param selection  what kvca_select() or kvca_tie_set() gave for these same ranks
 * @param row        the row to explain, below kvca_ranks.count
 * @param[out] explanation  written for KVCA_OK alone
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, KVCA_ERR_ROW (also for a selection.row out of range), what kvca_params_validate() says,
 *         or what kvca_ranks_validate() says of the columns and of the two rows that are compared
 */
KVCA_API kvca_status kvca_explain(const kvca_params *params, const kvca_ranks *ranks, const kvca_selection *selection,
                                  size_t row, kvca_explanation *explanation);

#ifdef __cplusplus
}
#endif

#endif
