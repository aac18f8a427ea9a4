#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the keys of JSON and CSV in the manual pages with the command's output: json_keys.py ROOT KVCA

The command prints every key in the pages, with a value of the given type, and no other key. If a page lists the
texts of a value, the command prints no other text.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from checks import Checks, Page, plain

TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
ORDER = ("decode_cost_blocks", "active_requests", "total_kv_blocks", "preferred_taint_multiplier")

# A policy, ranks, and the blocks of the request. Together they print each listed word.
DECISIONS = [
    ("capacity_fraction: 0.9", [(1, 1, 10, 1), (1, 1, 10, 1), (20, 0, 10, 1), (1, 5, 0, 1), (2, 1, 10, 2.5)], 0),
    ("capacity_blocks: 10", [(11, 1, 0, 1), (12, 1, 0, 1)], 0),
    ("capacity_blocks: 10", [(1, 1, 0, 1)], 11),
    ("capacity_fraction: null", [(1, 1, 10, 1), (2, 1, 10, 1.7e308)], 0),
    ("worker_selection: {decode: x, instances: [{name: x, type: dynamo-kv-capacity-aware}]}", [(1, 1, 10, 1)], 0),
]


def told(page, section):
    """The keys of a section, with their types and listed words: {key: (types, words)}."""
    keys = {}
    for term, text in re.findall(r"^(\*.*\))\n((?:\t.*\n)*)", page.sections[section], re.M):
        names, types = re.fullmatch(r"(.*) \((.*)\)", plain(term)).groups()
        words = set(re.findall(r"\*(\w+)\*", text))
        for name in names.split(", "):
            keys[name] = (types.split(" or "), words)
    return keys


def walk(value, path=""):
    """Yields the path and value of each leaf."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner, path + "[]")
    else:
        yield path, value


def is_of(value, types):
    return any(isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool)) for name in types)


def compare(checks, name, keys, documents):
    printed, words = set(), {}
    for document in documents:
        for path, value in walk(document):
            printed.add(path)
            types, _ = keys.get(path, (TYPES, None))
            checks.check(f"{name}: type of {path}", not is_of(value, types) and f"{value!r} is not {types}")
            if isinstance(value, str):
                words.setdefault(path, set()).add(value)
    checks.equal(f"{name}: keys", sorted(keys), sorted(printed))
    for path, (_, expected) in keys.items():
        if expected:
            checks.equal(f"{name}: words of {path}", sorted(expected), sorted(words.get(path, ())))


def run(kvca, arguments, text=""):
    return subprocess.run([kvca, *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          timeout=60, check=True).stdout


def decisions(kvca, folder):
    for policy, rows, blocks in DECISIONS:
        path = folder / "policy.yaml"
        path.write_text(policy)
        ranks = json.dumps([dict(zip(ORDER, row)) for row in rows])
        yield json.loads(run(kvca, ["select", "--json", "-c", str(path), "--request-blocks", str(blocks), "-"], ranks))


def main():
    root, kvca = pathlib.Path(sys.argv[1]), sys.argv[2]
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        compare(checks, "select", told(Page(root / "docs/man/kvca-select.1.scd"), "JSON OUTPUT"),
                decisions(kvca, pathlib.Path(scratch)))
    keys = told(Page(root / "docs/man/kvca-replay.1.scd"), "OUTPUT")
    trace = ["replay", "--synthetic=requests=50", "--ranks", "2", "--seeds", "2"]
    results = json.loads(run(kvca, trace + ["--format", "json"]))
    compare(checks, "replay", keys, results)
    checks.check("replay: order", list(results[0]) != list(keys) and f"{list(results[0])}")
    header = run(kvca, trace + ["--format", "csv"]).splitlines()[0]
    checks.check("replay: header of CSV", header.split(",") != list(keys) and header)
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
