# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the documentation: counting named cases, and reading manual pages."""
import re
import shutil
import sys

SKIPPED = 77


class Checks:
    """Counts cases and prints those that failed."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, name, fault):
        """`fault` says what is wrong; empty or None if nothing is."""
        if fault:
            self.failed += 1
            print(f"{name}: {fault}")
        else:
            self.passed += 1

    def equal(self, name, got, expected):
        missing = [item for item in expected if item not in got]
        surplus = [item for item in got if item not in expected]
        faults = [f"missing: {missing}"] * bool(missing) + [f"not expected: {surplus}"] * bool(surplus)
        if not faults and got != expected:
            faults = [f"{got} is not {expected}"]
        self.check(name, "; ".join(faults))

    def status(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def need(*programs):
    """Skips the test if one of the programs is missing."""
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Page:
    """The source of a manual page."""

    def __init__(self, path):
        self.text = read(path)
        self.sections = dict(re.findall(r"^# ([^\n]+)\n\n(.*?)(?=^# |\Z)", self.text, re.M | re.S))

    def terms(self, section):
        """The terms of a section: lines that begin in bold and stand alone or before an indented text."""
        return re.findall(r"^(?:\t(?=\*.*\n\t\t))?(\*.*)$", self.sections[section], re.M)

    def literals(self):
        """The literal blocks, as a reader sees them."""
        return [block.replace("\\\\", "\\") for block in re.findall(r"^```\n(.*?)^```$", self.text, re.M | re.S)]


def plain(text):
    """A line of a page without its markup."""
    return re.sub(r"_([^_\s]+)_(?!\w)", r"\1", text.replace("*", "")).replace("\\", "")
