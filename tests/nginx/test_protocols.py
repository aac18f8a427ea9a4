# SPDX-License-Identifier: Apache-2.0
"""Other protocols and requests: TLS, HTTP/2, HTTP/1.0, subrequests."""

import shutil
import subprocess

import cases
import harness
from harness import Ask, run_load

ABOUT_TLS = """
ssl_certificate @prefix@/cert.pem;
ssl_certificate_key @prefix@/key.pem;
"""


def curl_speaks_http2():
    if not shutil.which("curl"):
        return False
    return "HTTP2" in subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout


class Tls(cases.Case):
    def setUp(self):
        self.certificate = self.folder()
        if not harness.make_certificate(self.certificate):
            self.skipTest("there is no openssl")

    def start_tls(self, text, backends, **more):
        nginx = self.make(text, backends, **more)
        for name in ("cert.pem", "key.pem"):
            shutil.copy(f"{self.certificate}/{name}", nginx.prefix)
        nginx.start()
        return nginx

    def test_backends_may_speak_tls(self):
        tls = harness.server_tls(self.certificate)
        backends = self.backends(None, None, tls=tls)
        text = cases.config(2, 100, after="keepalive 8;", location="""
            proxy_ssl_trusted_certificate @prefix@/cert.pem; proxy_ssl_verify on; proxy_ssl_name kvca;
            """, upstream="kvca_output growth=sse;").replace("http://pool", "https://pool")
        nginx = self.start_tls(text, backends, workers=1)  # the last line belongs to the last request
        held = self.fill(nginx, [40] * 4)
        self.assertEqual((nginx.requests(), nginx.booked()), ([2, 2], [80, 80]))
        self.finish(backends, held)
        answer = nginx.ask("/?events=17", cases.tokens(10))
        self.assertEqual((answer.status, answer.body.count(b"\n\n")), (200, 17))
        self.assertEqual(nginx.access_log(5)[-1].split()[-1], "[12]")
        result = run_load(nginx.port, 10, lambda *_: Ask("/", cases.tokens(10)), seconds=10, most=20)
        self.assertEqual((result.statuses, result.failures), ({200: 200}, {}))

    def test_a_failed_handshake_is_retried_on_another_rank(self):
        folder = self.folder()
        harness.make_certificate(folder)
        backends = self.backends(None, tls=harness.server_tls(folder))
        backends += self.backends(None, tls=harness.server_tls(self.certificate))
        nginx = self.start_tls(cases.config(2, [1000, 100], location="""
            proxy_ssl_trusted_certificate @prefix@/cert.pem; proxy_ssl_verify on; proxy_ssl_name kvca;
            """).replace("http://pool", "https://pool"), backends)
        for _ in range(5):
            self.assertEqual(nginx.ask("/", cases.tokens(200)).headers["x-backend"], backends[1].address)
        self.assertEqual(len(backends[0].seen), 0)
        self.assertEqual(nginx.zone()["counters"]["placed"], 10)

    def test_clients_may_speak_tls(self):
        backends = self.backends(None, None)
        text = cases.config(2, 100, upstream="kvca_output growth=sse;", http=ABOUT_TLS,
                            server="listen 127.0.0.1:@port:tls@ ssl;")
        nginx = self.start_tls(text, backends)
        tls = harness.client_tls(self.certificate)
        answer = nginx.ask("/?events=17", cases.tokens(10), name="tls", tls=tls)
        self.assertEqual((answer.status, answer.body.count(b"\n\n")), (200, 17))
        self.assertEqual(nginx.access_log(1)[-1].split()[-1], "[12]")
        held = [self.open(nginx, "/?gate=1", cases.tokens(10), name="tls", tls=tls) for _ in range(4)]
        harness.wait_for(lambda: nginx.booked() == [20, 20], "four requests are booked")
        for connection in held[:2]:
            connection.close()
        harness.wait_for(lambda: sum(nginx.requests()) == 2, "two clients have left")
        self.finish(backends, held[2:])


class Http2(cases.Case):
    def setUp(self):
        self.certificate = self.folder()
        if not curl_speaks_http2():
            self.skipTest("there is no curl with HTTP/2")
        if not harness.make_certificate(self.certificate):
            self.skipTest("there is no openssl")

    def start_http2(self, backends, capacity=100, **parts):
        tls = f"ssl_certificate {self.certificate}/cert.pem; ssl_certificate_key {self.certificate}/key.pem;"
        listen = "listen 127.0.0.1:@port:plain@ http2; listen 127.0.0.1:@port:h2@ ssl http2;"
        return self.start(cases.config(len(backends), capacity, http=tls, server=listen, **parts), backends)

    def curl(self, nginx, *paths, blocks=10, arguments=()):
        """Starts requests as streams of one connection. curl prints version, status and Retry-After of each."""
        command = ["curl", "-sS", "--http2", "--parallel", "--no-progress-meter", "--max-time", "25",
                   "--cacert", f"{self.certificate}/cert.pem", "-H", f"X-Prompt-Tokens: {blocks * harness.BLOCK_SIZE}",
                   "-w", "%{http_version} %{http_code} %header{retry-after}\\n", *arguments]
        for path in paths:
            command += ["-o", "/dev/null", f"https://127.0.0.1:{nginx.ports['h2']}{path}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def read(self, process):
        return [line.strip() for line in process.communicate(timeout=harness.PATIENCE)[0].splitlines()]

    def test_http2_without_tls_is_booked(self):
        backends = self.backends(None)
        nginx = self.start_http2(backends)
        done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", "-o", "/dev/null",
                               "-w", "%{http_version} %{http_code} %header{x-booked}", "-H", "X-Prompt-Tokens: 160",
                               f"http://127.0.0.1:{nginx.ports['plain']}/"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "2 200 10")

    def test_streams_of_one_connection_are_all_booked(self):
        backends = self.backends(None, None)
        nginx = self.start_http2(backends)
        process = self.curl(nginx, *["/?gate=1"] * 8)
        harness.wait_for(lambda: nginx.booked() == [40, 40], "eight requests are booked")
        for backend in backends:
            backend.open_gate()
        self.assertEqual(self.read(process), ["2 200"] * 8)

    def test_http2_bookings_grow(self):
        nginx = self.start_http2(self.backends(None), upstream="kvca_output growth=sse;")
        self.assertEqual(self.read(self.curl(nginx, "/?events=17")), ["2 200"])
        self.assertEqual(nginx.access_log(1)[-1].split()[-1], "[12]")

    def test_a_client_that_leaves_gives_all_back(self):
        backends = self.backends(None, None)
        nginx = self.start_http2(backends)
        process = self.curl(nginx, *["/?gate=1"] * 6)
        harness.wait_for(lambda: nginx.booked() == [30, 30], "six requests are booked")
        process.kill()
        nginx.wait_until_idle()

    def test_a_connection_goes_on_after_rejects(self):
        backends = self.backends(None)
        nginx = self.start_http2(backends, kvca=" overflow=reject status=429 retry_after=9", capacity=20)
        held = self.fill(nginx, [15])
        self.assertEqual(self.read(self.curl(nginx, *["/"] * 5)), ["2 429 9"] * 5)
        self.assertEqual(self.read(self.curl(nginx, *["/"] * 3, blocks=5, arguments=["--parallel-max", "1"])),
                         ["2 200"] * 3)
        body = ["-d", "x" * 50000]
        self.assertEqual(self.read(self.curl(nginx, "/", "/", arguments=body)), ["2 429 9"] * 2)
        self.assertEqual(nginx.logged("error"), [])
        self.finish(backends, held)
        self.assertEqual(self.read(self.curl(nginx, "/", "/", arguments=body)), ["2 200"] * 2)


class Subrequests(cases.Case):
    SERVER = """
        location = /guarded { auth_request /ask; proxy_pass http://pool/guarded; }
        location = /ask { internal; proxy_pass http://pool/ask; proxy_pass_request_body off; }
        location = /refused { auth_request /no; proxy_pass http://pool/never; }
        location = /no { internal; proxy_pass http://pool/no?status=403; }
        location = /mirrored { mirror /copy; proxy_pass http://pool/mirrored; }
        location = /copy { internal; proxy_pass http://pool/copy; }
        location = /page { ssi on; ssi_types *; root @prefix@/pages; }
        location /part { proxy_pass http://pool; }
        """

    def start_subrequests(self, count=2, **parts):
        self.all = self.backends(*[None] * count)
        nginx = self.start(cases.config(count, 100, server=self.SERVER, **parts), self.all)
        (nginx.prefix / "pages").mkdir()
        return nginx

    def seen(self):
        return sorted(path for backend in self.all for _, path in backend.seen)

    def test_auth_requests_are_booked(self):
        nginx = self.start_subrequests()
        for _ in range(3):
            self.assertEqual(nginx.ask("/guarded", cases.tokens(10)).status, 200)
        self.assertEqual(self.seen(), ["/ask"] * 3 + ["/guarded"] * 3)
        self.assertEqual(nginx.ask("/refused", cases.tokens(10)).status, 403)
        self.assertNotIn("/never", self.seen())
        self.assertEqual(nginx.zone()["counters"]["placed"], 7)

    def test_variables_of_a_main_request_are_its_own(self):
        nginx = self.start_subrequests(1, upstream="kvca_output $http_x_max_tokens;")
        answer = nginx.ask("/guarded", cases.tokens(10))
        self.assertEqual((answer.headers["x-booked"], answer.headers["x-outcome"]), ("10", "fit"))

    def test_mirrored_requests_are_booked(self):
        nginx = self.start_subrequests()
        for backend in self.all:
            backend.always = {"gate": 1}
        held = [self.open(nginx, "/mirrored", cases.tokens(10)) for _ in range(2)]
        harness.wait_for(lambda: nginx.booked() == [20, 20], "the mirrored requests are booked, too")
        self.finish(self.all, held)
        harness.wait_for(lambda: len(self.seen()) == 4, "all have arrived")
        self.assertEqual(self.seen(), ["/copy"] * 2 + ["/mirrored"] * 2)

    def test_included_parts_are_all_booked(self):
        nginx = self.start_subrequests()
        parts = "".join(f'<!--# include virtual="/part{part}?gate=1" -->' for part in range(4))
        (nginx.prefix / "pages" / "page").write_text(f"[{parts}]")
        page = self.open(nginx, "/page", cases.tokens(10))
        harness.wait_for(lambda: nginx.booked() == [20, 20], "all parts are booked at once")
        answer, = self.finish(self.all, [page])
        self.assertEqual(answer.body, b"[" + b"xx" * 4 + b"]")

    def test_bookings_of_parts_grow(self):
        nginx = self.start_subrequests(1, upstream="kvca_output growth=sse;")
        (nginx.prefix / "pages" / "page").write_text(
            '<!--# include virtual="/part0?events=17&permit=1" --><!--# include virtual="/part1?gate=1" -->')
        page = self.open(nginx, "/page", cases.tokens(10))
        harness.wait_for(lambda: nginx.booked() == [20], "both parts are booked")
        self.all[0].permit(16)
        harness.wait_for(lambda: nginx.booked() == [21], "one has grown")
        self.all[0].permit(1)
        harness.wait_for(lambda: nginx.booked() == [10], "one has ended")
        self.finish(self.all, [page])

    def test_a_client_that_leaves_gives_all_back(self):
        nginx = self.start_subrequests()
        (nginx.prefix / "pages" / "page").write_text('<!--# include virtual="/part?gate=1" -->' * 3)
        pages = [self.open(nginx, "/page", cases.tokens(10)) for _ in range(4)]
        harness.wait_for(lambda: sum(nginx.booked()) == 120, "all parts are booked")
        for page in pages:
            page.close()
        nginx.wait_until_idle()


class Others(cases.Case):
    def test_http_1_0_works_on_both_sides(self):
        """On both sides: a client that gets no length, and backends asked with HTTP/1.0."""
        backends = self.backends(None)
        text = cases.config(1, 100, upstream="kvca_output growth=sse;").replace("proxy_http_version 1.1;", "")
        nginx = self.start(text, backends)
        connection = nginx.connect()
        self.addCleanup(connection.close)
        connection.connect()
        connection.sock.sendall(b"GET /?length=5 HTTP/1.0\r\nX-Prompt-Tokens: 160\r\n\r\n")
        answer = b""
        while part := connection.sock.recv(1000):
            answer += part
        self.assertTrue(answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"xxxxx"), answer)

    def test_pipelined_requests_are_placed_or_rejected_one_by_one(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 15, kvca=" overflow=reject"), backends)
        connection = nginx.connect()
        self.addCleanup(connection.close)
        connection.connect()
        sizes = [160, 320, 160, 320]
        connection.sock.sendall(b"".join(b"GET / HTTP/1.1\r\nHost: kvca\r\nX-Prompt-Tokens: %d\r\n%s\r\n" % (
            size, b"Connection: close\r\n" if number == 3 else b"") for number, size in enumerate(sizes)))
        answer = b""
        while part := connection.sock.recv(10000):
            answer += part
        self.assertEqual([answer.count(b"HTTP/1.1 200 "), answer.count(b"HTTP/1.1 503 ")], [2, 2])

    def test_an_upgraded_connection_is_booked_until_it_ends(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100).replace(
            'proxy_set_header Connection "";', 'proxy_set_header Connection upgrade; proxy_set_header Upgrade echo;'),
            backends)
        connection = self.open(nginx, "/?upgrade=1", cases.tokens(10) | {"Connection": "upgrade", "Upgrade": "echo"})
        harness.wait_for(lambda: nginx.booked() == [10], "the request is booked")
        head = connection.sock.recv(1000)
        self.assertTrue(head.startswith(b"HTTP/1.1 101"), head)
        connection.sock.sendall(b"hello")
        self.assertEqual(connection.sock.recv(5), b"hello")
        self.assertEqual(nginx.booked(), [10])
        connection.close()

    def test_requests_that_nginx_answers_itself_are_not_booked(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100, location="client_max_body_size 1k;",
                                        server="location /no { deny all; proxy_pass http://pool; }"), backends)
        self.assertEqual(nginx.ask("/", method="POST", body=b"x" * 2000).status, 413)
        self.assertEqual(nginx.ask("/no").status, 403)
        self.assertEqual(nginx.zone()["counters"]["placed"], 0)

    def test_head_requests_are_answered(self):
        nginx = self.start(cases.config(1, 100), self.backends(None))
        self.assertEqual(nginx.ask("/?length=0", cases.tokens(10), method="HEAD").status, 200)

    def test_an_answer_from_the_cache_is_not_booked(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100, http="proxy_cache_path @prefix@/cache keys_zone=cache:1m;",
                                        location="proxy_buffering on; proxy_cache cache; proxy_cache_valid 1h;"),
                           backends)
        self.assertEqual(nginx.ask("/same", cases.tokens(10)).headers.get("x-booked"), "10")
        harness.wait_for(lambda: nginx.ask("/same").headers.get("x-booked") is None, "the answer is in the cache")
        placed = nginx.zone()["counters"]["placed"]
        for _ in range(3):
            self.assertEqual(nginx.ask("/same", cases.tokens(10)).body, b"xx")
        self.assertEqual(nginx.zone()["counters"]["placed"], placed)
