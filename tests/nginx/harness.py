# SPDX-License-Identifier: Apache-2.0
"""A real nginx, toy backends and a load, for tests and benchmarks of the nginx module to import:

    backends = Backend.several([1000, 500])
    with Nginx(CONFIG, module=PATH, backends=backends) as nginx:
        print(nginx.ask("/v1/x", {"X-Prompt-Tokens": "160"}).status, nginx.status())
        result = run_load(nginx.port, 40, lambda client, number, random: Ask("/v1/x?hold=0.01"), seconds=3)

All of it is on 127.0.0.1, on free ports, in a temporary folder of its own, and ends with its `with`. It needs only
Python's standard library, and openssl to make a certificate.

Backends and the clients of a load run in one event loop in a separate thread. A test reads a backend's counts and opens
its gate from outside.
"""

import asyncio
import collections
import dataclasses
import http.client
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

PATIENCE = 30  # seconds until a condition that has not come true is a failure
BLOCK_SIZE = 16


def wait_for(condition, what, seconds=PATIENCE):
    """Returns the first true value of condition(). Fails, naming `what`, if there is none in time."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not true after {seconds} s: {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def find_nginx():
    """The absolute path of the nginx to test; None if there is none."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/local/nginx/sbin")


_given_ports = set()


def free_port():
    """A free port, never the same again. It is below those that Linux gives to outgoing connections."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        if port in _given_ports:
            continue
        _given_ports.add(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Loop:
    """An event loop in a thread."""

    _shared = None

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    @classmethod
    def shared(cls):
        cls._shared = cls._shared or cls()
        return cls._shared

    def run(self, coroutine, seconds=PATIENCE):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(seconds)

    def call(self, function, *arguments):
        """Calls a function in the loop, and returns when it has run."""
        async def called():
            return function(*arguments)
        return self.run(called())


# Messages of HTTP/1.1, as backends and the clients of a load read them.


@dataclasses.dataclass
class Message:
    """A request or an answer. Header names are in lower case."""
    start: list
    headers: dict
    body: bytes = b""


class Reader(asyncio.StreamReader):
    """Notices that the other side has gone even if nobody reads. Counts the requests that it has read."""

    def __init__(self):
        super().__init__(limit=1 << 20)
        self.ended = asyncio.Event()
        self.requests = 0

    def feed_eof(self):
        super().feed_eof()
        self.ended.set()

    def set_exception(self, *arguments):
        super().set_exception(*arguments)
        self.ended.set()


async def read_head(reader):
    """The next message without its body; None if the connection ends first."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    headers = {}
    for line in lines[1:-2]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Message(lines[0].split(" ", 2), headers)


async def read_chunks(reader):
    body = b""
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if size == 0:
            return body


async def read_body(reader, headers, until_end=False):
    """A message's body. If its headers do not state the length, it is empty or goes on until the end."""
    if headers.get("transfer-encoding") == "chunked":
        return await read_chunks(reader)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read() if until_end else b""


# Backends.


class Gate:
    """Something that an answer waits for until a test opens it."""

    def __init__(self):
        self.event = asyncio.Event()

    def open(self):
        Loop.shared().call(self.event.set)


class Backend:
    """An inference server for tests. It books nothing. As a witness, it counts what is in flight on it.

    The query of each request says how to answer it, and goes before what is in `always`:

        hold=S         waits S seconds before it answers
        gate=1         waits before it answers until open_gate()
        status=N       answers with this status
        close=1        closes the connection instead of an answer; close=reused: only after an earlier request on it
        events=E       answers with E server-sent events; every=S: one every S seconds; permit=1: one for each permit()
        type=T         the content type of the events
        script=NAME    answers with the pieces of scripts[NAME]: bytes, each a chunk, and Gates that it waits for
        length=N       answers with N bytes
        upgrade=1      changes to another protocol, in which it echoes what it gets
        cut=N          with events: closes after the Nth of them, in the middle of the answer

    X-Prompt-Tokens of a request gives its blocks, at least one. A request counts from its head on, and stops counting
    just before the last part of its answer is sent.
    """

    def __init__(self, capacity=None, group=None, unix=None, tls=None):
        """capacity: in blocks, for `over`. group: all backends that a request could have gone to, for `avoidable`.
        unix: the path of a socket to listen on instead of a port. tls: a server's ssl.SSLContext.
        """
        self.loop = Loop.shared()
        self.capacity = capacity
        self.group = group if group is not None else [self]
        self.unix = unix
        self.tls = tls
        self.always = {}
        self.scripts = {}
        self.blocks = self.active = 0
        self.connections = 0
        self.reset()
        self._server = None
        self._tasks = set()
        self._gate = self.loop.call(asyncio.Event)
        self._permits = self.loop.call(asyncio.Semaphore, 0)
        self._find_address()

    @classmethod
    def several(cls, capacities, **more):
        """A backend for each capacity, all in one group."""
        group = []
        group.extend(cls(capacity, group, **more) for capacity in capacities)
        return group

    def reset(self):
        self.peak_blocks, self.peak_active = self.blocks, self.active
        self.seen = []  # (method, path) of each request
        self.bodies = []  # the length of each body
        self.over = 0  # requests that came but did not fit
        self.avoidable = 0  # those of them that would have fitted on another backend

    def _find_address(self):
        """Listens for the first time. A port that was free may be taken by now."""
        for tries_left in reversed(range(5)):
            self.port = None if self.unix else free_port()
            self.address = f"unix:{self.unix}" if self.unix else f"127.0.0.1:{self.port}"
            try:
                self.start()
                break
            except OSError:
                if not tries_left:
                    raise

    def start(self):
        """Listens, at the same address after stop()."""
        self.loop.run(self._start())

    def stop(self):
        self.loop.run(self._stop())

    def open_gate(self):
        """Lets all requests at the gate go on, and those that come later."""
        self.loop.call(self._gate.set)

    def close_gate(self):
        self.loop.call(self._gate.clear)

    def permit(self, events=1):
        """Lets this many events go out in answers with permit=1."""
        for _ in range(events):
            self.loop.call(self._permits.release)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    async def _start(self):
        def protocol():
            return asyncio.StreamReaderProtocol(Reader(), self._connected)
        if self.unix:
            pathlib.Path(self.unix).unlink(missing_ok=True)
            self._server = await self.loop.loop.create_unix_server(protocol, self.unix, ssl=self.tls)
        else:
            self._server = await self.loop.loop.create_server(protocol, "127.0.0.1", self.port, ssl=self.tls,
                                                              backlog=1000)

    async def _stop(self):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        self.connections += 1
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader, writer):
        """Handles one request and its answer. Returns whether another may follow."""
        request = await read_head(reader)
        if not request:
            return False
        path, _, query = request.start[1].partition("?")
        self.seen.append((request.start[0], path))
        asked = dict(urllib.parse.parse_qsl(query)) | self.always
        flight = Flight(self, request)
        try:
            body = await read_body(reader, request.headers)
            self.bodies.append(len(body))
            reader.requests += 1
            return await Answer(self, asked, reader, writer, flight).give()
        finally:
            flight.end()


class Flight:
    def __init__(self, backend, request):
        tokens = request.headers.get("x-prompt-tokens", "")
        self.backend = backend
        self.blocks = max(1, math.ceil(int(tokens) / BLOCK_SIZE)) if tokens.isdigit() else 1
        self.ended = False
        backend.active += 1
        backend.blocks += self.blocks
        backend.peak_active = max(backend.peak_active, backend.active)
        backend.peak_blocks = max(backend.peak_blocks, backend.blocks)
        if backend.capacity is not None and backend.blocks > backend.capacity:
            backend.over += 1
            backend.avoidable += any(other.blocks + self.blocks <= other.capacity
                                     for other in backend.group if other is not backend)

    def end(self):
        if not self.ended:
            self.ended = True
            self.backend.active -= 1
            self.backend.blocks -= self.blocks


class Answer:
    def __init__(self, backend, asked, reader, writer, flight):
        self.backend, self.asked, self.reader, self.writer, self.flight = backend, asked, reader, writer, flight

    async def give(self):
        if "hold" in self.asked:
            await self._wait(asyncio.sleep(float(self.asked["hold"])))
        if "gate" in self.asked:
            await self._wait(self.backend._gate.wait())
        if "close" in self.asked and (self.asked["close"] != "reused" or self.reader.requests > 1):
            return False
        if "upgrade" in self.asked:
            return await self._echo()
        if "script" in self.asked:
            await self._give_pieces(self._scripted(self.backend.scripts[self.asked["script"]]))
        elif "events" in self.asked:
            await self._give_pieces(self._events(int(self.asked["events"])))
        else:
            await self._give_whole()
        return "cut" not in self.asked

    async def _wait(self, coroutine):
        """Waits, but only as long as the other side is there."""
        tasks = [asyncio.ensure_future(coroutine), asyncio.ensure_future(self.reader.ended.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self.reader.ended.is_set():
            raise ConnectionResetError

    def _head(self, kind, length):
        return (f"HTTP/1.1 {self.asked.get('status', '200')} Told\r\nContent-Type: {kind}\r\n{length}\r\n"
                f"X-Backend: {self.backend.address}\r\n\r\n").encode()

    async def _give_whole(self):
        body = b"x" * int(self.asked.get("length", 2))
        self.flight.end()
        self.writer.write(self._head("text/plain", f"Content-Length: {len(body)}") + body)
        await self.writer.drain()

    async def _give_pieces(self, pieces):
        self.writer.write(self._head(self.asked.get("type", "text/event-stream"), "Transfer-Encoding: chunked"))
        await self.writer.drain()
        async for piece in pieces:
            self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self.writer.drain()
        self.flight.end()
        if "cut" not in self.asked:
            self.writer.write(b"0\r\n\r\n")
            await self.writer.drain()

    async def _echo(self):
        self.writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        while text := await self.reader.read(1000):
            self.writer.write(text)
        return False

    async def _scripted(self, script):
        for piece in script:
            if isinstance(piece, Gate):
                await self._wait(piece.event.wait())
            else:
                yield piece

    async def _events(self, count):
        for number in range(int(self.asked.get("cut", count))):
            if "every" in self.asked:
                await self._wait(asyncio.sleep(float(self.asked["every"])))
            if "permit" in self.asked:
                await self._wait(self.backend._permits.acquire())
            yield b'data: {"token":%d}\n\n' % number


# nginx.


MAIN = """\
@load@daemon @daemon@;
master_process @master@;
worker_processes @workers@;
error_log @prefix@/error.log info;
pid @prefix@/nginx.pid;
lock_file @prefix@/nginx.lock;
@user@@main@
events { worker_connections 1000; }
http {
access_log off;
client_body_temp_path @prefix@/body;
proxy_temp_path @prefix@/proxy;
fastcgi_temp_path @prefix@/fastcgi;
uwsgi_temp_path @prefix@/uwsgi;
scgi_temp_path @prefix@/scgi;
"""


@dataclasses.dataclass
class Answered:
    """A whole answer. Header names are in lower case."""
    status: int
    headers: dict
    body: bytes


class Nginx:
    """An nginx of its own. As a context manager it starts, and ends with all its processes.

    config   the content of `http { }`. In it @port@ is the port that it listens on, @port:NAME@ another one, @prefix@
             its folder, @b0@, @b1@ ... the addresses of the backends, @NAME@ one of `values`
    module   a .so to load, or None
    main     more lines outside of `http { }`
    user     the user of the workers, if the tests run as root
    wrapper  a command that executes the command in its arguments
    """

    def __init__(self, config, *, module=None, backends=(), workers=2, main="", values=None, master=True, daemon=False,
                 user="root", wrapper=()):
        self.module, self.workers, self.main, self.master, self.daemon = module, workers, main, master, daemon
        self.user, self.wrapper = user, list(wrapper)
        self.backends = list(backends)
        self.values = dict(values or {})
        self.folder = tempfile.TemporaryDirectory(prefix="kvca-nginx-")
        self.prefix = pathlib.Path(self.folder.name)
        self.prefix.chmod(0o755)  # workers that are not root read it, too
        self.ports = collections.defaultdict(free_port)
        self.process = None
        self.configure(config)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    # The configuration.

    def configure(self, config):
        """Writes nginx.conf. A running nginx is not told."""
        self.config = config
        self.config_path = self.prefix / "nginx.conf"
        self.config_path.write_text(self.fill(MAIN.replace("@main@", self.main) + config + "}\n"))

    def fill(self, text):
        values = {"prefix": self.prefix, "workers": self.workers,
                  "load": f"load_module {self.module};\n" if self.module else "",
                  "daemon": "on" if self.daemon else "off", "master": "on" if self.master else "off",
                  "user": f"user {self.user};\n" if os.geteuid() == 0 else ""} | self.values
        values |= {f"b{index}": backend.address for index, backend in enumerate(self.backends)}

        def value(match):
            name = match[1]
            if name == "port" or name.startswith("port:"):
                return str(self.ports[name[5:]])
            return str(values[name])
        return re.sub(r"@([a-z]\w*(?::\w+)?)@", value, text)

    def line(self, text):
        """The number of the first line of nginx.conf that contains the text."""
        lines = self.config_path.read_text().splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def check(self):
        """Runs `nginx -t` and returns its status and output."""
        done = subprocess.run(self._command() + ["-t"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE, check=False)
        return done.returncode, done.stdout

    def _command(self):
        # A change of the binary needs its absolute path.
        return [*self.wrapper, find_nginx(), "-p", str(self.prefix), "-c", str(self.config_path),
                "-e", str(self.prefix / "error.log")]

    # The process.

    def start(self):
        """Starts it, and returns when it answers. Takes other ports if another program has got one of these."""
        for _ in range(5):
            output = self._start()
            if output is None:
                return
            if "Address already in use" not in output:
                break
            self.ports.clear()
            self.configure(self.config)
        self.process = None
        raise AssertionError(f"nginx does not start:\n{output}")

    def _start(self):
        with open(self.prefix / "stderr.log", "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        if self.daemon and self.process.wait(PATIENCE) != 0:
            return self._said()
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if not self.daemon and self.process.poll() is not None:
                return self._said()
            if time.monotonic() > deadline:
                raise AssertionError("nginx does not answer")
            time.sleep(0.005)
        if self.master:
            wait_for(lambda: len(self.worker_pids()) == self.workers, "all workers run")
        return None

    def _said(self):
        return (self.prefix / "stderr.log").read_text(errors="replace") + self.error_log()

    def _answers(self):
        if self.pid is None:
            return False
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    @property
    def pid(self):
        """The process to signal: the master, or the only process if there is no master. None if not known yet."""
        return self._read_pid("nginx.pid") if self.daemon else self.process.pid

    def _read_pid(self, name):
        try:
            return int((self.prefix / name).read_text())
        except (FileNotFoundError, ValueError):
            return None

    @property
    def port(self):
        return self.ports[""]

    def signal(self, number, pid=None):
        os.kill(pid or self.pid, number)

    def worker_pids(self, master=None):
        return [pid for pid, title in children(master or self.pid) if title == "nginx: worker process"]

    def leaving_pids(self, master=None):
        """Workers of an earlier configuration, which end with their last request."""
        return [pid for pid, title in children(master or self.pid) if title.endswith("is shutting down")]

    def reload(self, config=None):
        old = set(self.worker_pids())
        self._tell_reload(config)

        def taken_over():
            workers = self.worker_pids()
            return len(workers) == self.workers and not old & set(workers)
        wait_for(taken_over, "new workers take requests after a reload")

    def reload_in_vain(self, config, said):
        """Reloads a faulty configuration, and returns when the error log says so."""
        before = len(self.error_log())
        self._tell_reload(config)
        wait_for(lambda: said in self.error_log()[before:], f"the error log says after a reload: {said}")

    def _tell_reload(self, config):
        self.configure(self.config if config is None else config)
        self.signal(signal.SIGHUP)

    def close(self):
        """Ends all its processes and removes its folder."""
        self.end()
        self.folder.cleanup()

    def end(self):
        if not self.process:
            return
        files = ("nginx.pid", "nginx.pid.oldbin") if self.daemon else ()
        masters = {self.process.pid, *map(self._read_pid, files)} - {None}
        family = masters | {pid for master in masters for pid, _ in children(master)}
        for number, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            for pid in masters if number == signal.SIGTERM else family:
                if is_alive(pid):
                    os.kill(pid, number)
            if self._all_gone(family, seconds):
                break
        self.process.wait(PATIENCE)
        self.process = None

    def _all_gone(self, pids, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.process.poll()
            if not any(is_alive(pid) for pid in pids):
                return True
            time.sleep(0.005)
        return False

    # Requests.

    def connect(self, name="", tls=None):
        if tls:
            return http.client.HTTPSConnection("127.0.0.1", self.ports[name], timeout=PATIENCE, context=tls)
        return http.client.HTTPConnection("127.0.0.1", self.ports[name], timeout=PATIENCE)

    def open(self, path, headers=None, *, method="GET", body=None, name="", tls=None):
        """Sends a request on a connection of its own. The caller waits for the answer with `getresponse()`."""
        connection = self.connect(name, tls)
        connection.request(method, path, body, headers or {}, encode_chunked="Transfer-Encoding" in (headers or {}))
        return connection

    def ask(self, path, headers=None, **more):
        connection = self.open(path, headers, **more)
        try:
            return read_answer(connection.getresponse())
        finally:
            connection.close()

    # What nginx shows.

    def status(self, path="/kvca"):
        answer = self.ask(path)
        if answer.status != 200:
            raise AssertionError(f"{path} answers {answer.status}: {answer.body!r}")
        return json.loads(answer.body)

    def set_capacity(self, rank, blocks, path="/kvca", **more):
        """Posts the capacity of a rank to the status location: POST ?rank=RANK&blocks=BLOCKS, with more arguments in
        `more`.
        """
        return self.ask(f"{path}?{urllib.parse.urlencode({'rank': rank, 'blocks': blocks, **more}, safe=':/')}",
                        method="POST")

    def zone(self, name=None):
        """A zone of the status; the first one if no name is given."""
        zones = self.status()["zones"]
        return next(zone for zone in zones if name in (None, zone["name"]))

    def ranks(self, zone=None):
        return {rank["rank"]: rank for rank in self.zone(zone)["ranks"]}

    def booked(self, zone=None):
        """D of each rank of a zone, in the order of the backends if they are known."""
        return self._column("decode_cost_blocks", zone)

    def requests(self, zone=None):
        return self._column("active_requests", zone)

    def _column(self, key, zone):
        ranks = self.ranks(zone)
        addresses = [backend.address for backend in self.backends if backend.address in ranks] or list(ranks)
        return [ranks[address][key] for address in addresses]

    def wait_until_idle(self):
        """Waits until no zone has a booking and no rank drains."""
        def idle():
            ranks = [rank for zone in self.status()["zones"] for rank in zone["ranks"]]
            return all(rank["decode_cost_blocks"] == 0 and rank["active_requests"] == 0 and rank["state"] == "active"
                       for rank in ranks)
        wait_for(idle, "nothing is booked and no rank drains")

    def error_log(self):
        try:
            return (self.prefix / "error.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def logged(self, level):
        return [line for line in self.error_log().splitlines() if f" [{level}] " in line]

    def access_log(self, lines=0, name="access.log"):
        """Lines of the access log. Waits until there are this many, because nginx writes them after the answer."""
        def read():
            path = self.prefix / name
            found = path.read_text(errors="replace").splitlines() if path.exists() else []
            return found if len(found) >= lines else None
        return wait_for(read, f"{name} has {lines} lines") if lines else read()

    def report(self):
        parts = [f"--- {self.config_path}", self.config_path.read_text(), "--- the end of the error log"]
        parts += [line for line in self.error_log().splitlines() if "closed keepalive" not in line][-40:]
        if self.process and self.process.poll() is None or self.daemon:
            try:
                parts += ["--- status", json.dumps(self.status(), indent=1)]
            except (OSError, ValueError, AssertionError, http.client.HTTPException) as error:
                parts.append(f"no status: {error}")
        for backend in self.backends[:8]:
            parts.append(f"--- backend {backend.address}: capacity {backend.capacity}; {len(backend.seen)} requests; "
                         f"in flight {backend.active} with {backend.blocks} blocks, "
                         f"at most {backend.peak_active} with {backend.peak_blocks}")
        return "\n".join(parts)


def read_answer(response):
    return Answered(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def process_stat(pid):
    """State and parent of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
        return state, int(parent)
    except (OSError, ValueError):
        return None


def is_alive(pid):
    """Whether a process exists and is not a zombie."""
    stat = process_stat(pid)
    return stat is not None and stat[0] not in "ZX"


def children(parent):
    """(pid, title) of the living children of a process."""
    found = []
    for entry in os.listdir("/proc"):
        stat = process_stat(entry) if entry.isdigit() else None
        if stat and stat[1] == parent and stat[0] not in "ZX":
            found.append((int(entry), process_title(entry)))
    return found


def process_title(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="latin-1") as file:
            return file.read().replace("\0", " ").strip()
    except OSError:
        return ""


# Load.


@dataclasses.dataclass
class Ask:
    """One request of a load."""
    path: str
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""
    method: str = "GET"

    def encode(self):
        headers = {"Host": "kvca", "Content-Length": len(self.body)} | self.headers
        lines = [f"{self.method} {self.path} HTTP/1.1"] + [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.body


@dataclasses.dataclass
class LoadResult:
    seconds: float = 0
    statuses: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    failures: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # by exception
    latencies: list = dataclasses.field(default_factory=list)  # seconds for each whole answer
    peaks: dict = dataclasses.field(default_factory=dict)  # by rank: the largest D that the status showed
    samples: int = 0

    @property
    def requests(self):
        return len(self.latencies)


def run_load(port, clients, make, *, seconds=3.0, most=None, seed=1, status=None):
    """Runs a load and returns its LoadResult.

    port     of nginx, on 127.0.0.1
    clients  their number; each sends its next request after the whole answer to the last one
    make     make(client, number, random) returns an Ask; `random` is the client's own generator, made from `seed`
    seconds  when clients stop sending; requests in flight may finish
    most     the most requests that a client sends
    status   the path of `kvca_status json`, which is read all the time
    """
    return start_load(port, clients, make, seconds, most, seed, status).result(seconds + 2 * PATIENCE)


def start_load(port, clients, make, seconds=3.0, most=None, seed=1, status=None):
    """The same, while the caller does other things: `.result(timeout)` waits for it."""
    return asyncio.run_coroutine_threadsafe(_run_load(port, clients, make, seconds, most, seed, status),
                                            Loop.shared().loop)


async def _run_load(port, clients, make, seconds, most, seed, status):
    result = LoadResult()
    begin = time.monotonic()
    deadline = begin + seconds
    sampler = asyncio.ensure_future(_sample(port, status, result)) if status else None
    await asyncio.gather(*(_client(port, make, client, random.Random(seed * 1000003 + client), deadline, most, result)
                           for client in range(clients)))
    result.seconds = time.monotonic() - begin
    if sampler:
        sampler.cancel()
        await asyncio.gather(sampler, return_exceptions=True)
    return result


async def _client(port, make, client, generator, deadline, most, result):
    connection = None
    number = 0
    while time.monotonic() < deadline and (most is None or number < most):
        ask = make(client, number, generator)
        number += 1
        begin = time.monotonic()
        try:
            connection = connection or await asyncio.open_connection("127.0.0.1", port)
            head = await _exchange(connection, ask, result)
        except (OSError, asyncio.IncompleteReadError) as error:
            result.failures[type(error).__name__] += 1
            connection = await _hang_up(connection)
            continue
        result.latencies.append(time.monotonic() - begin)
        if head.headers.get("connection") == "close":
            connection = await _hang_up(connection)
    await _hang_up(connection)


async def _exchange(connection, ask, result):
    reader, writer = connection
    writer.write(ask.encode())
    head = await read_head(reader)
    if not head:
        raise ConnectionResetError
    head.body = await read_body(reader, head.headers, until_end=head.start[1] not in ("204", "304"))
    result.statuses[int(head.start[1])] += 1
    return head


async def _hang_up(connection):
    if connection:
        connection[1].close()


async def _sample(port, path, result):
    connection = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            shown = json.loads((await _exchange(connection, Ask(path), LoadResult())).body)
            result.samples += 1
            for zone in shown["zones"]:
                for rank in zone["ranks"]:
                    before = result.peaks.get(rank["rank"], 0)
                    result.peaks[rank["rank"]] = max(before, rank["decode_cost_blocks"])
            await asyncio.sleep(0.005)
    finally:
        connection[1].close()


# TLS.


def make_certificate(folder):
    """Makes folder/cert.pem and folder/key.pem for kvca and 127.0.0.1. Returns whether openssl is there to do so."""
    if not shutil.which("openssl"):
        return False
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=kvca", "-addext", "subjectAltName=DNS:kvca,IP:127.0.0.1",
                    "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"],
                   check=True, capture_output=True, timeout=PATIENCE)
    return True


def server_tls(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    return context


def client_tls(folder):
    return ssl.create_default_context(cafile=f"{folder}/cert.pem")
