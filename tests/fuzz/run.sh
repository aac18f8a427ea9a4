#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the targets, each for a number of seconds: with libFuzzer (clang), or after --afl with AFL++ (afl-clang-fast,
# afl-fuzz), under the sanitizers for addresses and undefined behaviour. Prints a line for each target. New interesting
# inputs go to the build folder, and a later run goes on from them. Exits with 1 if an input failed, and says where it
# is kept. To see it fail again: BUILD/tests/fuzz/fuzz_TARGET INPUT.
set -euo pipefail

usage() {
    cat << END
Usage: tests/fuzz/run.sh [--afl] [--jobs N] [--build FOLDER] SECONDS [TARGET]...

Targets: policy, ranks, trace, selection, pool; all of them unless some are named.
  --afl           AFL++ in place of libFuzzer
  --jobs N        so many targets at a time (default 1)
  --build FOLDER  where it builds and keeps what it finds (default build-fuzz or build-fuzz-afl in the source tree)
END
}

source_root=$(cd "$(dirname "$0")/../.." && pwd)
fuzzer=libfuzzer jobs=1 build=''
while [ $# -gt 0 ]; do
    case $1 in
        --afl) fuzzer=afl ;;
        --jobs) jobs=$2; shift ;;
        --build) build=$2; shift ;;
        -h | --help) usage; exit 0 ;;
        *) break ;;
    esac
    shift
done
[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
seconds=$1
shift
targets=("$@")
[ $# -gt 0 ] || targets=(policy ranks trace selection pool)

# The longest inputs to try. Longer ones are slow and find little.
declare -A most_bytes=([policy]=4096 [ranks]=4096 [trace]=4096 [selection]=2048 [pool]=4096)
for target in "${targets[@]}"; do
    [ -n "${most_bytes[$target]:-}" ] || { printf 'run.sh: %s is not a target\n' "$target" >&2; exit 2; }
done

# An input fails if it takes longer than this, in seconds, or more memory than this, in MB.
most_seconds=10
most_memory=2048

if [ $fuzzer = afl ]; then
    build=${build:-$source_root/build-fuzz-afl}
    compiler=afl-clang-fast
    export AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_AFFINITY=1 AFL_NO_UI=1 AFL_QUIET=1
    export AFL_AUTORESUME=1 AFL_IGNORE_SEED_PROBLEMS=1
else
    build=${build:-$source_root/build-fuzz}
    compiler=clang
fi

if [ ! -d "$build" ]; then
    CC=$compiler CFLAGS="-fno-sanitize-recover=all ${CFLAGS:-}" meson setup "$build" "$source_root" -Dfuzz=true -Dtests=enabled \
        -Dtool=enabled -Dnginx=disabled --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false > "$build.log" 2>&1 ||
        { cat "$build.log"; exit 1; }
fi
meson compile -C "$build" "${targets[@]/#/fuzz_}" fuzz-seeds > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
rm -f "$build.log"
crashes=$build/crashes
mkdir -p "$crashes"

dictionary_of() {
    local dictionary=$source_root/tests/fuzz/$1.dict
    [ ! -e "$dictionary" ] || printf '%s%s\n' "$2" "$dictionary"
}

# report TARGET EXECUTIONS PER_SECOND CORPUS COVERAGE FAILED
report() {
    printf '%-10s %12s executions %9s /s %7s inputs kept   coverage %-28s %s failed\n' "$@"
}

run_libfuzzer() {
    local target=$1 found=$build/found/$1 log=$build/found/$1.log failed=0 last
    mkdir -p "$found"
    # shellcheck disable=SC2046
    "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=$most_seconds -rss_limit_mb=$most_memory \
        -max_len="${most_bytes[$target]}" $(dictionary_of "$target" -dict=) -print_final_stats=1 \
        -artifact_prefix="$crashes/$target-" \
        "$found" "$source_root/tests/fuzz/corpus/$target" "$build/tests/fuzz/seeds/$target" > "$log" 2>&1 || failed=1
    last=$(grep -E '^#[0-9]+.* cov: ' "$log" | tail -1)
    report "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")" "$(sed 's/.* corp: \([0-9]*\).*/\1/' <<< "$last")" \
        "$(sed 's/.* cov: \([0-9]*\) ft: \([0-9]*\).*/\1 edges, \2 features/' <<< "$last")" $failed
    [ $failed = 0 ] || { tail -40 "$log"; return 1; }
}

run_afl() {
    local target=$1 found=$build/found/$1 log=$build/found/$1.log seeds=$build/found/$1-seeds stats failed
    mkdir -p "$seeds"
    cp "$source_root/tests/fuzz/corpus/$target"/* "$build/tests/fuzz/seeds/$target"/* "$seeds" 2> "$log" || true
    find "$seeds" -empty -type f -delete # which AFL++ does not take
    # shellcheck disable=SC2046
    afl-fuzz -V "$seconds" -t $((most_seconds * 1000)) -m none -G "${most_bytes[$target]}" \
        $(dictionary_of "$target" -x) -i "$seeds" -o "$found" -- "$build/tests/fuzz/fuzz_$target" >> "$log" 2>&1 ||
        { tail -40 "$log"; return 1; }
    stats=$found/default/fuzzer_stats
    stat_of() {
        sed -n "s/^$1 *: *//p" "$stats"
    }
    failed=$(($(stat_of saved_crashes) + $(stat_of saved_hangs)))
    report "$target" "$(stat_of execs_done)" "$(stat_of execs_per_sec)" "$(stat_of corpus_count)" \
        "$(stat_of bitmap_cvg) of the map" $failed
    for input in "$found"/default/{crashes,hangs}/id*; do
        [ ! -e "$input" ] || cp "$input" "$crashes/$target-$(basename "$input")"
    done
    [ $failed = 0 ]
}

failed=$build/failed # has a file for each target that failed
rm -rf "$failed"
mkdir "$failed"
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n || true
    done
    { run_$fuzzer "$target" || touch "$failed/$target"; } &
done
wait
status=0
[ -z "$(ls "$failed")" ] || status=1
if [ -n "$(ls "$crashes")" ]; then
    printf 'Inputs that failed, in this run or an earlier one, are in %s:\n' "$crashes"
    ls "$crashes"
    status=1
fi
exit $status
