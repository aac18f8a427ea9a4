/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy file in more detail than config.h gives, for `kvca check`.
 *
 * This folder is for texts that people write: it reads YAML and JSON (document.h), says what scalars and keys mean
 * (scalar.h, fields.h), and says what is wrong and where (error.h). It knows the parameters of the rule and makes no
 * decision. Ranks files and traces are read with it.
 */
#ifndef KVCA_POLICY_FILE_H
#define KVCA_POLICY_FILE_H

#include <kvca/config.h>

enum kvca_parameter {
    KVCA_CAPACITY_FRACTION,
    KVCA_COUNT_PRIORITY,
    KVCA_DECODE_ACTIVE_REQUEST_WEIGHT,
    KVCA_CAPACITY_BLOCKS,
    KVCA_PARAMETERS /* how many there are */
};

struct kvca_policy_file {
    kvca_params params;
    size_t lines[KVCA_PARAMETERS]; /* the line that sets each parameter; 0: it has its default */
    char instance[64];             /* the selected instance, cut if too long; "" in a file of parameters only */
};

/* The key of a parameter. */
const char *kvca_parameter_name(enum kvca_parameter parameter);

/* Like kvca_config_load_buffer(). */
kvca_status kvca_policy_file_read(const char *text, size_t size, const char *name, kvca_role role,
                                  struct kvca_policy_file *file, kvca_error *error);

#endif
