#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes everything that the command asks of the system fail once, and checks what it says.

    allocations   the first allocation fails, then the second and so on, alone and with all later ones (faults.c)
    calls         each system call of the command fails (strace injects the error)
    streams       files and streams that the kernel does not let it read or write

Each run must end with its usual result, or with a status other than 0 and a message that names what failed. What it
has printed until then must be part of the usual result.

Of many allocations only the first hundred and some of the rest are tried. KVCA_TEST_ALL=1 tries all, and more
errors.
"""
import argparse
import concurrent.futures
import dataclasses
import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

ALL = os.environ.get("KVCA_TEST_ALL", "") not in ("", "0")
SKIPPED = 77

FILES = {
    "policy.yaml": """worker_selection:
  decode: kvca
  instances:
    - name: kvca
      type: dynamo-kv-capacity-aware
      parameters: &p {capacity_fraction: 0.9, decode_active_request_weight: 1.5}
    - {name: other, type: dynamo-kv-capacity-aware, parameters: *p}
""",
    "bare.yaml": "capacity_fraction: 0.5\ncapacity_blocks: 1000\n",
    "faulty.yaml": "capacity_fraction: 95\n",
    'odd "name" \\.yaml': "capacity_fraction: null\n",
    "ranks.yaml": "request_blocks: 40\nranks:\n" + "".join(
        f"  - {{worker_id: {row}, decode_cost_blocks: {row * 37 % 1000}, active_requests: {row % 3}, "
        f"total_kv_blocks: {900 if row % 4 else 'null'}, preferred_taint_multiplier: 1.25}}\n" for row in range(6)),
    "many.yaml": "decode_cost_blocks: [%s]\nactive_requests: [%s]\n" % (
        ", ".join(str(row * 37 % 1000) for row in range(200)), ", ".join(str(row % 3) for row in range(200))),
    "faulty-ranks.yaml": "- {decode_cost_blocks: 1}\n",
    "plain.csv": "arrival_s,prompt_tokens,output_tokens\n0,100,5\n2,300,9\n1,200,7\n",
    "azure.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
        f"2023-11-16 18:17:0{i % 10}.9799600,{100 + i},{1 + i % 7}\n" for i in range(10)),
    "mooncake.jsonl": "".join(
        f'{{"timestamp": {i * 250}, "input_length": {100 + i}, "output_length": {1 + i}, "hash_ids": [1, 2, {i}], '
        f'"note": {{"text": "a \\"text\\" that is long \\u00e4nough", "list": [1.5e3, true, null, []]}}}}\n'
        for i in range(2)),
    "faulty.csv": "arrival_s,prompt_tokens,output_tokens\n0,100,x\n",
    "empty.csv": "",
}


@dataclasses.dataclass
class Case:
    arguments: list
    stdin: str = None  # the name of a file

    def __str__(self):
        return "kvca " + " ".join(self.arguments) + (f" < {self.stdin}" if self.stdin else "")


CASES = [
    Case(["--version"]),
    Case(["--help"]),
    Case([]),
    Case(["slect"]),
    Case(["check", "--help"]),
    Case(["check", "--role", "x", "policy.yaml"]),
    Case(["check", "policy.yaml"]),
    Case(["check", "bare.yaml", "missing.yaml", "faulty.yaml", "policy.yaml", "gone.yaml"]),
    Case(["check", "--role", "prefill", "policy.yaml"]),
    Case(["check", "-"], "bare.yaml"),
    Case(["select", "--help"]),
    Case(["select", "-c", "policy.yaml", "ranks.yaml"]),
    Case(["select", "-c", "bare.yaml", "many.yaml"]),
    Case(["select", "-c", "policy.yaml", "--json", "ranks.yaml"]),
    Case(["select", "-c", 'odd "name" \\.yaml', "--json", "many.yaml"]),
    Case(["select", "-c", "policy.yaml", "-"], "ranks.yaml"),
    Case(["select", "-c", "-", "ranks.yaml"], "policy.yaml"),
    Case(["select", "-c", "policy.yaml", "faulty-ranks.yaml"]),
    Case(["replay", "--help"]),
    Case(["replay", "--ranks", "2", "plain.csv"]),
    Case(["replay", "--ranks", "2", "--policy", "policy.yaml", "--policy", "p2c", "--seeds", "3", "azure.csv"]),
    Case(["replay", "--ranks", "2", "--format", "csv", "mooncake.jsonl"]),
    Case(["replay", "--ranks", "2", "--format", "json", "-"], "plain.csv"),
    Case(["replay", "--ranks", "2", "--capacity", "50,80", "--hold", "--synthetic=requests=40"]),
    Case(["replay", "--engine", "plain", "--independent", "--track-output-blocks", "--synthetic=requests=20"]),
    Case(["replay", "faulty.csv"]),
    Case(["replay", "empty.csv"]),
]


@dataclasses.dataclass
class Outcome:
    status: int
    out: str
    err: str


def run(command, case, folder, environment=None, **streams):
    """Runs the command for a case. `streams` replace its usual ones."""
    opened = open(os.path.join(folder, case.stdin), "rb") if case.stdin else None
    given = {"stdin": opened or subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    try:
        done = subprocess.run(command + case.arguments, cwd=folder, text=True, errors="backslashreplace", timeout=60,
                              env={**os.environ, "LC_ALL": "C", **(environment or {})}, check=False, **given)
    finally:
        if opened:
            opened.close()
    return Outcome(done.returncode, done.stdout or "", done.stderr or "")


def is_part(out, whole):
    """Whether the lines are lines of the whole; the last one may be cut."""
    lines = out.split("\n")
    return set(lines[:-1]) <= set(whole.split("\n")) and lines[-1] in whole


def judge(got, reference, message):
    """What is wrong with a run in which something failed. The message must match the pattern `message`. None if all is
    well.
    """
    if got == reference:
        return None  # it managed without
    if got.status < 0:
        return f"killed by {signal.Signals(-got.status).name}"
    if got.status == 0:
        return "a different result with status 0"
    if got.status not in (1, reference.status):
        return f"status {got.status}"
    if not re.search(message, got.err, re.MULTILINE):
        return f"no message that matches {message}"
    return None if is_part(got.out, reference.out) else "the output is not part of the usual one"


class Test:
    """Runs jobs side by side and counts them."""

    def __init__(self, options, folder):
        self.kvca = [os.path.abspath(options.kvca)]
        self.faults = options.faults and os.path.abspath(options.faults)
        self.folder = folder
        self.failed = 0
        self.done = 0
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())

    def reference(self, case):
        return run(self.kvca, case, self.folder)

    def report(self, case, what, wrong, got):
        self.failed += 1
        if self.failed <= 40:
            print(f"{case}\n    {what}: {wrong}\n    status {got.status}: {got.err.strip()[-300:]}")

    def each(self, case, jobs, work):
        """work(job) returns (what failed, what is wrong or None, the outcome)."""
        for what, wrong, got in self.pool.map(work, jobs):
            self.done += 1
            if wrong:
                self.report(case, what, wrong, got)

    def say(self, case, text):
        print(f"{case}: {text}")


# Allocations.

FIRST_ALLOCATIONS = 100
SPREAD = 25


def chosen(count, first, spread):
    """The numbers from 1 to `count`, or the first of them and a spread of the rest."""
    if ALL or count <= first + spread:
        return list(range(1, count + 1))
    step = (count - first) / spread
    return list(range(1, first + 1)) + [first + round((i + 1) * step) for i in range(spread)]


def count_allocations(test, case):
    environment = {"LD_PRELOAD": test.faults, "KVCA_FAULTS_FIRST": "0", "KVCA_FAULTS_COUNT": "9"}
    with tempfile.TemporaryFile() as told:
        os.dup2(told.fileno(), 9)
        run(test.kvca, case, test.folder, environment, pass_fds=[9])
        os.close(9)
        told.seek(0)
        return int(told.read())


def fail_allocations(test):
    for case in CASES:
        reference = test.reference(case)
        count = count_allocations(test, case)

        def work(job, case=case, reference=reference):
            first, all_after = job
            environment = {"LD_PRELOAD": test.faults, "KVCA_FAULTS_FIRST": str(first)}
            if all_after:
                environment["KVCA_FAULTS_ALL"] = "1"
            got = run(test.kvca, case, test.folder, environment)
            what = f"allocation {first}{' and all after it' if all_after else ''} of {count}"
            return what, judge(got, reference, "out of memory"), got

        jobs = [(first, False) for first in chosen(count, FIRST_ALLOCATIONS, SPREAD)]
        jobs += [(first, True) for first in chosen(count, 0, SPREAD)]
        test.each(case, jobs, work)
        test.say(case, f"{count} allocations, {len(jobs)} runs")


# System calls.

ERRORS = {
    "read": ["EIO"],
    "write": ["ENOSPC", "EIO", "EPIPE"],
    "openat": ["EACCES", "EMFILE"],
    "close": ["EIO"],
    "mmap": ["ENOMEM"],
    "mremap": ["ENOMEM"],
    "munmap": ["ENOMEM"],
    "getrandom": ["ENOSYS"],
}
OTHER_ERRORS = ["EIO"]
MORE_ERRORS = {
    "read": ["EINTR", "EAGAIN"],
    "write": ["EINTR", "EAGAIN", "EDQUOT", "EFBIG"],
    "openat": ["ENOENT", "ENFILE", "ENOMEM", "EINTR"],
    "close": ["ENOSPC", "EDQUOT", "EINTR"],
    "getrandom": ["EINTR", "EAGAIN"],
}
NEVER_FAIL = ("exit_group", "brk")  # a failed brk() returns the old end of the heap, which strace does not know

# The first thing that main() does. All before it belongs to the loader.
MAIN = re.compile(r"rt_sigaction\(SIGPIPE, \{sa_handler=SIG_IGN")
CALL = re.compile(r"^(\w+)\((.*)")


@dataclasses.dataclass
class SystemCall:
    name: str
    number: int  # among the calls of this name, from 1
    arguments: str

    def descriptor(self):
        found = re.match(r"\d+", self.arguments)
        return int(found[0]) if found else -1

    def file(self):
        """The name of the file that is opened or used, as messages have it."""
        if self.name != "openat" and self.descriptor() == 0:
            return "<stdin>"
        found = re.search(r'"((?:[^"\\]|\\.)*)"' if self.name == "openat" else r"<([^>]*)>", self.arguments)
        return os.path.basename(found[1].replace('\\"', '"').replace("\\\\", "\\")) if found else ""


def list_calls(test, case):
    """The system calls of the command, from main() on."""
    trace = os.path.join(test.folder, "trace")
    run(["strace", "-y", "-o", trace] + test.kvca, case, test.folder)
    numbers = {}
    calls = []
    in_main = False
    with open(trace, encoding="utf-8", errors="backslashreplace") as lines:
        for line in lines:
            found = CALL.match(line)
            if not found:
                continue
            numbers[found[1]] = numbers.get(found[1], 0) + 1
            in_main = in_main or bool(MAIN.match(line))
            if in_main and found[1] not in NEVER_FAIL:
                calls.append(SystemCall(found[1], numbers[found[1]], found[2]))
    os.unlink(trace)
    return calls


def judge_call(call, error, got, reference):
    reason = re.escape(os.strerror(getattr(errno, error)))
    if call.name == "write" and call.descriptor() == 2:
        same = (got.status, got.out) == (reference.status, reference.out)
        return None if same else "the status or the result depends on whether a message can be written"
    if call.name in ("write", "close") and call.descriptor() == 1:
        # A failed write leaves a hole in the output. It must be reported.
        if got.status != 1:
            return f"status {got.status} for output that was not written"
        told = re.search(f"^kvca: cannot write the output: {reason}$", got.err, re.MULTILINE)
        return None if told else "no message that the output cannot be written, and why"
    if call.name in ("read", "openat"):
        if got.status != 1:
            return f"status {got.status} for a file that cannot be read"
        name = re.escape(call.file())
        no_memory = "|out of memory" if error == "ENOMEM" else ""
        return judge(got, reference, f"^(.*/)?{name}: (cannot read this file: {reason}{no_memory})$")
    return judge(got, reference, "out of memory" if call.name in ("brk", "mmap", "mremap") else reason)


def judge_writes(call, got, reference):
    """A write failed, and so did all after it, including messages."""
    wanted = 1 if call.descriptor() == 1 else reference.status
    if got.status not in (wanted, 1):
        return f"status {got.status}"
    return None if reference.out.startswith(got.out) else "the output is not part of the usual one"


def fail_calls(test):
    try:
        subprocess.run(["strace", "-o", "/dev/null", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as fault:
        print(f"skipped: strace does not run here: {fault}")
        sys.exit(SKIPPED)
    for case in CASES:
        reference = test.reference(case)

        def work(job, case=case, reference=reference):
            call, error, all_after = job
            inject = f"inject={call.name}:error={error}:when={call.number}{'+' if all_after else ''}"
            command = ["strace", "-o", "/dev/null", "-e", f"trace={call.name}", "-e", inject]
            got = run(command + test.kvca, case, test.folder)
            wrong = judge_writes(call, got, reference) if all_after else judge_call(call, error, got, reference)
            return f"{call.name}({call.arguments[:60]}: {error}{' from here on' if all_after else ''}", wrong, got

        calls = list_calls(test, case)
        jobs = [(call, error, False) for call in calls
                for error in ERRORS.get(call.name, OTHER_ERRORS) + (MORE_ERRORS.get(call.name, []) if ALL else [])]
        jobs += [(call, "ENOSPC", True) for call in calls if call.name == "write"]
        if not any(call.name == "close" and call.descriptor() == 1 for call in calls):
            print(f"{case}: standard output is not closed, which can fail although all writes went well")
            test.failed += 1
        test.each(case, jobs, work)
        test.say(case, f"{len(calls)} system calls, {len(jobs)} runs")


# Streams and files.

def fail_with(test, case, what, reason, reference, status, **streams):
    """Standard output fails. This does no harm if there is nothing to print."""
    got = run(test.kvca, case, test.folder, **streams)
    test.done += 1
    wanted = (status if reference.out else reference.status)
    wrong = None
    if got.status != wanted:
        wrong = f"the status should be {wanted}"
    elif reference.out and not re.search(f"^kvca: cannot write the output: {reason}$", got.err, re.MULTILINE):
        wrong = f"no message that the output cannot be written: {reason}"
    if wrong:
        test.report(case, what, wrong, got)


def closed(descriptor):
    return lambda: os.close(descriptor)


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def fail_output(test, case, reference):
    with open("/dev/full", "w", encoding="utf-8") as full:
        fail_with(test, case, "a full disk", "No space left on device", reference, 1, stdout=full)
    read_end, write_end = os.pipe()
    os.close(read_end)
    fail_with(test, case, "a closed pipe", "Broken pipe", reference, 1, stdout=write_end)
    os.close(write_end)
    fail_with(test, case, "no standard output", "Bad file descriptor", reference, 1, stdout=None, preexec_fn=closed(1))
    with open(os.path.join(test.folder, "limited"), "w", encoding="utf-8") as limited:
        fail_with(test, case, "a limit on files", "File too large", reference, 1, stdout=limited, preexec_fn=limit_files)


def fail_messages(test, case, reference):
    with open("/dev/full", "w", encoding="utf-8") as full:
        for what, streams in [("messages to a full disk", {"stderr": full}),
                              ("no standard error", {"stderr": None, "preexec_fn": closed(2)})]:
            got = run(test.kvca, case, test.folder, **streams)
            test.done += 1
            if (got.status, got.out) != (reference.status, reference.out):
                test.report(case, what, "the status or the result changed", got)
        got = run(test.kvca, case, test.folder, stdout=full, stderr=full)
        if got.status != (1 if reference.out else reference.status):
            test.report(case, "no output and no messages", "the status changed", got)


UNREADABLE = [
    ("/proc/self/mem", "Input/output error"),
    (".", "Is a directory"),
    ("missing", "No such file or directory"),
]


def inputs(case):
    """The positions of the arguments that name an input file."""
    return [i for i, argument in enumerate(case.arguments) if argument in FILES]


def fail_inputs(test, case):
    for place in inputs(case):
        for path, reason in UNREADABLE:
            arguments = case.arguments[:place] + [path] + case.arguments[place + 1:]
            if path == "missing" and case.arguments[place - 1] == "--policy":
                continue  # names no file: a missing policy
            got = run(test.kvca, Case(arguments, case.stdin), test.folder)
            test.done += 1
            wrong = None if got.status in (1, 2) else f"status {got.status}"
            if got.status != 2 and not re.search(f"^{re.escape(path)}: cannot read this file: {reason}$", got.err, re.MULTILINE):
                wrong = "no message that names the file"
            if wrong:
                test.report(case, f"{path} for {case.arguments[place]}", wrong, got)


def fail_standard_input(test, case):
    directory = os.open("/", os.O_RDONLY)
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    for what, reason, streams in [("no standard input", "Bad file descriptor", {"stdin": None, "preexec_fn": closed(0)}),
                                  ("a directory", "Is a directory", {"stdin": directory}),
                                  ("unreadable memory", "Input/output error", {"stdin": memory})]:
        got = run(test.kvca, case, test.folder, **streams)
        test.done += 1
        if got.status != 1 or f"<stdin>: cannot read this file: {reason}\n" not in got.err:
            test.report(case, what, "no message, or a wrong status", got)
    os.close(directory)
    os.close(memory)


def fail_streams(test):
    for case in CASES:
        reference = test.reference(case)
        fail_output(test, case, reference)
        fail_messages(test, case, reference)
        fail_inputs(test, case)
        if case.stdin:
            fail_standard_input(test, case)
        if "--json" in case.arguments or "json" in case.arguments:
            json.loads(reference.out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvca", required=True, help="the command")
    parser.add_argument("--faults", help="faults.c as a library, for allocations")
    parser.add_argument("what", choices=["allocations", "calls", "streams"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        test = Test(options, folder)
        {"allocations": fail_allocations, "calls": fail_calls, "streams": fail_streams}[options.what](test)
    print(f"{test.done} runs, {test.failed} failed")
    return 1 if test.failed or not test.done else 0


if __name__ == "__main__":
    sys.exit(main())
