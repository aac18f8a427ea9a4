#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the structures of the headers lie in memory on each kind of machine. layout.py HEADER... writes a C program that
compiles only if the compiler agrees.
"""
import re
import sys

import headers

# Kinds of machines: the bytes of a pointer, and the alignment of a uint64_t in a structure.
KINDS = {"64 bits": (8, 8), "32 bits": (4, 8), "32 bits, words of 64 aligned to 4": (4, 4)}

HEAD = """\
{includes}
struct word {{
    char before;
    uint64_t word;
}};

#define IS(pointer, alignment) (sizeof(void *) == (pointer) && offsetof(struct word, word) == (alignment))
#define AGREES(pointer, alignment, type, size, name, offset)                                              \\
    _Static_assert(!IS(pointer, alignment) || (sizeof(type) == (size) && offsetof(type, name) == (offset)), \\
                   #type "." #name)

int main(void)
{{
    return 0;
}}

"""


class Layout:
    """All structures on one kind of machine."""

    def __init__(self, read, pointer, alignment):
        self.known = {"bool": (1, 1), "char": (1, 1), "double": (8, alignment), "size_t": (pointer, pointer),
                      "uint32_t": (4, 4), "uint64_t": (8, alignment)}  # type: (size, alignment)
        self.pointer = pointer
        self.structs = {}  # name: [(offset, type, field)]
        for header in read:
            self.known.update((name, (4, 4)) for name in header.enums)
            for declaration in header.types:
                kind, _, name = declaration.rpartition(" ")
                if kind in self.known:
                    self.known[name] = self.known[kind]
            for name, fields in header.structs.items():
                self.add(name, fields)

    def measure(self, kind):
        if kind.endswith("*"):
            return self.pointer, self.pointer
        array = re.fullmatch(r"(.*)\[(\d+)\]", kind)
        if array:
            size, alignment = self.known[array[1]]
            return size * int(array[2]), alignment
        return self.known[kind]

    def add(self, struct, fields):
        end, largest, placed = 0, 1, []
        for kind, name in fields:
            size, alignment = self.measure(kind)
            offset = -(-end // alignment) * alignment
            placed.append((offset, kind, name))
            end, largest = offset + size, max(largest, alignment)
        self.structs[struct] = placed
        self.known[struct] = (-(-end // largest) * largest, largest)


def main():
    read = [headers.read(path) for path in sys.argv[1:]]
    print(HEAD.format(includes="".join(f"#include <kvca/{header.name}>\n" for header in read)), end="")
    for kind in KINDS.values():
        layout = Layout(read, *kind)
        for struct, fields in layout.structs.items():
            for offset, _, name in fields:
                print("AGREES({}, {}, {}, {}, {}, {});".format(*kind, struct, layout.known[struct][0], name, offset))


if __name__ == "__main__":
    main()
