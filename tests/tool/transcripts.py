#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ```console blocks of Markdown files and compares their output.

    $ command          run by sh in the source folder; lines that begin with "> " continue it
    output             standard output and standard error, in order
    [1]                the exit status, if it is not 0

--update rewrites the output in the files instead.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def cases(block):
    """Splits a block into [command, expected output]."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        else:
            found[-1][1] += line + "\n"
    return found


def run(command, root, environment):
    done = subprocess.run(["sh", "-c", command], cwd=root, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="backslashreplace",
                          timeout=60)
    return done.stdout + (f"[{done.returncode}]\n" if done.returncode else "")


def check_files(options, environment):
    passed = failed = 0
    for name in options.files:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        rewritten = []

        def check(match):
            nonlocal passed, failed
            shown = ""
            for command, expected in cases(match[1]):
                got = run(command, options.root, environment)
                shown += "$ " + command.replace("\n", "\n> ") + "\n" + got
                if got == expected:
                    passed += 1
                    continue
                failed += 1
                print(f"{name}: $ {command}")
                sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), got.splitlines(True),
                                                           "expected", "received"))
            rewritten.append(name)
            return "```console\n" + shown + "```"

        updated = BLOCK.sub(check, text)
        if not rewritten:
            failed += 1
            print(f"{name}: no console block")
        if options.update:
            with open(name, "w", encoding="utf-8") as file:
                file.write(updated)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed and not options.update else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, help="the folder that commands run in")
    parser.add_argument("--path", action="append", default=[], help="a folder to find commands in, before PATH's")
    parser.add_argument("--update", action="store_true", help="write the new output into the files")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = os.pathsep.join(options.path + [os.environ["PATH"]])
        environment = dict(os.environ, LC_ALL="C", PATH=path, TMPDIR=scratch)
        return check_files(options, environment)


if __name__ == "__main__":
    sys.exit(main())
