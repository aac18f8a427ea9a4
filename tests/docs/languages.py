#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds an example with the command in its head, runs it, and compares its output with that of another program.

    languages.py --reference PROGRAM [--libraries FOLDER] [--pkg-config-path FOLDER] SOURCE
    languages.py --reference PROGRAM --built PROGRAM

The command is the source's line that ends with " policy.yaml". It runs in an empty folder. Exits with 77 if the
compiler or interpreter is not installed.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
COMMAND = re.compile(r"^\W*(\w.*) policy\.yaml$", re.M)

# A name and the policy file of each call; None for a call without a file.
CASES = (
    ("the defaults", "{}"),
    ("the smallest D, a fifth of each rank free", "{count_priority: false, capacity_fraction: 0.8}"),
    ("no capacity filter", "{capacity_fraction: null}"),
    ("a request larger than every rank", "{capacity_fraction: 0.1}"),
    ("weighed requests", "{count_priority: false, decode_active_request_weight: 77.7}"),
    ("another selector's pool", "worker_selection: {decode: default}"),
    ("a faulty policy", "capacity_fraction: ünsound\n"),
    ("no policy", None),
)


def read_commands(text):
    """Returns (what builds the example or "", what runs it)."""
    build, _, run = COMMAND.search(text)[1].rpartition(" && ")
    return build, run


def missing_tools(build, run, text):
    tools = [(build or run).split()[0]] + (["pkg-config"] if "pkg-config" in text else [])
    return [tool for tool in tools if not shutil.which(tool)]


class Runner:
    def __init__(self, folder, libraries, pkg_config_path):
        self.folder = folder
        self.environment = dict(os.environ, LC_ALL="C.UTF-8", GOCACHE=str(folder / "go"))
        for name, first in (("LD_LIBRARY_PATH", libraries), ("PKG_CONFIG_PATH", pkg_config_path)):
            if first:
                self.environment[name] = os.pathsep.join(filter(None, [first, os.environ.get(name)]))

    def run(self, command):
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def compare(self, program, reference):
        """The exit status: do both do the same in every case?"""
        failed = 0
        for name, policy in CASES:
            argument = ""
            if policy is not None:
                (self.folder / "policy.yaml").write_text(policy, encoding="utf-8")
                argument = " policy.yaml"
            expected, got = self.run(reference + argument), self.run(program + argument)
            if got != expected:
                failed += 1
                print(f"{name}: {policy}\n  expected {expected}\n  received {got}")
        print(f"{len(CASES) - failed} passed, {failed} failed")
        return 1 if failed else 0


def try_source(source, runner, reference):
    text = source.read_text(encoding="utf-8")
    build, program = read_commands(text)
    missing = missing_tools(build, program, text)
    if missing:
        print("skipped: not installed:", *missing)
        return SKIPPED
    shutil.copy(source, runner.folder)
    status, output, messages = runner.run(build)
    if status != 0:
        print(f"$ {build}\n{output}{messages}")
        return 1
    return runner.compare(program, reference)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", required=True, type=os.path.abspath, help="the program that it must agree with")
    parser.add_argument("--libraries", help="where the shared library is")
    parser.add_argument("--pkg-config-path", help="where kvca.pc is")
    parser.add_argument("--built", type=os.path.abspath, help="a program that is built already")
    parser.add_argument("source", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(pathlib.Path(folder), options.libraries, options.pkg_config_path)
        if options.built:
            return runner.compare(options.built, options.reference)
        return try_source(options.source, runner, options.reference)


if __name__ == "__main__":
    sys.exit(main())
