/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVCA_PARAMS_H
#define KVCA_PARAMS_H

#include <kvca/kvca.h>

/* Whether a rank may have this preferred_taint_multiplier. */
bool kvca_is_multiplier(double value);

/* kvca_ranks_validate() but for the multipliers: what is wrong with the set of columns. */
kvca_status kvca_columns_validate(const kvca_ranks *ranks);

#endif
