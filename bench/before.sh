#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/before.sh COMMIT [FOLDER]: makes FOLDER/before.so (build-before/before.so), the library of another commit as
# build/bench/compare takes it. FOLDER is kept, so that a second run takes a few seconds.
set -euo pipefail
if [[ $# -lt 1 || $# -gt 2 ]]; then
    sed -n 's/^# //p' "$0" | tail -n 2 >&2
    exit 2
fi
folder=$(realpath -m "${2:-$(dirname "$0")/../build-before}")
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify "$1^{commit}")
tree=$folder/tree
library=$folder/library

if [[ -e $tree/.git ]]; then
    git -C "$tree" checkout --quiet --detach "$commit"
else
    git worktree add --quiet --force --detach "$tree" "$commit"
fi
if [[ ! -e $library/build.ninja ]]; then
    meson setup "$library" "$tree" --buildtype release --default-library static \
        -Dyaml=disabled -Dman=disabled -Dtests=disabled -Dtool=disabled -Dbench=disabled -Dnginx=disabled
fi
ninja -C "$library" src/libkvca.a
# The adaptor is today's, the headers and the library are the commit's. The library's symbols stay inside.
"${CC:-cc}" -std=c11 -O3 -fPIC -fvisibility=hidden -shared -Wl,--exclude-libs,ALL -I "$tree/include" \
    -o "$folder/before.so" bench/common.c bench/version.c "$library/src/libkvca.a" -lm
echo "$folder/before.so is kvca of $(git log -1 --format='%h, %s' "$commit")"
