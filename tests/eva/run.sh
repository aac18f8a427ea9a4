#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Analyses the core with Frama-C's Eva (Debian: frama-c-base) by each driver here, main_*.c, or by those in the
# arguments. Shows that there is no undefined behaviour and that the drivers' assertions hold. Prints for each driver
# what was reached and the number of alarms. Fails if the alarms are not exactly those of alarms.txt. Eva's logs go to
# the folder EVA_LOGS, if it is set.
#
# A driver begins with its own options, in lines of the form "eva: -option...".
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$0")/../.."
work=${EVA_LOGS:-}
if [ -z "$work" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

core=(src/status.c src/{rule,policy,pool}/*.c src/vector/vector.c)
headers='-Iinclude -Isrc -Itests/eva -U__x86_64__ -U__aarch64__ -include tests/eva/c11.h'

# The parts of a selection return what they did, so their callers must see each answer together with its effects.
answers=kvca_select:0,kvca_tie_set:0,kvca_view_select:0,kvca_ready_select:0,kvca_select_only:0,kvca_select_plainly:0
answers+=,kvca_rule_survey:0,finish:0
answers+=,kvca_params_validate:0,check_ranges:0,kvca_size_read:0,kvca_read_params:0,kvca_params_take:0,kvca_policy_new:0,kvca_pool_attach:0,lay_out:0

# Loops over rows in a scan need no cases.
loops=kvca_rule_survey:10,kvca_rule_draw:10,kvca_rule_list:10,kvca_draw:10
# Nor do the searches for ranks to warn about.
loops+=,look_at_row:0,kvca_warned_begin:0,kvca_warned_add:0,find:0,refresh:0,age:0,mark_of:0

# By default Eva looks for signed overflow and for doubles that no integer holds. Infinities are intended.
options=(-c11 -machdep gcc_x86_64 -kernel-warn-key CERT:EXP:46=inactive
    -warn-special-float none -eva -eva-slevel 200 -eva-slevel-function "$loops"
    -eva-split-return auto -eva-split-return-function "$answers")

analyse() {
    local driver=$1 log=$work/${1##*/}.log
    local own
    read -r -a own <<< "$(sed -n 's/^.*eva: //p' "$driver" | tr '\n' ' ')"
    frama-c "${options[@]}" "${own[@]}" -cpp-extra-args="$headers" "${core[@]}" tests/eva/stubs.c "$driver" \
        > "$log" 2>&1 || { tail -20 "$log"; return 1; }
    grep -q '^\[eva\] done for function main' "$log" || { tail -20 "$log"; return 1; }
}

# Prints each alarm of a log on one line: its place without the line number, and its text.
alarms() {
    awk '/^\[eva:alarm\]/ { if (text) print text; text = $0; next }
         /^  / && text { text = text $0; next }
         { if (text) print text; text = "" }
         END { if (text) print text }' "$1" |
        sed -E 's/^\[eva:alarm\] //; s/:[0-9]+: Warning: */: /; s/  +/ /g; s/got status (unknown|invalid).*/is not shown/' |
        sort -u
}

# Prints what was reached, and of how much, from Eva's summary.
reached() {
    sed -n '/ANALYSIS SUMMARY/,$p' "$1" | sed -nE 's/^ +([0-9]+) functions analyzed.*/\1 functions/p
        s/^ +In these functions, ([0-9]+) statements reached \(out of ([0-9]+)\).*/, \1 of their \2 statements/p' |
        tr -d '\n'
}

# Several drivers are analysed at once.
if [ $# != 1 ]; then
    [ $# -gt 0 ] || set -- tests/eva/main_*.c
    printf '%s\n' "$@" | EVA_LOGS=$work xargs -P "$(nproc)" -n 1 "$self"
    exit
fi

name=$(basename "$1" .c)
if ! analyse "$1"; then
    printf '%s: Eva did not finish\n' "$name"
    exit 1
fi
log=$work/$name.c.log
alarms "$log" > "$log.found"
sed -n "s/^$name: //p" tests/eva/alarms.txt | sort > "$log.explained"
printf '%s: %s, %d alarms, %d s\n' "$name" "$(reached "$log")" "$(wc -l < "$log.found")" "$SECONDS"
if ! diff "$log.explained" "$log.found" > "$log.diff"; then
    sed -n "s/^>/  not explained:/p; s/^</  explained, and not found:/p" "$log.diff"
    exit 1
fi
