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
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# quietly COMMAND...: shows what it writes where it fails.
quietly() {
    "$@" > "$work/quietly.log" 2>&1 || { cat "$work/quietly.log"; return 1; }
}

# at_once FUNCTION NAME...: calls the function with each name, as many at a time as there are processors. Then prints a
# line for each: what the call wrote to descriptor 3, or, after all else that it wrote, that it failed.
at_once() {
    local call=$1 name failed=0
    shift
    for name in "$@"; do
        while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do
            wait -n || true # which call failed is seen below
        done
        rm -f "$work/$name.passed"
        (set -e; "$call" "$name" 3> "$work/$name.line"; touch "$work/$name.passed") > "$work/$name.log" 2>&1 &
    done
    wait
    for name in "$@"; do
        if [ ! -e "$work/$name.passed" ]; then
            cat "$work/$name.log"
            echo FAILED > "$work/$name.line"
            failed=1
        fi
    done
    for name in "$@"; do
        printf '%-12s %s\n' "$name" "$(cat "$work/$name.line")"
    done
    return "$failed"
}

# tally BUILD: how the last tests of a build folder ended. Names what was skipped: a test, or all tests of a program.
tally() {
    local log=$1/meson-logs/testlog
    local tests programs skipped
    tests=$(grep -aoE '^\[  PASSED  \] [0-9]+|^[0-9]+ passed' "$log.txt" | tr -cd '0-9\n' |
        awk '{n += $1} END {print n + 0}')
    programs=$(grep -c '"result": "OK"' "$log.json" || true)
    skipped=$({
        sed -nE 's/^\[  SKIPPED \] ([a-z]\w*)$/\1/p' "$log.txt"
        sed -nE 's|^\{"name": "[^"]* / ([^"]*)".*"result": "SKIP".*|\1|p' "$log.json"
    } | sort -u | paste -sd, | sed 's/,/, /g')
    printf '%d tests of %d programs passed%s\n' "$tests" "$programs" "${skipped:+; skipped: $skipped}"
}
