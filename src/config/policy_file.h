/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file in more detail than config.h gives, for `kvca check`. */
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
