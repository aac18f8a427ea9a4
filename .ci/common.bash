# SPDX-License-Identifier: Apache-2.0
# What scripts of this folder share; to be sourced.

# Sets `work` to the folder that the arguments begin with, as "--work FOLDER", or else to one that goes with the script;
# and `arguments` to the rest.
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

# install_packages PACKAGE...: those that the machine lacks.
install_packages() {
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q ' installed$' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    (
        flock 9 # others may be at it
        apt-get update -qq &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
    ) 9> /run/lock/kvca-packages
}

# quietly COMMAND...: shows what it writes where it fails.
quietly() {
    local log
    log=$(mktemp -p "$work")
    "$@" > "$log" 2>&1 || { cat "$log"; return 1; }
    rm "$log"
}

# at_once FUNCTION NAME...: calls the function with each name, as many at a time as there are processors, and prints of
# each, when it ends, how long it took and what it wrote to descriptor 3, or that it failed; in the end all that those
# which failed wrote. (Not to be called in a condition: there the shell would not stop a function at its first fault.)
at_once() {
    local call=$1 name failed=0
    shift
    for name in "$@"; do
        while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do
            wait -n || true # which call failed is seen below
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
    wait $! || true # it would not stop at the first fault as a part of this list
    [ -e "$work/$name.passed" ] || echo FAILED > "$work/$name.lines"
    printf '%-18s %4d s  %s\n' "$name" $((SECONDS - begin)) "$(sed '2,$s/^/                           /' "$work/$name.lines")"
}

# skipped_programs BUILD: one a line, of the last tests of a build folder.
skipped_programs() {
    sed -nE 's|^\{"name": "[^"]* / ([^"]*)".*"result": "SKIP".*|\1|p' "$1/meson-logs/testlog.json"
}

# tally BUILD: how the last tests of a build folder ended. Names what was skipped: a test, or all tests of a program.
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
