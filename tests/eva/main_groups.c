/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two groups of rows; the second one is short. The rows of a group are analysed together, so nothing is known of a
 * selection. This shows only that memory is sound.
 *
 * eva: -eva-auto-loop-unroll 16 -eva-slevel 30
 * eva: -eva-partition-value params_case,call_case
 */
#include "any.h"

#define ROWS 66
#define FEWEST_COLUMNS 3

static size_t any_count(void)
{
    return ROWS;
}

static size_t room(void)
{
    return (size_t)(any_word() % (ROWS + 1));
}

static void check_selection(const kvca_ranks *ranks, const kvca_selection *selection)
{
    (void)ranks;
    (void)selection;
}

#include "rows.h"
