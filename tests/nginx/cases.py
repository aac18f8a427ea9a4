# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the nginx module: Case starts nginx, checks what it leaves behind, and prints configuration,
log and ledger if it fails. CONFIG is the configuration of most tests. run.py runs the tests.
"""

import collections
import http.client
import re
import sys
import tempfile
import unittest

import harness

# Set by run.py.
MODULE = None
FAULTS = None
UNDER = []

CONFIG = """\
kvca_zone ranks 1m@zone@;
log_format kvca "$uri $status [$kvca_rank] [$kvca_outcome] [$kvca_booked]";
@http@
upstream pool {
@before@
kvca zone=ranks@kvca@;
kvca_tokens $http_x_prompt_tokens@tokens@;
@upstream@
@servers@
@after@
}
server {
listen 127.0.0.1:@port@@listen@;
access_log @prefix@/access.log kvca;
proxy_http_version 1.1;
proxy_set_header Connection "";
proxy_buffering off;
add_header X-Rank $kvca_rank always;
add_header X-Outcome $kvca_outcome always;
add_header X-Booked $kvca_booked always;
add_header X-Worker $pid always;
location / { proxy_pass http://pool; @location@ }
location = /kvca { access_log off; kvca_status json; }
location = /metrics { access_log off; kvca_status prometheus; }
@server@
}
"""

PARTS = {"zone", "http", "before", "kvca", "tokens", "upstream", "servers", "after", "listen", "location", "server"}


def config(backends=1, capacity=None, **parts):
    """CONFIG with these parts filled in.

    backends        the number of servers: @b0@, @b1@ and so on
    capacity        what kvca_rank says of them: one number for all, or a list; None writes no line
    server_options  what follows the address of each; the default is max_fails=0
    """
    servers = range(backends)
    capacities = capacity if isinstance(capacity, (list, tuple)) else [capacity] * backends
    ranks = [f"kvca_rank @b{index}@ total_kv_blocks={blocks};" for index, blocks in zip(servers, capacities) if blocks]
    more = parts.pop("server_options", "max_fails=0")
    parts.setdefault("servers", "\n".join(f"server @b{index}@ {more};" for index in servers))
    parts["upstream"] = "\n".join(ranks + [parts.get("upstream", "")])
    assert set(parts) <= PARTS, parts
    return re.sub(r"@([a-z]+)@", lambda match: parts.get(match[1], "") if match[1] in PARTS else match[0], CONFIG)


def tokens(blocks):
    """The header of a request for this many blocks."""
    return {"X-Prompt-Tokens": str(blocks * harness.BLOCK_SIZE)}


class Case(unittest.TestCase):
    """A test that owns what it starts. After it has passed, no nginx that it started may have a booking or an alert in
    its log.
    """

    maxDiff = None

    def __init__(self, name="runTest"):
        super().__init__(name)
        self._all = []
        self._body = getattr(self, name)
        setattr(self, name, self._watched)

    def _watched(self):
        try:
            self._body()
            for nginx in self._all:
                if nginx.process:
                    self._check_left(nginx)
        except unittest.SkipTest:
            raise
        except Exception:
            for nginx in self._all:
                print(nginx.report(), file=sys.stderr)
            raise

    def _check_left(self, nginx):
        if nginx.must_be_idle:
            nginx.wait_until_idle()
        alerts = [line for level in ("alert", "crit") for line in nginx.logged(level)
                  if not any(expected in line for expected in nginx.expected_alerts)]
        self.assertEqual(alerts, [], "unexpected in the error log")

    def backends(self, *capacities, **more):
        group = harness.Backend.several(capacities or (None,), **more)
        for backend in group:
            self.addCleanup(backend.stop)
        return group

    def folder(self):
        """A folder that is removed after the test."""
        folder = tempfile.TemporaryDirectory(prefix="kvca-test-")
        self.addCleanup(folder.cleanup)
        return folder.name

    def make(self, text, backends=(), **more):
        more.setdefault("module", MODULE)
        more["wrapper"] = UNDER + more.get("wrapper", [])
        nginx = harness.Nginx(text, backends=backends, **more)
        nginx.must_be_idle = True
        nginx.expected_alerts = []
        self.addCleanup(nginx.close)
        self._all.append(nginx)
        return nginx

    def start(self, text, backends=(), **more):
        nginx = self.make(text, backends, **more)
        nginx.start()
        return nginx

    def open(self, nginx, path, headers=None, **more):
        """Opens a request without waiting for the answer. The connection ends with the test."""
        connection = nginx.open(path, headers, **more)
        self.addCleanup(connection.close)
        return connection

    def fill(self, nginx, counts, path="/?gate=1"):
        """Opens a request for each of these numbers of blocks. Each waits until the one before is booked."""
        begun = []
        for blocks in counts:
            expected = sum(nginx.requests()) + 1
            begun.append(self.open(nginx, path, tokens(blocks)))
            harness.wait_for(lambda expected=expected: sum(nginx.requests()) == expected, f"{expected} requests booked")
        return begun

    def finish(self, backends, connections, status=200):
        for backend in backends:
            backend.open_gate()
        answers = [harness.read_answer(connection.getresponse()) for connection in connections]
        for answer in answers:
            self.assertEqual(answer.status, status, answer)
        return answers

    def check_table(self, rows, check):
        """Calls check(*row) for every row. Then fails with all rows that failed."""
        failed = []
        for row in rows:
            try:
                check(*row)
            except AssertionError as error:
                failed.append(f"{str(row)[:200]}: {error}")
        self.assertFalse(failed, "\n".join([f"{len(failed)} of {len(rows)} rows"] + failed))


KILLED = "exited on signal 9"  # what nginx logs about a worker


class Stream:
    """An answer of three events that waits for its backend's permits, and the worker that serves it."""

    def __init__(self, case, nginx):
        self.response = case.open(nginx, "/?events=3&permit=1", tokens(10)).getresponse()
        self.worker = int(self.response.getheader("X-Worker"))

    def is_whole(self):
        try:
            return self.response.read().count(b"\n\n") == 3
        except (OSError, http.client.HTTPException):
            return False


class StreamCase(Case):
    """Tests of what happens to streams when their workers end."""

    def start_streams(self, least=4, count=12, module=None, main="", **parts):
        """An nginx with at least `count` streams, and at least `least` on each worker."""
        parts.setdefault("listen", " reuseport")  # the kernel spreads connections over the workers
        self.all = self.backends(None, None, None)
        nginx = self.start(config(3, 10000, **parts), self.all, module=module or MODULE, main=main)
        nginx.expected_alerts = [KILLED]
        streams = []
        self.add_streams(nginx, streams, least, count)
        return nginx, streams

    def add_streams(self, nginx, streams, least, count):
        while len(streams) < count or min(self.shares(nginx, streams).values()) < least:
            streams.append(Stream(self, nginx))
            self.assertLess(len(streams), 300, "all streams go to one worker")
        self.check_booked(nginx, len(streams))

    def shares(self, nginx, streams):
        shares = collections.Counter(stream.worker for stream in streams)
        return {pid: shares[pid] for pid in nginx.worker_pids()}

    def check_booked(self, nginx, requests):
        """Waits until the ledger has this many streams and nothing else."""
        def booked():
            try:
                return (sum(nginx.requests()), sum(nginx.booked())) == (requests, 10 * requests)
            except (OSError, http.client.HTTPException):
                return False  # the worker that got the question has just ended
        harness.wait_for(booked, f"{requests} streams are booked")

    def finish_streams(self, streams, broken=()):
        """Lets all streams finish. All are whole, except those of the workers in `broken`."""
        for backend in self.all:
            backend.permit(3 * len(streams))
        for stream in streams:
            self.assertEqual(stream.is_whole(), stream.worker not in broken)
