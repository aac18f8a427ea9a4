# SPDX-License-Identifier: Apache-2.0
"""How many blocks a request books, and what the variables say about it."""

import cases
import harness

MOST = 2**63 - 1  # the largest number that is accepted


class Booking(cases.Case):
    def booked(self, nginx, headers, body=None):
        answer = nginx.ask("/", {key: str(value) for key, value in headers.items()}, body=body,
                           method="POST" if body else "GET")
        self.assertEqual(answer.status, 200, answer)
        return int(answer.headers["x-booked"])

    def check_booked(self, text, rows):
        nginx = self.start(text, self.backends())

        def check(expected, headers, body=None):
            self.assertEqual(self.booked(nginx, headers, body), expected)
        self.check_table(rows, check)

    def test_a_number_gives_the_prompt_tokens(self):
        self.check_booked(cases.config(), [
            (1, {"X-Prompt-Tokens": 0}),
            (1, {"X-Prompt-Tokens": 1}),
            (1, {"X-Prompt-Tokens": 16}),
            (2, {"X-Prompt-Tokens": 17}),
            (10, {"X-Prompt-Tokens": 160}),
            (11, {"X-Prompt-Tokens": 161}),
            (10, {"X-Prompt-Tokens": "000160"}),
            (10, {"X-Prompt-Tokens": 160}, b"x" * 8000),
            (2**59, {"X-Prompt-Tokens": MOST}),
        ])

    def test_without_a_number_the_body_length_gives_the_prompt_tokens(self):
        body = b"x" * 8000
        rows = [(125, {"X-Prompt-Tokens": value}, body)
                for value in ("abc", "-160", "+160", "1e3", "0x10", "16.0", "160 tokens", MOST + 1, "9" * 40)]
        self.check_booked(cases.config(), rows + [
            (125, {}, body),
            (125, {"X-Prompt-Tokens": ""}, body),
            (1, {}, b"x"),
            (1, {}, b"x" * 64),
            (2, {}, b"x" * 65),
            (1, {}),
            (1, {"X-Prompt-Tokens": "abc"}),
        ])

    def test_bytes_per_token(self):
        self.check_booked(cases.config(tokens=" bytes_per_token=3"), [
            (167, {}, b"x" * 8000),
            (1, {}, b"x" * 48),
            (2, {}, b"x" * 49),
            (2, {"X-Prompt-Tokens": 17}, b"x" * 8000),
        ])

    def test_without_the_directive_a_token_has_four_bytes(self):
        text = cases.config().replace("kvca_tokens $http_x_prompt_tokens;", "")
        self.check_booked(text, [(125, {"X-Prompt-Tokens": 160}, b"x" * 8000), (1, {"X-Prompt-Tokens": 160})])

    def test_the_value_may_be_a_number_or_a_map(self):
        self.check_booked(cases.config().replace("$http_x_prompt_tokens", "320"), [(20, {"X-Prompt-Tokens": 16})])
        text = cases.config(http="map $http_x_kind $size { default 160; long 1600; none none; }")
        self.check_booked(text.replace("$http_x_prompt_tokens", "$size"), [
            (10, {}), (100, {"X-Kind": "long"}), (2, {"X-Kind": "none"}, b"x" * 100)])
        self.check_booked(text.replace("$http_x_prompt_tokens", "\"$http_a$http_b\""), [(100, {"A": 16, "B": "00"})])

    def test_max_bounds_prompt_and_output_together(self):
        self.check_booked(cases.config(tokens=" max=1600", upstream="kvca_output $http_x_max_tokens;"), [
            (10, {"X-Prompt-Tokens": 160}),
            (100, {"X-Prompt-Tokens": 1600}),
            (100, {"X-Prompt-Tokens": 1601}),
            (100, {"X-Prompt-Tokens": MOST, "X-Max-Tokens": MOST}),
            (100, {"X-Prompt-Tokens": 1000, "X-Max-Tokens": 601}),
            (98, {"X-Prompt-Tokens": 1000, "X-Max-Tokens": 553}),
            (100, {}, b"x" * 20000),
        ])

    def test_output_is_booked_ahead(self):
        self.check_booked(cases.config(upstream="kvca_output $http_x_max_tokens;"), [
            (10, {"X-Prompt-Tokens": 160}),
            (20, {"X-Prompt-Tokens": 160, "X-Max-Tokens": 160}),
            (11, {"X-Prompt-Tokens": 160, "X-Max-Tokens": 1}),
            (10, {"X-Prompt-Tokens": 160, "X-Max-Tokens": "many"}),
            (10, {"X-Prompt-Tokens": 160, "X-Max-Tokens": -1}),
            (135, {"X-Max-Tokens": 160}, b"x" * 8000),
            (2**60, {"X-Prompt-Tokens": MOST, "X-Max-Tokens": MOST}),
        ])
        self.check_booked(cases.config(upstream="kvca_output 32;"), [(12, {"X-Prompt-Tokens": 160})])

    def test_the_output_may_come_from_the_body(self):
        """As docs/nginx.md shows it. A body that nginx does not keep in memory is not read."""
        number = '"max_(completion_)?tokens"\\s*:\\s*(?<tokens>[0-9]+)'
        text = cases.config(upstream="kvca_output $max_tokens;", location="client_body_buffer_size 4k;",
                            http=f"map $request_body $max_tokens {{ '~{number}' $tokens; }}")
        self.check_booked(text, [
            (20, {"X-Prompt-Tokens": 160}, b'{"prompt": "", "max_tokens": 160}'),
            (20, {"X-Prompt-Tokens": 160}, b'{"max_completion_tokens":160, "prompt": ""}'),
            (10, {"X-Prompt-Tokens": 160}, b'{"prompt": "", "max_tokens": null}'),
            (10, {"X-Prompt-Tokens": 160}, b'{"prompt": "' + b"x" * 10000 + b'", "max_tokens": 160}'),
            (10, {"X-Prompt-Tokens": 160}),
        ])

    def test_block_size_of_the_zone(self):
        self.check_booked(cases.config(zone=" block_size=100"), [
            (1, {"X-Prompt-Tokens": 100}), (2, {"X-Prompt-Tokens": 101}), (20, {}, b"x" * 8000)])
        self.check_booked(cases.config(zone=" block_size=1"), [(160, {"X-Prompt-Tokens": 160})])

    def test_a_buffered_body_is_measured(self):
        backends = self.backends()
        nginx = self.start(cases.config(location="client_max_body_size 10m; client_body_buffer_size 8k;"), backends)
        sizes = [0, 1, 64, 65, 8000, 100000]
        for size in sizes:
            chunks = [b"x" * 1000] * (size // 1000) + [b"x" * (size % 1000)]
            for headers, body in (({}, b"x" * size), ({"Transfer-Encoding": "chunked"}, iter(chunks))):
                answer = nginx.ask("/", headers, method="POST", body=body)
                self.assertEqual((answer.status, answer.headers["x-booked"]), (200, str(max(1, -(-size // 64)))),
                                 f"{size} bytes, {headers}")
        self.assertEqual(backends[0].bodies, [size for size in sizes for _ in range(2)])

    def test_an_unbuffered_body_counts_with_its_stated_length(self):
        backends = self.backends()
        nginx = self.start(cases.config(location="proxy_request_buffering off;"), backends)
        stated = nginx.ask("/", method="POST", body=b"x" * 8000)
        self.assertEqual((stated.status, stated.headers["x-booked"]), (200, "125"))
        late = nginx.connect()
        self.addCleanup(late.close)
        late.putrequest("POST", "/")
        late.putheader("Transfer-Encoding", "chunked")
        late.endheaders()
        harness.wait_for(lambda: nginx.booked() == [1], "the request is booked before its body comes")
        late.send(b"1f40\r\n" + b"x" * 8000 + b"\r\n0\r\n\r\n")
        answer = harness.read_answer(late.getresponse())
        self.assertEqual((answer.status, answer.headers["x-booked"]), (200, "1"))
        self.assertEqual(backends[0].bodies, [8000, 8000])

    def test_a_booking_that_would_overflow(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, zone=" block_size=1", http="""
            upstream strict { kvca zone=ranks overflow=reject; kvca_tokens $http_x_prompt_tokens; server @b0@; }
            """, server="location /strict { proxy_pass http://strict; }"), backends)
        huge = {"X-Prompt-Tokens": str(MOST)}
        held = [self.open(nginx, "/?gate=1", huge) for _ in range(2)]
        harness.wait_for(lambda: nginx.requests() == [2], "two requests are booked")
        self.assertEqual(nginx.booked(), [2 * MOST])
        answer = nginx.ask("/", huge)
        self.assertEqual((answer.status, answer.headers["x-outcome"]), (502, "none_eligible"))
        answer = nginx.ask("/strict", huge)
        self.assertEqual((answer.status, answer.headers["x-outcome"]), (503, "none_fits"))
        self.assertEqual(nginx.ask("/", {"X-Prompt-Tokens": "1"}).headers["x-outcome"], "fit")
        self.finish(backends, held)

    def test_variables_in_the_access_log(self):
        backends = self.backends()
        text = cases.config(1, 100, http="""
            upstream other { server @b0@; }
            """, server="""
            location /other { proxy_pass http://other; }
            location /plain { return 200 plain; }
            """)
        nginx = self.start(text, backends, workers=1)  # one worker writes its lines in order
        for path in ("/fits", "/other", "/plain"):
            self.assertEqual(nginx.ask(path, cases.tokens(10)).status, 200)
        nginx.ask("/large", cases.tokens(101))
        rank = backends[0].address
        self.assertEqual(nginx.access_log(4), [
            f"/fits 200 [{rank}] [fit] [10]",
            "/other 200 [-] [-] [-]",
            "/plain 200 [-] [-] [-]",
            f"/large 200 [{rank}] [fallback] [101]",
        ])

    def test_variables_after_an_error_page(self):
        backends = self.backends()
        text = cases.config(1, 100, location="proxy_intercept_errors on; error_page 500 /sorry; error_page 404 @named;",
                            server="""
            location = /sorry { internal; return 200 sorry; }
            location @named { return 200 named; }
            """)
        nginx = self.start(text, backends, workers=1)
        self.assertEqual(nginx.ask("/a?status=500", cases.tokens(3)).body, b"sorry")
        self.assertEqual(nginx.ask("/b?status=404", cases.tokens(4)).body, b"named")
        rank = backends[0].address
        self.assertEqual(nginx.access_log(2), [f"/sorry 500 [{rank}] [fit] [3]", f"/b 404 [{rank}] [fit] [4]"])

    def test_variables_describe_the_last_of_several_passes(self):
        backends = self.backends(None, None)
        text = cases.config(1, 100, location="proxy_intercept_errors on; error_page 500 = /again;", http="""
            upstream second { kvca zone=ranks; kvca_tokens 80; kvca_rank @b1@ total_kv_blocks=3; server @b1@; }
            """, server="location = /again { proxy_pass http://second/?status=200; }")
        nginx = self.start(text, backends)
        answer = nginx.ask("/?status=500", cases.tokens(9))
        self.assertEqual((answer.status, answer.headers["x-rank"], answer.headers["x-outcome"],
                          answer.headers["x-booked"]), (200, backends[1].address, "fallback", "5"))
