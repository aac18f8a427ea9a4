# SPDX-License-Identifier: Apache-2.0
# Functions that the scripts of this folder share. Source this file.

# Sets `work` to FOLDER if the arguments begin with "--work FOLDER", or to a temporary folder. Sets `arguments` to the
# rest.
take_work_folder() {
    if [ "${1:-}" = --work ]; then
        work=$(realpath -m "$2")
        mkdir -p "$work"
        shift 2
    else
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
    fi
    arguments=("$@")
}

# install_packages PACKAGE...: installs those that are missing.
install_packages() {
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q ' installed$' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    (
        flock 9 # another script may be installing
        apt-get update -qq &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
    ) 9> /run/lock/kvca-packages
}

# quietly COMMAND...: shows its output only if it fails.
quietly() {
    local log
    log=$(mktemp -p "$work")
    "$@" > "$log" 2>&1 || { cat "$log"; return 1; }
    rm "$log"
}

# at_once FUNCTION NAME...: calls the function with each name, as many at a time as there are processors. When a call
# ends, prints how long it took and what it wrote to descriptor 3, or that it failed. At the end prints all output of
# the failed calls. Do not use it in a condition: there the shell does not stop a function at its first error.
at_once() {
    local call=$1 name failed=0
    shift
    for name in "$@"; do
        while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do
            wait -n || true # failed calls are found below
        done
        call_one "$call" "$name" &
    done
    wait
    for name in "$@"; do
        if [ ! -e "$work/$name.passed" ]; then
            printf '\n--- %s\n' "$name"
            cat "$work/$name.log"
            failed=1
        fi
    done
    return "$failed"
}

call_one() {
    local call=$1 name=$2 begin=$SECONDS
    rm -f "$work/$name.passed"
    (set -e; "$call" "$name" 3> "$work/$name.lines"; touch "$work/$name.passed") > "$work/$name.log" 2>&1 &
    wait $! || true # a call inside this list would not stop at its first error
    [ -e "$work/$name.passed" ] || echo FAILED > "$work/$name.lines"
    printf '%-18s %4d s  %s\n' "$name" $((SECONDS - begin)) "$(sed '2,$s/^/                           /' "$work/$name.lines")"
}

# skipped_programs BUILD: the skipped programs of the last tests in a build folder, one a line.
skipped_programs() {
    sed -nE 's|^\{"name": "[^"]* / ([^"]*)".*"result": "SKIP".*|\1|p' "$1/meson-logs/testlog.json"
}

# tally BUILD: counts the last tests in a build folder. Names skipped tests, and programs whose tests were all skipped.
tally() {
    local log=$1/meson-logs/testlog
    local tests programs skipped
    tests=$({ grep -aoE '^\[  PASSED  \] [0-9]+|^[0-9]+ passed' "$log.txt" || true; } | tr -cd '0-9\n' |
        awk '{n += $1} END {print n + 0}')
    programs=$(grep -c '"result": "OK"' "$log.json" || true)
    skipped=$({
        sed -nE 's/^\[  SKIPPED \] ([a-z]\w*)$/\1/p' "$log.txt"
        skipped_programs "$1"
    } | sort -u | paste -sd, | sed 's/,/, /g')
    printf '%d tests of %d programs passed%s\n' "$tests" "$programs" "${skipped:+; skipped: $skipped}"
}
