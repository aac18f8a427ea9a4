#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the nginx module: a real nginx between clients and toy backends, all on 127.0.0.1.

    tests/nginx/run.py --module BUILD/src/nginx/ngx_http_kvca_module.so [--faults FILE] [--under COMMAND] [NAME...]

Without a NAME all tests run. A NAME selects the tests of the file test_NAME.py, or those whose printed names match it:
booking, 'deaths.*killed*'. FILE is the module built with fault points; without it the tests that need it are skipped.
COMMAND runs nginx, such as `env LD_PRELOAD=libasan.so` for a module with sanitizers. The status is 77 if nginx or the
module is missing.
"""

import argparse
import fnmatch
import pathlib
import shlex
import sys
import time
import unittest

import cases
import harness

FOLDER = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()
        print(f"{name_of(test)} ... ", end="", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        print(f"ok ({time.monotonic() - self.begin:.1f} s)", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"skipped: {reason}", flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f"FAILED\n{self.failures[-1][1]}", flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        print(f"FAILED\n{self.errors[-1][1]}", flush=True)


def name_of(test):
    """For example placing.forty_clients_stay_within_the_capacities."""
    module, _, method = test.id().partition(".")
    return f"{module.removeprefix('test_')}.{method.rpartition('.')[2].removeprefix('test_')}"


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def wanted(test, names):
    patterns = [pattern for name in names for pattern in (name, f"{name}.*")]
    return not names or any(fnmatch.fnmatch(name_of(test), pattern) for pattern in patterns)


def missing(options):
    if not options.module:
        return "the nginx module was not built, or nginx cannot load it here"
    if not harness.find_nginx():
        return "there is no nginx"
    for path in filter(None, (options.module, options.faults)):
        if not pathlib.Path(path).exists():
            return f"there is no {path}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module")
    parser.add_argument("--faults")
    parser.add_argument("--under", default="")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    why = missing(options)
    if why:
        print(f"skipped: {why}")
        return SKIPPED
    cases.MODULE = pathlib.Path(options.module).resolve()
    cases.UNDER = shlex.split(options.under)
    cases.FAULTS = options.faults and pathlib.Path(options.faults).resolve()
    suite = unittest.TestLoader().discover(str(FOLDER), "test_*.py")
    tests = [test for test in flatten(suite) if wanted(test, options.names)]
    result = Result()
    unittest.TestSuite(tests).run(result)
    failed = len(result.failures) + len(result.errors)
    skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
    print(f"{result.passed} passed, {failed} failed{skipped}")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
