#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C code of a document into a file, for the compiler: extract.py DOCUMENT OUTPUT

From Markdown it takes all ```c blocks in order, from a manual page the first block of the section EXAMPLE.
Compilers and debuggers show the lines of the document.
"""
import re
import sys

BLOCKS = {"md": r"^```c\n(.*?)^```$", "scd": r"^# EXAMPLE\n\n```\n(.*?)^```$"}


def main():
    document, output = sys.argv[1:]
    with open(document, encoding="utf-8") as file:
        text = file.read()
    kind = document.rsplit(".", 1)[1]
    with open(output, "w", encoding="utf-8") as file:
        for block in re.finditer(BLOCKS[kind], text, re.M | re.S):
            line = text.count("\n", 0, block.start(1)) + 1
            code = block[1].replace("\\\\", "\\") if kind == "scd" else block[1]
            file.write(f'#line {line} "{document}"\n{code}')


if __name__ == "__main__":
    main()
