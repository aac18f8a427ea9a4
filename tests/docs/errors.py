#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/configuration.md with what `kvca check` says: errors.py ROOT KVCA

- Each value in the table of values is accepted or refused, as the table says.
- Each message of the vectors and of the documents below is in the tables of errors once, and each row is printed.
- Each text in the sources that makes part of a message is in the tables.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from checks import Checks, read

SOURCES = ["config/config.c", "config/document.c", "config/fields.c", "config/file.c", "config/scalar.c"]
# For Mooncake traces, which the same code reads.
OF_TRACES = {"one JSON object"}
SHORTEST = 12  # shorter pieces of messages say nothing
# Placeholders. Other words in capitals stand for themselves.
PLACEHOLDER = re.compile(r"\b(FOUND|KEY|KNOWN|LIST|LINE|COLUMN|PARAMETER|KIND|NAME|ROLE|TYPE|WHAT|PROBLEM|CONTEXT|REASON)\b")

# Not in the vectors.
DOCUMENTS = [
    "",
    "# nothing\n",
    "x" * (2 << 20),
    "[" * 65 + "]" * 65,
    "%TAG ! x\n---\n{}\n",
    "a: 1\n---\nb: 2\n",
    "capacity_fraction: *none\n",
    "capacity_fraction: &a [*a]\n",
    "{[1]: 2}\n",
    "<<: {}\n",
    "worker_selection: 5\n",
    "worker_selection: {decode: kvca, instances: 5}\n",
    "worker_selection: {decode: kv, instances: [{name: kvca, type: x}]}\n",
    "worker_selection: {decode: [], instances: []}\n",
    "worker_selection: {instances: [{name: default, type: x}]}\n",
    "worker_selection: {instances: [{name: a, type: x}, {name: a, type: x}]}\n",
    "worker_selection: {instances: [{type: x}]}\n",
    "worker_selection: {instances: [{name: 5, type: x}]}\n",
    "worker_selection: {decode: default}\n",
    "worker_selection: {decode: a, instances: [{name: a, type: dynamo-kv-capacity}]}\n",
    "worker_selection: {}\ncapacity_fraction: 1\n",
    "capacity_fraction: 'a\n",
    b"\xff",
]
# No document causes these.
UNSEEN = {"out of memory"}


def section(text, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def rows(text):
    return [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]


def pattern(message):
    """The messages that a row stands for, as a pattern."""
    parts = re.split(r"(\[.*?\])", message)
    expression = "".join(f"(?:{plain(part[1:-1])})?" if part.startswith("[") else plain(part) for part in parts)
    return re.compile(expression)


def plain(text):
    return PLACEHOLDER.sub(".+", re.escape(text))


class Command:
    def __init__(self, kvca, folder):
        self.kvca = kvca
        self.path = folder / "policy.yaml"

    def check(self, document, role="decode"):
        """The status, and the message without its place."""
        self.path.write_bytes(document if isinstance(document, bytes) else document.encode())
        return self.run("--role", role, str(self.path))

    def run(self, *arguments):
        done = subprocess.run([self.kvca, "check", "--quiet", *arguments], stdout=subprocess.PIPE, timeout=60,
                              stderr=subprocess.STDOUT, text=True, errors="backslashreplace", check=False)
        return done.returncode, re.sub(r"^[^ ]*?:(\d+:\d+:)? ", "", done.stdout.rstrip("\n"))


def check_values(checks, command, text):
    for name, accepted, refused in rows(section(text, "Values")):
        for cell, expected in (accepted, 0), (refused, 1):
            for value in re.findall(r"`(.*?)`", cell):
                status, message = command.check(f"{name.strip(' `')}: {value}\n")
                checks.check(f"{name.strip()}: {value}", status != expected and (message or "accepted"))


def vectors(root):
    """The documents and roles of tests/vectors/config.yaml."""
    for vector in re.split(r"^- name: ", read(root / "tests/vectors/config.yaml"), flags=re.M)[1:]:
        role = re.search(r"^  role: (\w+)", vector, re.M)
        yield json.loads(re.search(r'^  text: (".*")$', vector, re.M)[1]), role[1] if role else "decode"


def messages(command, root):
    for document, role in [*vectors(root), *((document, "decode") for document in DOCUMENTS)]:
        status, message = command.check(document, role)
        if status:
            yield message
    yield command.run("missing.yaml")[1]


def check_messages(checks, command, root, shown):
    patterns = {message: pattern(message) for message in shown}
    seen = set()
    for message in sorted(set(messages(command, root))):
        fitting = [row for row, expression in patterns.items() if expression.fullmatch(message)]
        # "parameters must be a mapping" belongs only to the general row; special rows do not fit it.
        checks.check(message[:200], len(fitting) != 1 and f"{len(fitting)} rows for it: {fitting}")
        seen |= set(fitting)
    for row in shown:
        checks.check(f"row {row}", row not in seen | UNSEEN and "no document causes it")


def pieces(source):
    """The string literals of messages, without conversions."""
    code = re.sub(r"/\*(?:.|\n)*?\*/|^#include.*$", "", source, flags=re.M)
    for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code):
        text = literal.replace('\\"', '"').replace("%%", "%")
        for piece in re.split(r"%(?:\.\*)?[zu]*[a-z]", text):
            if len(piece) >= SHORTEST and " " in piece:
                yield piece


def check_sources(checks, root, text):
    told = re.sub(r"[\[\]]", "", section(text, "Every error, with its remedy"))
    told = re.sub(r"\s+", " ", told.replace("64", "").replace("1048576", ""))
    for name in SOURCES:
        for piece in sorted(set(pieces(read(root / "src" / name))) - OF_TRACES):
            checks.check(f"{name}: '{piece}'", re.sub(r"\s+", " ", piece) not in told and "is in no message there")


def main():
    root, kvca = pathlib.Path(sys.argv[1]), sys.argv[2]
    text = read(root / "docs/configuration.md")
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        command = Command(kvca, pathlib.Path(folder))
        check_values(checks, command, text)
        errors, library = section(text, "Every error, with its remedy").split("From the library alone")
        shown = [row[0].strip(" `") for row in rows(errors)]
        check_messages(checks, command, root, shown)
    check_sources(checks, root, text)
    statuses = read(root / "src/status.c")
    for row in rows(library):
        checks.check(row[0], f'"{row[0].strip(" `")}"' not in statuses and "is not the text of a status")
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
