# SPDX-License-Identifier: Apache-2.0
"""overflow=reject: a request that fits nowhere gets its answer at once."""

import cases
import harness


class Reject(cases.Case):
    def full(self, kvca="", workers=2, **parts):
        """An nginx that rejects, with one rank whose 10 blocks are all taken."""
        self.backend, = backends = self.backends(None)
        nginx = self.start(cases.config(1, 10, kvca=" overflow=reject" + kvca, **parts), backends, workers=workers)
        self.held = self.fill(nginx, [10])
        return nginx

    def make_room(self, nginx):
        self.finish([self.backend], self.held)
        nginx.wait_until_idle()

    def check_quiet(self, nginx):
        """A reject is not an error: it is only in the access log."""
        self.assertEqual(nginx.logged("error"), [])

    def test_status_and_retry_after(self):
        for kvca, status, retry_after in (("", 503, "1"),
                                          (" status=429", 429, "1"),
                                          (" status=429 retry_after=7", 429, "7"),
                                          (" status=503 retry_after=0", 503, None),
                                          (" status=400 retry_after=3600", 400, "3600"),
                                          (" status=599", 599, "1"),
                                          (" status=502", 502, "1")):
            nginx = self.full(kvca)
            answer = nginx.ask("/", cases.tokens(1))
            self.assertEqual((answer.status, answer.headers.get("retry-after")), (status, retry_after), kvca)
            self.assertEqual((answer.headers["x-outcome"], answer.headers.get("x-booked")), ("none_fits", None))
            counters = nginx.zone()["counters"]
            self.assertEqual((counters["placed"], counters["none"], counters["fallbacks"]), (1, 1, 0))
            self.assertEqual(nginx.access_log(1), [f"/ {status} [-] [none_fits] [-]"])
            self.check_quiet(nginx)
            self.make_room(nginx)
            answer = nginx.ask("/", cases.tokens(10))
            self.assertEqual((answer.status, answer.headers.get("retry-after")), (200, None))
            self.assertEqual(len(self.backend.seen), 2)  # only the placed ones

    def test_place_is_the_default(self):
        for kvca in ("", " overflow=place"):
            backends = self.backends(None)
            nginx = self.start(cases.config(1, 10, kvca=kvca), backends)
            held = self.fill(nginx, [10, 10])
            self.finish(backends, held)

    def test_a_request_that_fits_is_taken_while_others_are_rejected(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, [100, 20], kvca=" overflow=reject"), backends)
        held = self.fill(nginx, [90])
        for _ in range(10):
            self.assertEqual(nginx.ask("/", cases.tokens(21)).status, 503)
            self.assertEqual(nginx.ask("/", cases.tokens(20)).status, 200)
            harness.wait_for(lambda: sum(nginx.booked()) == 90, "given back")
        self.finish(backends, held)

    def test_a_connection_goes_on_after_a_reject(self):
        nginx = self.full()
        connection = nginx.connect()
        self.addCleanup(connection.close)
        for body in (None, b"x" * 10, b"x" * 100000):
            connection.request("POST" if body else "GET", "/", body, cases.tokens(1))
            self.assertEqual(harness.read_answer(connection.getresponse()).status, 503)
            local = connection.sock and connection.sock.getsockname()
            self.assertIsNotNone(local, "nginx closed the connection")
        self.make_room(nginx)
        connection.request("GET", "/", headers=cases.tokens(1))
        self.assertEqual(harness.read_answer(connection.getresponse()).status, 200)
        self.assertEqual(connection.sock.getsockname(), local, "the client needed another connection")
        self.check_quiet(nginx)

    def test_a_body_that_is_not_buffered(self):
        nginx = self.full(location="proxy_request_buffering off;")
        for _ in range(5):
            self.assertEqual(nginx.ask("/", cases.tokens(1), method="POST", body=b"x" * 500000).status, 503)
        self.check_quiet(nginx)
        self.make_room(nginx)
        self.assertEqual(nginx.ask("/", cases.tokens(1), method="POST", body=b"x" * 500000).status, 200)

    def test_error_page(self):
        nginx = self.full(" status=429 retry_after=5", location="error_page 429 /busy;", server="""
            location = /busy { internal; return 429 "busy, $kvca_outcome"; }
            """)
        answer = nginx.ask("/", cases.tokens(1))
        self.assertEqual((answer.status, answer.body), (429, b"busy, none_fits"))
        self.assertEqual(answer.headers.get("retry-after"), "5")
        self.assertEqual(nginx.access_log(1), ["/busy 429 [-] [none_fits] [-]"])
        self.check_quiet(nginx)
        self.make_room(nginx)

    def test_error_page_that_goes_to_another_upstream(self):
        spare = harness.Backend()
        self.addCleanup(spare.stop)
        nginx = self.full(location="error_page 503 = @spare;", http=f"upstream spare {{ server {spare.address}; }}",
                          server="location @spare { proxy_pass http://spare; }")
        answer = nginx.ask("/", cases.tokens(1))
        self.assertEqual((answer.status, answer.headers["x-backend"]), (200, spare.address))
        self.assertIsNone(answer.headers.get("retry-after"), "the answer comes from the other upstream")
        self.check_quiet(nginx)
        self.make_room(nginx)

    def test_a_retry_that_fits_nowhere(self):
        backends = self.backends(None, None)
        backends[0].always = {"status": 503}
        nginx = self.start(cases.config(2, [100, 10], kvca=" overflow=reject status=429",
                                        location="proxy_next_upstream error http_503;"), backends)
        answer = nginx.ask("/", cases.tokens(50))
        self.assertEqual((answer.status, answer.headers["x-outcome"]), (429, "none_fits"))
        self.assertEqual((answer.headers.get("x-rank"), answer.headers.get("x-booked")), (None, None))
        self.assertEqual((len(backends[0].seen), len(backends[1].seen)), (1, 0))

    def test_nginx_variables_show_a_reject(self):
        nginx = self.full(http='log_format try "$status [$upstream_addr] [$upstream_status]";',
                          location="access_log @prefix@/tries.log try;")
        nginx.ask("/", cases.tokens(1))
        self.assertEqual(nginx.access_log(1, "tries.log"), ["503 [pool] [503]"])
        self.make_room(nginx)

    def test_no_eligible_server_is_not_a_reject(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(servers="server @b0@ down;", kvca=" overflow=reject status=429"), backends)
        answer = nginx.ask("/", cases.tokens(50))
        self.assertEqual((answer.status, answer.headers.get("retry-after")), (502, None))
        self.assertIn("no live upstreams", nginx.logged("error")[0])

    def test_one_upstream_places_where_another_rejects(self):
        nginx = self.full(http="""
            upstream patient { kvca zone=ranks; kvca_tokens $http_x_prompt_tokens; server @b0@; }
            """, server="location /patient { proxy_pass http://patient; }")
        self.assertEqual(nginx.ask("/", cases.tokens(1)).status, 503)
        self.assertEqual(nginx.ask("/patient", cases.tokens(1)).headers["x-outcome"], "fallback")
        self.make_room(nginx)

    def test_a_reject_works_with_other_protocols(self):
        paths = ["fastcgi", "uwsgi", "scgi", "grpc", "memcached"]
        nginx = self.full(server="\n".join(f"location /{path} {{ set $memcached_key a; {path}_pass pool; }}"
                                           for path in paths))
        for path in paths:
            answer = nginx.ask(f"/{path}", cases.tokens(1))
            self.assertEqual((answer.status, answer.headers.get("retry-after")), (503, "1"), path)
        self.assertEqual(nginx.zone()["counters"]["none"], len(paths))
        self.check_quiet(nginx)
        self.make_room(nginx)

    def test_in_subrequests(self):
        """The main request may do with it what it likes, but never hangs."""
        nginx = self.full(server="""
            location /guarded { auth_request /ask; proxy_pass http://127.0.0.1:@port@/plain; }
            location /page { ssi on; ssi_types *; root @prefix@/pages; }
            location /mirrored { mirror /ask; proxy_pass http://127.0.0.1:@port@/plain; }
            location /plain { return 200 plain; }
            location /ask { internal; proxy_pass http://pool/; }
            """)
        (nginx.prefix / "pages").mkdir()
        (nginx.prefix / "pages" / "page").write_text('[<!--# include virtual="/ask" -->]')
        for _ in range(2):
            self.assertEqual(nginx.ask("/guarded", cases.tokens(1)).status, 500)
            page = nginx.ask("/page", cases.tokens(1))
            self.assertEqual(page.status, 200)
            self.assertRegex(page.body.decode(), r"(?s)^\[.*503.*\]$")
            self.assertEqual(nginx.ask("/mirrored", cases.tokens(1)).body, b"plain")
        self.assertEqual(nginx.zone()["counters"]["none"], 6)
        unexpected = [line for line in nginx.logged("error") if "auth request unexpected status: 503" not in line]
        self.assertEqual(unexpected, [])
        self.make_room(nginx)
        self.assertEqual(nginx.ask("/page", cases.tokens(1)).body, b"[xx]")
