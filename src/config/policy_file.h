/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy file says, in more detail than config.h tells: for `kvca check`. */
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
    size_t lines[KVCA_PARAMETERS]; /* where each parameter is set; 0: it has its default */
    char instance[64];             /* the selected instance, shortened if need be; "" in a mapping of parameters */
};

/* The key of a parameter. */
const char *kvca_parameter_name(enum kvca_parameter parameter);

/* As kvca_config_load_buffer(). */
kvca_status kvca_policy_file_read(const char *text, size_t size, const char *name, kvca_role role,
                                  struct kvca_policy_file *file, kvca_error *error);

#endif
