#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports what its headers declare and its map names: no more, no less."""
import re
import subprocess
import sys


def main():
    library, version_map, *headers = sys.argv[1:]
    table = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True)
    exported = {line.split()[2].split("@")[0] for line in table.stdout.splitlines() if " A " not in line}
    declared = set()
    for header in headers:
        with open(header, encoding="utf-8") as file:
            declared |= set(re.findall(r"^KVCA_API [^;(]*?\b(\w+)\(", file.read(), re.M))
    with open(version_map, encoding="utf-8") as file:
        mapped = set(re.findall(r"^\s+(\w+);", file.read(), re.M))
    faults = [f"{name} is exported, but no header declares it" for name in sorted(exported - declared)]
    faults += [f"{name} is declared, but not exported" for name in sorted(declared - exported)]
    faults += [f"{name} is exported, but not in the map" for name in sorted(exported - mapped)]
    faults += [f"{name} is no kvca_ name" for name in sorted(exported) if not name.startswith("kvca_")]
    print("\n".join(faults) or f"{len(exported)} functions are exported, declared and mapped alike")
    return 1 if faults or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
