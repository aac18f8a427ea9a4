/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of warned ranks: any ranks, for ever, in any era, while other threads write to it.
 *
 * eva: -eva-auto-loop-unroll 16
 */
#include "any.h"
#include "rule/random.h"
#include "policy/warned.h"
#include "policy/watch.h"

static struct kvca_warned warned;
static struct kvca_watch watch;

int main(void)
{
    uint64_t generator = any_word();
    kvca_unpredictable_seed(&warned);
    for (;;) {
        uint64_t era = kvca_warned_begin(&warned);
        kvca_warned_add(&warned, any_bool() ? era : any_word(), any_word(), any_half_word());
        uint64_t count = any_word() | 1;
        uint64_t turn;
        if (kvca_watch_samples(&watch, &turn)) {
            kvca_watch_row(turn, count);
        }
        kvca_watch_learn(&watch, any_word(), any_word());
        kvca_watch_knows(&watch, any_word(), any_word());
        uint64_t drawn = kvca_draw(&generator, 1 + any_word() % 1048576);
        //@ assert drawn: drawn < 1048576;
    }
}
