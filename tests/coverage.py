#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that the tests run every line and take every branch of the library.

    tests/coverage.py [--cc CC] [BUILD]

Builds the tests with gcov's counters in the folder BUILD, runs them, and adds up what gcov reports for src/, except
the command and the replay model. Prints lines and ways of branches that never ran. The status is then 1, unless
tests/uncovered.txt gives the reason. A line there that is not needed is a failure, too. Code for other processors is
left out and named.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import exceptions

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
APART = ["program", "tool", "replay", "nginx"]
REASONS = ROOT / "tests" / "uncovered.txt"
# Atomic counters, because of threads. Functions of the rule are not inlined.
FLAGS = ["-fprofile-update=atomic", "-DKERNEL_INLINE=__attribute__((unused))"]
SUITES = ["unit", "config", "replay", "command", "fuzz", "allocations"]


def run(command, **more):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))}: status {done.returncode}")
    return done.stdout


def build_and_test(folder, compiler):
    environment = dict(os.environ, CC=compiler, KVCA_TEST_SHARE=os.environ.get("KVCA_TEST_SHARE", "10"))
    if not (folder / "build.ninja").exists():
        run(
            ["meson", "setup", folder, ROOT, "-Db_coverage=true", "--buildtype=debug",
             "-Dtests=enabled", "-Dbench=disabled", "-Dnginx=disabled", f"-Dc_args={' '.join(FLAGS)}"],
            env=environment,
        )
    for counters in folder.rglob("*.gcda"):
        counters.unlink()
    suites = [f"--suite={suite}" for suite in SUITES]
    # meson test builds what it needs.
    run(["meson", "test", "-C", folder, "--timeout-multiplier", "5", *suites], env=environment)


class Line:
    """The counts of a line, in all the places that it was compiled to."""

    def __init__(self):
        self.count = 0
        self.places = []

    def add(self, entry):
        self.count += entry["count"]
        if entry["branches"]:
            self.places.append([way["count"] for way in entry["branches"]])

    def ways(self):
        """How often each way was taken. If inline code appears several times in a function, the counts of its ways are
        added.
        """
        width = math.gcd(*(len(place) for place in self.places))
        return [sum(sum(place[way::width]) for place in self.places) for way in range(width)]

    def not_taken(self):
        return [way for way, count in enumerate(self.ways()) if count == 0]


def read_counters(folder):
    """The lines of each file of the library that has code."""
    files = collections.defaultdict(lambda: collections.defaultdict(Line))
    for counters in sorted(folder.rglob("*.gcda")):
        told = run(["gcov", "--json-format", "--branch-probabilities", "--stdout", counters], cwd=folder)
        for document in told.splitlines():
            for file in json.loads(document)["files"] if document.startswith("{") else []:
                path = (folder / file["file"]).resolve()
                if path.is_relative_to(SOURCES) and path.parent.name not in APART:
                    for entry in file["lines"]:
                        files[str(path.relative_to(SOURCES))][entry["line_number"]].add(entry)
    return files


def variants_here(folder):
    names = set()
    for variant in ("plain", "avx2", "avx512", "neon"):
        done = subprocess.run([folder / "tests" / "test_scan"], env={"KVCA_VARIANT": variant, "KVCA_TEST_SHARE": "100"},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            names.add(variant)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--no-tests", action="store_true", help="report on what was run in BUILD before")
    parser.add_argument("build", nargs="?", metavar="BUILD", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kvca-coverage-") as scratch:
        folder = (options.build or pathlib.Path(scratch)).resolve()
        if not options.no_tests:
            build_and_test(folder, options.cc)
        files = read_counters(folder)
        lacking = {"avx2", "avx512", "neon"} - variants_here(folder)
    return report(files, lacking)


def report(files, lacking):
    known = exceptions.read(REASONS)
    used = set()
    faults = 0
    lines = ways = ran = taken = 0
    for name in sorted(files):
        if any(variant in name for variant in lacking):
            continue
        text = (SOURCES / name).read_text().split("\n")
        for number, line in sorted(files[name].items()):
            lines += 1
            if line.count:
                ran += 1
                ways += len(line.ways())
                taken += len(line.ways()) - len(line.not_taken())
            missed = "never runs" if line.count == 0 else "never goes one way" if line.not_taken() else None
            if not missed:
                continue
            key = f"{name} | {text[number - 1].strip()} | {missed}"
            if key in known:
                used.add(key)
                continue
            faults += 1
            print(f"src/{name}:{number}: {missed} ({line.not_taken() or 'line'}): {text[number - 1].strip()}")
    for key in sorted(set(known) - used):
        here = not any(variant in key.split(" |")[0] for variant in lacking)
        if here and not known[key].startswith("sometimes:"):
            faults += 1
            print(f"NOT NEEDED in {REASONS.name}: {key}")
    print(f"{len(files)} files, {lines} lines of which {ran} ran, {ways} ways of branches of which {taken} were taken; "
          f"{len(used)} exceptions in tests/{REASONS.name}")
    if lacking:
        print(f"left out: code for {', '.join(sorted(lacking))}, which this processor is not")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
