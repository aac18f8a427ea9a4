# SPDX-License-Identifier: Apache-2.0
"""Lists of findings that a check lets pass: lines with a key, " :: " and the reason."""


def read(path):
    """The reason for each key."""
    known = {}
    for line in path.read_text().split("\n"):
        if line and not line.startswith("#"):
            key, _, reason = line.partition(" :: ")
            known[key] = reason
    return known
