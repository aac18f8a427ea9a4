#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small faults in the rule, the parameters and the pool, one at a time, and shows that the tests catch each.

    tests/mutate.py [--every N] [--from N] [--jobs N] [--cc CC] [FILE]...

A fault flips a comparison or moves it by one, drops a term or a statement, or inverts a condition. Each is compiled
into a core of its own, and the unit tests run until one fails. A fault that no test catches is printed and makes
the status 1, unless tests/survivors.txt says why it cannot be seen. A line there that no fault needs is a failure,
too. FILE may be any file of the core.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import exceptions

ROOT = pathlib.Path(__file__).resolve().parent.parent
SURVIVORS = ROOT / "tests" / "survivors.txt"

FILES = ("src/rule/rule.c src/rule/explain.c src/rule/params.c src/pool/place.c src/pool/booking.c "
         "src/vector/kernel.h src/vector/first_pass.h src/vector/second_look.h src/vector/vector.c").split()

# The suites, those that find most first; their other sources; and whether they run for each variant of the rule.
SUITES = [
    ("rule/test_select", ["support/vectors"], True),
    ("rule/test_witness", [], True),
    ("vector/test_scan", [], True),
    ("pool/test_pool", [], False),
    ("pool/test_pool_model", [], False),
    ("policy/test_policy", [], False),
    ("rule/test_params", [], False),
    ("policy/test_warned", [], False),
]
# The stages to try in turn until a fault is caught: compiler options and suites.
STAGES = [
    ([], SUITES),
    (["-DKVCA_FAULT_POINTS"], [("pool/test_pool_death", [], False)]),
    (["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], SUITES),
]
VARIANTS = {"x86_64": ["plain", "avx2", "avx512"], "aarch64": ["plain", "neon"]}
# The folders of the core; "." has its other files.
CORE = [".", "rule", "vector", "policy", "pool"]
# Functions of the rule are not inlined: this compiles in a tenth of the time.
CFLAGS = [
    *"-std=c11 -O1 -ffp-contract=off -fno-unsafe-math-optimizations -w -Iinclude -Isrc -Itests".split(),
    "-DKERNEL_INLINE=__attribute__((unused))",
]
LIBRARIES = ["-lcmocka", "-lyaml", "-lm", "-lpthread"]
SHARE = "20"  # of the rounds of long tests
# A test that works longer than this has caught the fault, which made a loop endless. So has one that waits longer.
WORK_SECONDS = 20
WAIT_SECONDS = 200

# Patterns and replacements. The patterns see code without comments and strings.
REPLACEMENTS = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" & ", " | "),
    (r" \| ", " & "),
    (r" \+ 1\b", ""),
    (r" - 1\b", ""),
    (r" \+ (?!1\b)", " - "),
    (r" - (?!1\b)", " + "),
    (r" \* (?=[a-z(])", " + "),
    (r"(?<=[(= ])!(?=[a-z(])", ""),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
]
# An assignment or a call, but not a declaration.
DECLARATION = re.compile(r"^\s*(const|struct|uint\d+_t|size_t|bool|static|_Atomic|enum)\b")
STATEMENT = re.compile(
    r"^\s+(?!return\b|break\b|continue\b|case\b|goto\b)"
    r"(?:[a-z_][\w.\->\[\] /%]*(?:[-+|&]?= [^{]*|\+\+|--)|[a-z_]\w*\(.*\)|\*\w+ = [^{]*);$"
)
NOT_CODE = re.compile(r"^\s*(#|_Static_assert|//|\*|/\*|kvca_fault_point\(\);)")


class Fault:
    def __init__(self, file, line, text, mutant):
        self.file, self.line, self.text, self.mutant = file, line, text, mutant

    def key(self):
        """Its name in tests/survivors.txt. Lines move, so the name is the text."""
        return f"{self.file} | {self.text.strip()} | {self.mutant.strip() or '(dropped)'}"


def without_comments(line):
    return re.sub(r'/\*.*?\*/|/\*.*$|"(?:[^"\\]|\\.)*"', lambda match: " " * len(match[0]), line)


def faults_of(file):
    in_comment = False
    for number, text in enumerate((ROOT / file).read_text().split("\n")):
        in_comment = in_comment or text.lstrip().startswith("/*")
        ended = "*/" in text
        code = without_comments(text)
        if (in_comment and not code.strip()) or (in_comment and not ended) or NOT_CODE.match(text) or "\\" in text:
            in_comment = in_comment and not ended
            continue
        in_comment = False
        for pattern, replacement in REPLACEMENTS:
            for match in re.finditer(pattern, code):
                yield Fault(file, number, text, text[: match.start()] + replacement + text[match.end() :])
        if STATEMENT.match(code.rstrip()) and not DECLARATION.match(code):
            yield Fault(file, number, text, "")


def run(command, **more):
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    return subprocess.run(list(map(str, command)), check=False, **output, **more)


class Bench:
    """A tree of its own with the planted faults, and what is compiled from it."""

    def __init__(self, cc, folder, flags, suites):
        self.cc, self.folder, self.flags, self.suites = cc, folder, [*CFLAGS, *flags], suites
        self.lock = threading.Lock()
        shutil.copytree(ROOT / "src", folder / "src")
        shutil.copytree(ROOT / "include", folder / "include")
        shutil.copytree(ROOT / "tests", folder / "tests")
        self.sources = sorted(path for part in CORE for path in (folder / "src" / part).glob("*.c"))
        self.needs = {source: self.headers_of(source) for source in self.sources}
        self.good = {}
        for source in self.sources:
            self.good[source] = self.compile(source, source.with_suffix(".good.o"))
        self.support = [self.compile_test(f"support/{name}") for name in "exact file reference sets test".split()]
        for suite, more, _ in suites:
            for name in [suite, *more]:
                self.compile_test(name)

    def headers_of(self, source):
        listed = run([self.cc, *self.flags, "-MM", str(source)], cwd=self.folder).stdout
        return {pathlib.Path(self.folder, word).resolve() for word in listed.replace("\\\n", " ").split()[1:]}

    def test_object(self, name):
        return self.folder / "tests" / f"{name}.o"

    def compile_test(self, name):
        return self.compile(self.folder / "tests" / f"{name}.c", self.test_object(name))

    def compile(self, source, target):
        vectors = f'-DKVCA_TEST_VECTORS="{self.folder}/tests/vectors"'
        flags = [*self.flags, vectors, '-DKVCA_MESON_VERSION=""']
        done = run([self.cc, *flags, "-c", source, "-o", target], cwd=self.folder)
        return target if done.returncode == 0 else None

    def objects(self, changed):
        """All objects of the core. Compiles anew what depends on `changed`. None if it does not compile."""
        objects = []
        for source in self.sources:
            target = self.good[source]
            if changed and changed in self.needs[source]:
                target = self.compile(source, source.with_suffix(".o"))
            if target is None:
                return None
            objects.append(target)
        return objects

    def failing(self, changed=None):
        """The first suite that fails with the present tree; "" if none."""
        objects = self.objects(changed)
        if objects is None:
            return "compiler"
        # A faulty header may be used by the tests, too. Their objects are not compiled again: they witness the code
        # without the fault.
        for suite, more, by_variant in self.suites:
            program = self.folder / suite.replace("/", "-")
            parts = [self.test_object(name) for name in [suite, *more]]
            linked = run([self.cc, *self.flags, *parts, *self.support, *objects, *LIBRARIES, "-o", program])
            if linked.returncode != 0:
                return "linker"
            for variant in self.variants() if by_variant else [None]:
                if not self.passes(program, variant):
                    return suite if variant is None else f"{suite} {variant}"
        return ""

    def variants(self):
        return VARIANTS.get(subprocess.check_output(["uname", "-m"], text=True).strip(), ["plain"])

    def passes(self, program, variant):
        environment = {"KVCA_TEST_SHARE": SHARE, "PATH": "/usr/bin:/bin"}
        if variant:
            environment["KVCA_VARIANT"] = variant
        try:
            limited = ["sh", "-c", f'ulimit -t {WORK_SECONDS}; exec "$0"', program]
            return run(limited, env=environment, timeout=WAIT_SECONDS).returncode in (0, 77)
        except subprocess.TimeoutExpired:
            return False

    def caught_by(self, fault):
        path = self.folder / fault.file
        with self.lock:
            good = path.read_text()
            lines = good.split("\n")
            lines[fault.line] = fault.mutant
            path.write_text("\n".join(lines))
            caught = self.failing(path.resolve())
            path.write_text(good)
        return caught


def check(stages, faults, results):
    """Takes faults one by one off the list that all jobs share."""
    while True:
        try:
            fault = faults.popleft()
        except IndexError:  # another job took the last one
            return
        caught = ""
        for bench in stages:
            caught = caught or bench.caught_by(fault)
        results.append((fault, caught))
        what = fault.mutant.strip() or "dropped: " + fault.text.strip()
        print(f"{len(results):4} {fault.file}:{fault.line + 1}: {caught or 'SURVIVED'}: {what}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take one fault in N")
    parser.add_argument("--from", type=int, default=0, dest="start", metavar="N", help="begin with fault N of all")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    parser.add_argument("files", nargs="*", metavar="FILE", default=FILES)
    options = parser.parse_args()
    faults = [fault for file in options.files or FILES for fault in faults_of(file)][options.start :: options.every]
    if options.list:
        for fault in faults:
            print(fault.key())
        print(len(faults))
        return 0
    results = []
    with tempfile.TemporaryDirectory(prefix="kvca-mutate-") as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # Few faults reach the later stages, so all jobs share one bench for each.
        stages = [STAGES[0]] * (options.jobs - 1) + STAGES
        benches = list(pool.map(
            lambda number: Bench(options.cc, pathlib.Path(folder, str(number)), *stages[number]), range(len(stages))))
        last = benches[options.jobs - 1 :]
        for bench, failing in zip(last, pool.map(Bench.failing, last)):
            if failing:
                sys.exit(f"the tests fail without any fault: {failing}, {' '.join(bench.flags)}")
        left = collections.deque(faults)
        for done in [pool.submit(check, [first, *last[1:]], left, results) for first in benches[: options.jobs]]:
            done.result()
    whole = (options.start, options.every, options.files) == (0, 1, FILES)
    return report(results, whole)


def report(results, whole):
    reasons = exceptions.read(SURVIVORS)
    compiled = [(fault, caught) for fault, caught in results if caught not in ("compiler", "linker")]
    survivors = [fault for fault, caught in compiled if not caught]
    unexplained = [fault for fault in survivors if fault.key() not in reasons]
    unneeded = set(reasons) - {fault.key() for fault in survivors} if whole else set()
    print(f"\n{len(results)} faults, {len(results) - len(compiled)} of them no C; of {len(compiled)} the tests caught "
          f"{len(compiled) - len(survivors)}; {len(survivors) - len(unexplained)} survived for a reason that is known")
    for fault in unexplained:
        print(f"SURVIVED {fault.key()}")
    for key in sorted(unneeded):
        print(f"NOT NEEDED in {SURVIVORS.name}: {key}")
    return 1 if unexplained or unneeded else 0


if __name__ == "__main__":
    sys.exit(main())
