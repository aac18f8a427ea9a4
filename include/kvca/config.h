/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file config.h
 * @brief The policy file: YAML (or JSON) text to kvca_params, with errors that say where and what.
 *
 *     worker_selection:
 *       decode: kvca
 *       instances:
 *         - name: kvca
 *           type: dynamo-kv-capacity-aware
 *           parameters:
 *             capacity_fraction: 0.9
 *
 * This is the form of NVIDIA Dynamo's router policy file; nothing else here needs Dynamo. A document without
 * `worker_selection` is a mapping of the parameters alone. A document is at most 1 MiB
 * (KVCA_CONFIG_MAX_BYTES) and nests at most 64 levels deep (KVCA_CONFIG_MAX_DEPTH).
 *
 * Threads. The functions here share nothing and may run at the same time. They allocate, and so belong to start-up
 * and reload, not to the request path. Numbers are read alike under every locale.
 *
 * Left out of a library that was built with -Dyaml=disabled.
 */
#ifndef KVCA_CONFIG_H
#define KVCA_CONFIG_H

#include <kvca/kvca.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The instance type that names this policy in a policy file. */
#define KVCA_CONFIG_TYPE "dynamo-kv-capacity-aware"

/** The largest document that is read, in bytes. */
#define KVCA_CONFIG_MAX_BYTES 1048576

/** How deep lists and mappings may nest in a document. */
#define KVCA_CONFIG_MAX_DEPTH 64

/** The pool that a policy is read for: the key under `worker_selection` that names its instance. */
typedef enum kvca_role {
    KVCA_ROLE_DECODE = 0,
    KVCA_ROLE_PREFILL = 1,
    KVCA_ROLE_AGGREGATED = 2,
    KVCA_ROLE_ENCODE = 3
} kvca_role;

/** The key of `role` in a policy file, such as "decode"; NULL for a value that is no role. A static string. */
KVCA_API const char *kvca_role_name(kvca_role role);

/**
 * The role whose key is `name`.
 * @param[out] role  written for KVCA_OK alone
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_ROLE
 */
KVCA_API kvca_status kvca_role_parse(const char *name, kvca_role *role);

/** Why a policy file was not loaded. */
typedef struct kvca_error {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The status that the function returned. */
    kvca_status status;
    /** The line in the text, counted from 1; 0 where no place in the text is at fault. */
    size_t line;
    /** The column, in characters, counted from 1; 0 likewise. */
    size_t column;
    /**
     * One sentence for a person, with the place in front: "policy.yaml:7:28: capacity_fraction must be ...".
     * Always terminated; control characters of the document are shown escaped.
     */
    char message[1024];
} kvca_error;

/**
 * Reads the policy of a pool from a file.
 *
 * All instances of our type in the file are checked, selected or not; nothing is loaded from a faulty file.
 *
 * @param path         the file, and its name in messages
 * @param role         the pool; KVCA_ROLE_DECODE for a decode router
 * @param[out] params  written for KVCA_OK alone
 * @param[out] error   written for every status but KVCA_OK; may be NULL. Where its own size is not one that this library
 *                     knows, it is not written
 * @return KVCA_OK; KVCA_NOT_SELECTED when the file is sound but the pool's selection is absent, `default`, or of
 *         another type, so that the host's own selector serves it (log error->message: it may be a slip);
 *         otherwise KVCA_ERR_FILE, KVCA_ERR_TOO_LARGE, KVCA_ERR_YAML, KVCA_ERR_CONFIG, KVCA_ERR_ROLE, KVCA_ERR_NULL,
 *         KVCA_ERR_SIZE or KVCA_ERR_NO_MEMORY
 */
KVCA_API kvca_status kvca_config_load_file(const char *path, kvca_role role, kvca_params *params, kvca_error *error);

/**
 * The same for a document in memory.
 * @param text  `size` bytes, not necessarily terminated; may be NULL when size is 0
 * @param name  what messages call the document
 * @return as kvca_config_load_file(), but never KVCA_ERR_FILE
 */
KVCA_API kvca_status kvca_config_load_buffer(const char *text, size_t size, const char *name, kvca_role role,
                                             kvca_params *params, kvca_error *error);

#ifdef __cplusplus
}
#endif

#endif
