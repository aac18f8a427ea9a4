/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to three rows. Each count and each set of columns is analysed separately.
 *
 * eva: -eva-auto-loop-unroll 128
 * eva: -eva-partition-value params_case,count_case,columns_case,call_case
 */
#include "any.h"

#define ROWS 3
#define FEWEST_COLUMNS 0

static int count_case;

static size_t any_count(void)
{
    count_case = any_of(0, ROWS);
    return (size_t)count_case;
}

static size_t room(void)
{
    return (size_t)any_of(0, ROWS);
}

static void check_selection(const kvca_ranks *ranks, const kvca_selection *selection)
{
    //@ assert row: selection->row < ranks->count;
    //@ assert ties: selection->ties <= ranks->count;
    //@ assert fits: selection->fits <= ranks->count;
    //@ assert unknown: selection->unknown_capacity <= ranks->count;
}

#include "rows.h"
