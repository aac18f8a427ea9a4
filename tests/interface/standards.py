#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each public header, alone and included twice, in each standard with each compiler that is there. There must
be no warning: standards.py INCLUDE_FOLDER HEADER...
"""
import itertools
import pathlib
import shutil
import subprocess
import sys

WARNINGS = ("-Wall -Wextra -Wpedantic -Wcast-align -Wcast-qual -Wconversion -Wdouble-promotion -Wmissing-declarations "
            "-Wredundant-decls -Wshadow -Wsign-conversion -Wundef -Wwrite-strings -Werror").split()
LANGUAGES = {
    "c": (("gcc", "clang"), ("c11", "c17", "c2x"), ["-Wmissing-prototypes", "-Wstrict-prototypes"]),
    "c++": (("g++", "clang++"), ("c++17", "c++20", "c++2b"), ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"]),
}
CLANG_WARNINGS = ["-Wdocumentation", "-Wdocumentation-pedantic", "-Wno-documentation-unknown-command"]
PROGRAM = """\
#include <kvca/{0}>
#include <kvca/{0}>

int main(void)
{{
    kvca_params params = KVCA_PARAMS_DEFAULT;
    params.capacity_fraction = KVCA_NO_CAPACITY_FILTER;
    return kvca_params_validate(&params) == KVCA_OK ? 0 : 1;
}}
"""


def compile_text(command, language, text):
    return subprocess.run([*command, "-x", language, "-fsyntax-only", "-"], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def commands():
    """(language, [compiler, standard]) for those that are there."""
    for language, (compilers, standards, _) in LANGUAGES.items():
        for command in itertools.product(filter(shutil.which, compilers), standards):
            command = [command[0], "-std=" + command[1]]
            if compile_text(command, language, "").returncode == 0:
                yield language, command


def main():
    folder, *names = sys.argv[1:]
    tried, failed = [], 0
    for language, command in commands():
        tried.append(" ".join(command))
        warnings = WARNINGS + LANGUAGES[language][2] + (CLANG_WARNINGS if "clang" in command[0] else [])
        for name in names:
            text = PROGRAM.format(pathlib.Path(name).name)
            done = compile_text([*command, *warnings, "-I", folder], language, text)
            if done.returncode != 0:
                failed += 1
                print(f"{name}, {tried[-1]}:\n{done.stdout}")
    print(f"{len(tried) * len(names) - failed} passed, {failed} failed; by", ", ".join(tried))
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
