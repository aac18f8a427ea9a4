#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the interface with its record, interface.txt: what the headers declare, how it lies in memory on each kind
of machine, and the versions under which the library exports it.

    recorded.py [--record] --nm NM --library LIBRARY HEADER...

--record writes the record instead.
"""
import argparse
import difflib
import pathlib
import sys

import headers
from layout import KINDS, Layout

RECORD = pathlib.Path(__file__).resolve().parent / "interface.txt"
ADVICE = """
The interface is not the recorded one. If that is meant:
- `meson compile -C BUILD record-interface` records it, and the record is committed with the change;
- the version in kvca.h and meson.build rises as kvca.h says, and where a line changed or went, so do the soversion in
  src/meson.build and the version in src/kvca.map, since programs that were linked before no longer fit;
- docs/examples/router.py and router.rs, which repeat the structures, follow."""


def describe_struct(name, layouts):
    yield f"  struct {name}, of " + " ".join(f"{layout.known[name][0]:3}" for layout in layouts) + " bytes"
    for places in zip(*(layout.structs[name] for layout in layouts)):
        offsets = " ".join(f"{offset:3}" for offset, _, _ in places)
        yield f"    {offsets}  {places[0][1]} {places[0][2]}"


def describe(header, versions, layouts):
    yield header.name
    for name, declaration in header.functions.items():
        yield f"  {versions.get(name, 'not exported')}: {declaration}"
    yield from (f"  typedef {declaration}" for declaration in header.types)
    yield from (f"  #define {name} {text}" for name, text in header.macros.items())
    for name, values in header.enums.items():
        yield f"  enum {name}"
        yield from (f"    {value} = {number}" for value, number in values.items())
    for name in header.structs:
        yield from describe_struct(name, layouts)


def describe_all(options):
    read = [headers.read(path) for path in options.headers]
    versions = headers.read_symbols(options.nm, "-D", options.library)
    layouts = [Layout(read, *kind) for kind in KINDS.values()]
    yield "Sizes and offsets are those on machines of " + "; ".join(KINDS) + "."
    for header in read:
        yield from describe(header, versions, layouts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--nm", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("headers", nargs="+")
    options = parser.parse_args()
    lines = list(describe_all(options))
    if options.record:
        RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return 0
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    found = list(difflib.unified_diff(recorded, lines, "as recorded", "as it is", n=1, lineterm=""))
    print("\n".join(found + [ADVICE]) if found else f"{len(lines)} lines agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
