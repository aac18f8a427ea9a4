#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# configure.sh SOURCE FOLDER: lets nginx's sources configure themselves into FOLDER, with the flags that Debian keeps
# beside them, or else with those that make a module fit any nginx built with --with-compat.
set -euo pipefail
source_folder=$1
build_folder=$(realpath "$2")
cd "$source_folder"
NGX_CONF_FLAGS=(--with-compat --with-http_ssl_module --with-http_v2_module)
if [ -e conf_flags ]; then
    # shellcheck disable=SC1091
    . ./conf_flags
fi
./configure "${NGX_CONF_FLAGS[@]}" --builddir="$build_folder/nginx" > "$build_folder/nginx-configure.log" 2>&1 ||
    { cat "$build_folder/nginx-configure.log" >&2; exit 1; }
cp "$build_folder"/nginx/ngx_auto_{config,headers}.h "$build_folder"
