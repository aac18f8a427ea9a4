/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file config.h
 * @brief The policy file: reads YAML (or JSON) text into kvca_params. Errors say what is wrong and where.
 *
 *     worker_selection:
 *       decode: kvca
 *       instances:
 *         - name: kvca
 *           type: dynamo-kv-capacity-aware
 *           parameters:
 *             capacity_fraction: 0.9
 *
 * This is the form of NVIDIA Dynamo's router policy file. Nothing else here needs Dynamo. A document without
 * `worker_selection` is a mapping that has only the parameters. A document has at most KVCA_CONFIG_MAX_BYTES bytes
 * (1 MiB) and at most KVCA_CONFIG_MAX_DEPTH (64) levels of nesting.
 *
 * Threads. The functions here share no state and may run at the same time. They allocate memory, so use them at start
 * and reload, not for each request. Numbers are read the same way in every locale.
 *
 * A library that was built with -Dyaml=disabled does not have these functions.
 */
#ifndef KVCA_CONFIG_H
#define KVCA_CONFIG_H

#include <kvca/kvca.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The instance type of this policy in a policy file. */
#define KVCA_CONFIG_TYPE "dynamo-kv-capacity-aware"

/** The size of the largest document that is accepted, in bytes. */
#define KVCA_CONFIG_MAX_BYTES 1048576

/** How deep lists and mappings may be nested in a document. */
#define KVCA_CONFIG_MAX_DEPTH 64

/** The pool that a policy is read for. Its key under `worker_selection` names the instance. */
typedef enum kvca_role {
    KVCA_ROLE_DECODE = 0,
    KVCA_ROLE_PREFILL = 1,
    KVCA_ROLE_AGGREGATED = 2,
    KVCA_ROLE_ENCODE = 3
} kvca_role;

/** The key of `role` in a policy file, such as "decode"; NULL for a value that is not a role. A static string. */
KVCA_API const char *kvca_role_name(kvca_role role);

/**
 * Finds the role whose key is `name`.
 * @param[out] role  written only for KVCA_OK
 * @return KVCA_OK, KVCA_ERR_NULL or KVCA_ERR_ROLE
 */
KVCA_API kvca_status kvca_role_parse(const char *name, kvca_role *role);

/** Why a policy file was not loaded. */
typedef struct kvca_error {
    /** The bytes of this structure: sizeof it. */
    size_t size;
    /** The status that the function returned. */
    kvca_status status;
    /** The line in the text, counted from 1. 0 if the fault has no place in the text. */
    size_t line;
    /** The column in characters, counted from 1. 0 if the fault has no place in the text. */
    size_t column;
    /**
     * One sentence for people. The place comes first: "policy.yaml:7:28: capacity_fraction must be ...". The text is
     * always terminated. Control characters of the document are escaped.
     */
    char message[1024];
} kvca_error;

/**
 * Reads the policy of a pool from a file.
 *
 * All instances of type KVCA_CONFIG_TYPE in the file are checked, also those that are not selected. Nothing is loaded
 * from a file with a fault.
 *
 * @param path         the file; messages use it as the name
 * @param role         the pool; KVCA_ROLE_DECODE for a decode router
 * @param[out] params  written only for KVCA_OK
 * @param[out] error   written for every status except KVCA_OK; may be NULL. Not written if this library does not
 *                     accept its size
 * @return KVCA_OK;
 *         KVCA_NOT_SELECTED: the file is valid, but the pool's selection is absent, `default`, or of another type.
 *         The host uses its own selector then. It should log error->message, because this may be a mistake;
 *         KVCA_ERR_FILE, KVCA_ERR_TOO_LARGE, KVCA_ERR_YAML, KVCA_ERR_CONFIG, KVCA_ERR_ROLE, KVCA_ERR_NULL,
 *         KVCA_ERR_SIZE or KVCA_ERR_NO_MEMORY
 */
KVCA_API kvca_status kvca_config_load_file(const char *path, kvca_role role, kvca_params *params, kvca_error *error);

/**
 * Like kvca_config_load_file(), for a document in memory.
 * @param text  `size` bytes, which need no terminator; may be NULL if `size` is 0
 * @param name  the name of the document in messages
 * @return as kvca_config_load_file(), except KVCA_ERR_FILE
 */
KVCA_API kvca_status kvca_config_load_buffer(const char *text, size_t size, const char *name, kvca_role role,
                                             kvca_params *params, kvca_error *error);

#ifdef __cplusplus
}
#endif

#endif
