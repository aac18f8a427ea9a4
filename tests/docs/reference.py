#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the API reference, in which every declaration must be documented: reference.py DOXYFILE

Doxygen must print nothing, and write a page for each header.
"""
import pathlib
import re
import subprocess
import sys

from checks import Checks, need, read, skip

OLDEST = (1, 9, 2)  # older ones do not know all settings of the Doxyfile


def main():
    need("doxygen")
    version = subprocess.run(["doxygen", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < OLDEST:
        skip(f"doxygen is {version.strip()}")
    settings = read(sys.argv[1])
    output = pathlib.Path(re.search(r'^OUTPUT_DIRECTORY *= "(.*)"', settings, re.M)[1]) / "reference"
    done = subprocess.run(["doxygen", sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False)
    checks = Checks()
    checks.check("doxygen", done.stdout or (done.returncode and f"status {done.returncode}"))
    for page, name in {"index": "kvca_select", "kvca_8h": "kvca_explain", "pool_8h": "kvca_pool_place",
                       "config_8h": "kvca_config_load_buffer"}.items():
        text = read(output / f"{page}.html")
        checks.check(page, name not in text and f"{name} is not in it")
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
