#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports what its headers declare and its map names, no more and no less; and the static one, which
has no map, takes no other names from a program: exports.py NM SHARED STATIC MAP HEADER..."""
import re
import subprocess
import sys

import headers


def defined(nm, *arguments):
    table = subprocess.run([nm, "--defined-only", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout
    symbols = [line.split() for line in table.splitlines()]
    return {symbol[2].split("@")[0] for symbol in symbols if len(symbol) == 3 and symbol[1] != "A"}


def main():
    nm, shared, static, version_map, *paths = sys.argv[1:]
    exported = defined(nm, "-D", shared)
    in_static = {name for name in defined(nm, "-g", static) if not name.startswith("__")}  # those are a sanitizer's
    declared = {name for path in paths for name in headers.read(path).functions}
    with open(version_map, encoding="utf-8") as file:
        mapped = set(re.findall(r"^\s+(\w+);", file.read(), re.M))
    faults = [f"{name} is exported, but no header declares it" for name in sorted(exported - declared)]
    faults += [f"{name} is declared, but not exported" for name in sorted(declared - exported)]
    faults += [f"{name} is declared, but not in the static library" for name in sorted(declared - in_static)]
    faults += [f"{name} is exported, but not in the map" for name in sorted(exported - mapped)]
    faults += [f"{name} is no kvca_ name" for name in sorted(exported | in_static) if not name.startswith("kvca_")]
    print("\n".join(faults) or f"{len(exported)} functions are exported, declared and mapped alike")
    return 1 if faults or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
