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
 * kvca_select() books nothing. Two calls that read the same columns may both pick the last room of a rank. There are
 * two ways to prevent this. Hold a lock of your own from the call until the request is added to the columns. Or use
 * pool.h: kvca_pool_place() picks and books in one step.
 *
 * docs/rule.md explains the rule, and src/rule/rule.c implements it.
 *
 * Threads. Any number of threads may use one kvca_policy at once without a lock. This holds for kvca_select(),
 * kvca_tie_set(), kvca_explain(), kvca_policy_params() and kvca_policy_set_seed(). No other thread may use the policy
 * during kvca_policy_set_warning() and kvca_policy_free(). All other functions here use only their arguments. Columns
 * are read without synchronisation: the caller must not change them during the call.
 *
 * Floating point. Costs are IEEE 754 doubles, rounded to nearest and with subnormal numbers. A C program starts in
 * this mode. A host that is linked with -ffast-math may start in another mode.
 *
 * Sizes. A structure that may gain fields begins with `size`, the number of its bytes in the program that made it.
 * Before you pass such a structure to the library, zero it, set `size` to sizeof the structure, then set the fields
 * that you use. (A kvca_params starts from KVCA_PARAMS_DEFAULT.) This applies to structures that the library reads
 * and to those that it fills. It lets a library and a program of different versions work together:
 * - A field that the program does not have is zero to the library. In a field that was added later, zero keeps the
 *   earlier behaviour.
 * - A field that the library does not have must be zero.
 * - KVCA_ERR_SIZE is returned for a size below that of version 0.2, and for a size above 4096. When the library reads
 *   the structure, it also returns KVCA_ERR_SIZE if the bytes beyond those that it knows are not all zero.
 * - When the library fills a structure, it leaves `size` as it is and sets the bytes beyond those that it knows to
 *   zero.
 * - A structure that the library returns by pointer has the library's size. Read from it, but do not assign it to a
 *   structure of your own.
 *
 * Layout. An enumeration has fixed values and takes 4 bytes. A bool takes 1 byte. There are no bit-fields. Tests
 * record the layout of each structure (tests/interface/interface.txt).
 *
 * Errors. Functions that can fail return a kvca_status. If it is not KVCA_OK, they have written nothing except the
 * arguments that report the fault.
 */
#ifndef KVCA_KVCA_H
#define KVCA_KVCA_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Marks what the library exports. */
#if defined(__GNUC__)
#define KVCA_API __attribute__((visibility("default")))
#else
#define KVCA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The version of these headers. MAJOR rises when existing programs must be changed. MINOR rises when something is
 * added. PATCH rises when only faults are fixed. Before 1.0.0, MINOR takes the role of MAJOR.
 */
#define KVCA_VERSION_MAJOR 0
/** See KVCA_VERSION_MAJOR. */
#define KVCA_VERSION_MINOR 2
/** See KVCA_VERSION_MAJOR. */
#define KVCA_VERSION_PATCH 0
/** All three, as text. */
#define KVCA_VERSION "0.2.0"

/** The version of the running library, in the form of KVCA_VERSION. A static string. */
KVCA_API const char *kvca_version(void);

/**
 * The variant of the rule that runs: "avx512", "avx2", "neon" or "plain". It is the fastest that the processor has.
 * All variants give the same results and the same draws. The environment variable KVCA_VARIANT can select another
 * variant when the program starts. A name that this processor has no variant for selects "plain". A static string.
 */
KVCA_API const char *kvca_variant(void);

/** The result of a function. A value never gets another meaning in a later version. */
typedef enum kvca_status {
    /** Done. */
    KVCA_OK = 0,
    /** A pointer that must not be NULL is NULL. */
    KVCA_ERR_NULL = 1,
    /** Memory ran out. */
    KVCA_ERR_NO_MEMORY = 2,
    /** The size of a structure is not set, or this library does not accept it. */
    KVCA_ERR_SIZE = 3,

    /** kvca_params.capacity_fraction is not in (0, 1] and is not KVCA_NO_CAPACITY_FILTER. */
    KVCA_ERR_CAPACITY_FRACTION = 10,
    /** kvca_params.decode_active_request_weight is below 0, infinite or NaN. */
    KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT = 11,

    /** kvca_ranks.count is 0: there is no rank to pick. */
    KVCA_ERR_NO_RANKS = 20,
    /** kvca_ranks.decode_cost_blocks is NULL. */
    KVCA_ERR_DECODE_COST_BLOCKS = 21,
    /** kvca_ranks.active_requests is NULL. */
    KVCA_ERR_ACTIVE_REQUESTS = 22,
    /** A kvca_ranks.preferred_taint_multiplier is 0, below 0, infinite or NaN. kvca_ranks_validate() gives its row. */
    KVCA_ERR_PREFERRED_TAINT_MULTIPLIER = 23,
    /** A row number is not below kvca_ranks.count. */
    KVCA_ERR_ROW = 24,

    /** A file cannot be opened or read. */
    KVCA_ERR_FILE = 30,
    /** A document exceeds the limit on size or nesting in config.h. */
    KVCA_ERR_TOO_LARGE = 31,
    /** A document is not well-formed YAML. */
    KVCA_ERR_YAML = 32,
    /** A document is well-formed YAML but not a valid policy file. */
    KVCA_ERR_CONFIG = 33,
    /** A role is not a value of kvca_role, or a name is not the key of one. */
    KVCA_ERR_ROLE = 34,
    /** The document is valid, but it leaves this pool to another selector. */
    KVCA_NOT_SELECTED = 35,

    /** The number of ranks or owners is too large for a pool. */
    KVCA_ERR_POOL_SIZE = 40,
    /** Memory for a pool or a snapshot is too small or not aligned. */
    KVCA_ERR_POOL_MEMORY = 41,
    /** The memory holds no pool, or a pool of another layout. */
    KVCA_ERR_POOL_LAYOUT = 42,
    /** Every slot of the pool has a rank. */
    KVCA_ERR_POOL_FULL = 43,
    /** Every owner of the pool is claimed. */
    KVCA_ERR_OWNERS_FULL = 44,
    /** The pool has no rank of this worker_id and dp_rank. */
    KVCA_ERR_NO_SUCH_RANK = 45,
    /** The owner is not claimed in this pool, or no longer claimed. */
    KVCA_ERR_OWNER = 46,
    /** The decode_cost_blocks of a rank would exceed UINT64_MAX. */
    KVCA_ERR_OVERFLOW = 47,
    /** The booking is empty: it was never made, or it was already released. */
    KVCA_ERR_NO_BOOKING = 48,
    /** This pool did not make the booking, or the booking was changed since. */
    KVCA_ERR_FOREIGN_BOOKING = 49,
    /** The booking no longer exists: its rank was dropped, or its owner was voided. */
    KVCA_STALE = 50,
    /** No rank of the pool may be picked for this request. */
    KVCA_NONE_ELIGIBLE = 51,
    /** No rank of the pool has room now, and the request may only be placed where it fits. */
    KVCA_NONE_FITS = 52,
    /** The request is larger than the limit of every rank of the pool. Waiting does not help. */
    KVCA_NEVER_FITS = 53
} kvca_status;

/** What `status` means, as a short English phrase. A static string, also for values that are not a kvca_status. */
KVCA_API const char *kvca_strerror(kvca_status status);

/**
 * The value of kvca_params.capacity_fraction that turns the capacity filter off, so that every rank fits. It is
 * positive infinity, which other languages have too: Python float("inf"), Rust f64::INFINITY, Go math.Inf(1).
 */
#define KVCA_NO_CAPACITY_FILTER HUGE_VAL

/** Returns KVCA_NO_CAPACITY_FILTER, for languages that cannot read the macro. Any thread may call it. */
KVCA_API double kvca_no_capacity_filter(void);

/** The parameters of the policy. Functions that take them copy them. */
typedef struct kvca_params {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /**
     * The share of a rank's capacity that bookings may fill: 0 < x <= 1, or KVCA_NO_CAPACITY_FILTER. Default 1.
     */
    double capacity_fraction;
    /** W in the cost D + W x N: how many blocks one active request counts as. Finite, >= 0. Default 0. */
    double decode_active_request_weight;
    /** The capacity in KV blocks of ranks that report none. 0 means unset. Default 0. */
    uint64_t capacity_blocks;
    /** Whether, among the ranks that fit, fewer active requests come before a lower cost. Default true. */
    bool count_priority;
} kvca_params;

/** Initialises a kvca_params to the defaults: `kvca_params params = KVCA_PARAMS_DEFAULT;`. */
/* clang-format off */
#define KVCA_PARAMS_DEFAULT {sizeof(kvca_params), 1.0, 0.0, 0, true}
/* clang-format on */

/**
 * Sets `params` to the defaults and its size to `size`, like KVCA_PARAMS_DEFAULT. It is for languages that cannot
 * read the macro. Any thread may call it.
 * @param[out] params  written only for KVCA_OK; its size need not be set
 * @param size         sizeof the caller's kvca_params
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_SIZE
 */
KVCA_API kvca_status kvca_params_init(kvca_params *params, size_t size);

/**
 * Checks that every parameter is in its range.
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, or the KVCA_ERR_ value of the first parameter that is out of range
 */
KVCA_API kvca_status kvca_params_validate(const kvca_params *params);

/**
 * The policy: parameters that never change, the generator that breaks ties, and the ranks that a warning was given
 * for. It takes about 33 KiB. This does not depend on the number of ranks, and it does not grow.
 */
typedef struct kvca_policy kvca_policy;

/**
 * Makes a policy from `params`, which are copied.
 *
 * The generator starts from a seed that differs between processes. Two routers with the same draws would send
 * simultaneous requests to the same rank.
 *
 * @param[out] policy  the new policy; free it with kvca_policy_free()
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_NO_MEMORY, or what kvca_params_validate() returns
 */
KVCA_API kvca_status kvca_policy_new(const kvca_params *params, kvca_policy **policy);

/**
 * Frees `policy`. NULL is allowed. No thread may be using the policy. To change parameters while other threads
 * select, make a new policy and use it for new requests. Free the old policy when the last call on it has returned.
 */
KVCA_API void kvca_policy_free(kvca_policy *policy);

/**
 * The parameters that `policy` was made from; NULL for NULL. They belong to the policy and live as long as it does.
 * Their size is that of the library.
 */
KVCA_API const kvca_params *kvca_policy_params(const kvca_policy *policy);

/**
 * Restarts the tie-break generator from `seed`. Then the same calls in the same order, from one thread, give the same
 * picks on every machine.
 * @return KVCA_OK or KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_policy_set_seed(kvca_policy *policy, uint64_t seed);

/** A warning about a rank without a known capacity. */
typedef struct kvca_warning {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /**
     * The rank's kvca_ranks.worker_id, or its row if that column is NULL. A host that does not always use the same
     * row for the same rank must supply the column.
     */
    uint64_t worker_id;
    /** The rank's kvca_ranks.dp_rank, or 0 if that column is NULL. */
    uint32_t dp_rank;
    /** The rank's row in the current selection. */
    size_t row;
} kvca_warning;

/**
 * Receives a warning about a rank that has no known capacity and therefore always passes the filter. It runs inside
 * kvca_select() or kvca_tie_set(), on the thread that called them. Several threads may run it at once, each for
 * another rank. It must not free the policy. `warning` is valid until the callback returns, and its size is that of
 * the library.
 */
typedef void (*kvca_warning_fn)(void *user, const kvca_warning *warning);

/**
 * Sets the callback for ranks without a known capacity. It is called once for each rank, identified by
 * (worker_id, dp_rank).
 *
 * While no callback is set, no rank is marked as warned about. The first selection after this call looks at all
 * ranks. So does one in which the number of ranks, or the number without a known capacity, has changed. Of the other
 * selections, one in sixteen looks at one rank, drawn at random. So a rank that replaces another is found within
 * sixteen selections per rank on average, and nearly always within a hundred per rank.
 *
 * The policy has 4096 places for ranks. When it needs one, it forgets a rank that was not seen while the others were
 * seen about 64 times each. If that rank comes back, a warning is given again. Beyond about 2000 ranks without a known
 * capacity, some find no place and get no warning. So the number of warnings stays bounded.
 * kvca_selection.unknown_capacity always counts them all.
 *
 * No other thread may use the policy during this call: call it before the policy is shared.
 *
 * @param callback  NULL for no warnings
 * @param user      passed to `callback`; the caller keeps what it points to alive
 * @return KVCA_OK or KVCA_ERR_NULL
 */
KVCA_API kvca_status kvca_policy_set_warning(kvca_policy *policy, kvca_warning_fn callback, void *user);

/**
 * The candidate ranks, as columns of `count` values. Row i of every column belongs to the same rank. The library only
 * reads the columns, and only during the call.
 */
typedef struct kvca_ranks {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The number of rows. At least 1. */
    size_t count;
    /** The worker that serves the rank. NULL: the row number is used. Only warnings use it. */
    const uint64_t *worker_id;
    /** The rank's number in its worker. NULL: 0 is used. Only warnings use it. */
    const uint32_t *dp_rank;
    /** D: the KV blocks booked on the rank, by running and waiting requests. Required. */
    const uint64_t *decode_cost_blocks;
    /** N: the active requests of the rank, running and waiting. Required. */
    const uint64_t *active_requests;
    /** The capacity in KV blocks that the rank reports, 0 for none. NULL: no rank reports one. */
    const uint64_t *total_kv_blocks;
    /**
     * The rank's cost is multiplied by it: above 1, the rank is less preferred. Finite and > 0. NULL: 1 everywhere.
     */
    const double *preferred_taint_multiplier;
    /**
     * The KV blocks of the request. They are added to the decode_cost_blocks of every row; the sum stops at
     * UINT64_MAX. Set it to 0 if that column already includes the request.
     */
    uint64_t request_blocks;
} kvca_ranks;

/**
 * Checks `ranks` as kvca_select() does, and reports where the fault is.
 * @param[out] row  the first faulty row, written only for KVCA_ERR_PREFERRED_TAINT_MULTIPLIER; may be NULL
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, KVCA_ERR_NO_RANKS, KVCA_ERR_DECODE_COST_BLOCKS,
 *         KVCA_ERR_ACTIVE_REQUESTS or KVCA_ERR_PREFERRED_TAINT_MULTIPLIER
 */
KVCA_API kvca_status kvca_ranks_validate(const kvca_ranks *ranks, size_t *row);

/** How a rank was picked. */
typedef enum kvca_outcome {
    /** The rank fits: its D is at most its limit, or it has no limit. */
    KVCA_FIT = 0,
    /** No rank has room now. This one has the smallest D. A host that can wait would wait here. */
    KVCA_FALLBACK = 1,
    /**
     * No rank will ever have room: kvca_ranks.request_blocks is above the limit of every rank, even of an empty one.
     * The picked rank has the smallest D. Waiting does not help. This outcome never occurs if request_blocks is 0.
     */
    KVCA_FALLBACK_NEVER = 2
} kvca_outcome;

/** The result of a selection. */
typedef struct kvca_selection {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The picked row, below kvca_ranks.count. */
    size_t row;
    /** Whether the picked rank fits. */
    kvca_outcome outcome;
    /** How many rows fit. It is 0 exactly when the outcome is not KVCA_FIT. */
    size_t fits;
    /** How many rows were equally good, including the picked one. At least 1. */
    size_t ties;
    /** How many rows have no known capacity. It is 0 while the filter is off: no capacity is needed then. */
    size_t unknown_capacity;
} kvca_selection;

/**
 * Picks a rank. It never fails for lack of room: if no rank fits, it picks the one with the smallest D, and the
 * outcome is KVCA_FALLBACK or KVCA_FALLBACK_NEVER. If several rows are equally good, it draws one of them uniformly.
 *
 * It allocates nothing, takes no lock and makes no system call. (A warning callback may, since it is the host's.) Its
 * time grows linearly with the number of rows.
 *
 * @param[out] selection  written only for KVCA_OK; the caller sets its size
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, or what kvca_ranks_validate() returns
 */
KVCA_API kvca_status kvca_select(kvca_policy *policy, const kvca_ranks *ranks, kvca_selection *selection);

/**
 * Finds every row that kvca_select() would draw from, but draws none. It is for hosts that break ties themselves, for
 * example by session affinity or by prefix overlap. The generator does not advance. Warnings are given as by
 * kvca_select().
 *
 * @param[out] rows       the tied rows in rising order, at most `room` of them; may be NULL if `room` is 0
 * @param      room       how many rows `rows` can hold; kvca_ranks.count is always enough
 * @param[out] selection  `ties` is the full number, and `row` is the first tied row; written only for KVCA_OK
 * @return as kvca_select(); KVCA_ERR_NULL also if `rows` is NULL and `room` is not 0
 */
KVCA_API kvca_status kvca_tie_set(kvca_policy *policy, const kvca_ranks *ranks, size_t *rows, size_t room,
                                  kvca_selection *selection);

/** Where the capacity of a rank comes from. */
typedef enum kvca_capacity_source {
    /** The rank reports total_kv_blocks. */
    KVCA_CAPACITY_REPORTED = 0,
    /** The rank reports none, and kvca_params.capacity_blocks is used. */
    KVCA_CAPACITY_PARAMETER = 1,
    /** The rank reports none, and kvca_params.capacity_blocks is unset. */
    KVCA_CAPACITY_UNKNOWN = 2
} kvca_capacity_source;

/** Why a row was or was not among the best: the first criterion in which it differs from the picked row. */
typedef enum kvca_reason {
    /** It does not differ: it is the picked row, or it ties with it. */
    KVCA_REASON_TIED = 0,
    /** Its D is above its limit, while another rank fits. */
    KVCA_REASON_DOES_NOT_FIT = 1,
    /** It fits, but has more active requests. Only with count_priority. */
    KVCA_REASON_MORE_REQUESTS = 2,
    /** It fits, but has a higher cost. With count_priority, it has as many requests as the picked row. */
    KVCA_REASON_HIGHER_COST = 3,
    /** No rank fits, and its D is larger. */
    KVCA_REASON_MORE_BLOCKS = 4,
    /**
     * It may not be picked: it drains, the request's bitmap leaves it out, or its D would exceed UINT64_MAX. Only
     * kvca_pool_explain() gives this reason.
     */
    KVCA_REASON_NOT_ELIGIBLE = 5
} kvca_reason;

/** One row as the rule sees it. */
typedef struct kvca_explanation {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** D including the request's blocks, in KV blocks. */
    uint64_t decode_cost_blocks;
    /** N. */
    uint64_t active_requests;
    /** The capacity in KV blocks; 0 when unknown. */
    uint64_t capacity;
    /** Where `capacity` comes from. */
    kvca_capacity_source capacity_source;
    /** The largest D that fits; UINT64_MAX if the filter is off or the capacity is unknown. */
    uint64_t limit;
    /** Whether D <= limit. */
    bool fits;
    /** (D + W x N) x preferred_taint_multiplier; infinite if that exceeds the largest double. */
    double cost;
    /** How the row compares with the picked one. */
    kvca_reason reason;
} kvca_explanation;

/**
 * Explains one row of a selection, for logs and for people. Its time does not depend on the number of rows.
 * @param params     the parameters that the selection was made with
 * @param selection  what kvca_select() or kvca_tie_set() returned for these ranks
 * @param row        the row to explain, below kvca_ranks.count
 * @param[out] explanation  written only for KVCA_OK
 * @return KVCA_OK, KVCA_ERR_NULL, KVCA_ERR_SIZE, KVCA_ERR_ROW (`row` or selection.row is out of range), what
 *         kvca_params_validate() returns, or what kvca_ranks_validate() returns for the columns and for the two rows
 *         that are compared
 */
KVCA_API kvca_status kvca_explain(const kvca_params *params, const kvca_ranks *ranks, const kvca_selection *selection,
                                  size_t row, kvca_explanation *explanation);

#ifdef __cplusplus
}
#endif

#endif
