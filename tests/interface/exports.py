#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports what its headers declare and its map names, no more and no less. The static library has
no map; it takes no other names from a program. exports.py NM SHARED STATIC MAP HEADER...
"""
import sys

import headers


def main():
    nm, shared, static, version_map, *paths = sys.argv[1:]
    exported = set(headers.read_symbols(nm, "-D", shared))
    in_static = {name for name in headers.read_symbols(nm, "-g", static) if not name.startswith("__")}  # a sanitizer's
    declared = {name for path in paths for name in headers.read(path).functions}
    mapped = headers.read_map(version_map)
    faults = [f"{name} is exported, but no header declares it" for name in sorted(exported - declared)]
    faults += [f"{name} is declared, but not exported" for name in sorted(declared - exported)]
    faults += [f"{name} is declared, but not in the static library" for name in sorted(declared - in_static)]
    faults += [f"{name} is exported, but not in the map" for name in sorted(exported - mapped)]
    faults += [f"{name} is not a kvca_ name" for name in sorted(exported | in_static) if not name.startswith("kvca_")]
    print("\n".join(faults) or f"{len(exported)} functions are exported, declared and mapped alike")
    return 1 if faults or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
