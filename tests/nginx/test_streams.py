# SPDX-License-Identifier: Apache-2.0
"""Answers that stream: their bookings grow, and their clients leave."""

import http.client
import socket
import struct

import cases
import harness
from harness import Ask, Gate, run_load

GROWTH = "kvca_output $http_x_max_tokens growth=sse;"


def reset(connection):
    """Ends a connection in the way of a killed client."""
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Growth(cases.Case):
    def test_a_booking_grows_while_its_answer_streams(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, upstream=GROWTH), backends)
        held = self.open(nginx, "/?events=161&permit=1", cases.tokens(10))
        for events, blocks in ((0, 10), (1, 11), (15, 11), (1, 12), (15, 12), (1, 13), (127, 20)):
            backends[0].permit(events)
            harness.wait_for(lambda blocks=blocks: nginx.booked() == [blocks], f"{blocks} blocks are booked")
        backends[0].permit(1)
        self.assertEqual(harness.read_answer(held.getresponse()).body.count(b"\n\n"), 161)
        self.assertEqual(nginx.access_log(1)[0].split()[-1], "[21]")

    def grown(self, nginx, path, headers=None, expected=None):
        before = len(nginx.access_log())
        answer = nginx.ask(path, headers if headers is not None else cases.tokens(10))
        self.assertEqual(answer.status, 200)
        if expected is not None:
            self.assertEqual(answer.body, expected)
        return int(nginx.access_log(before + 1)[-1].split()[-1].strip("[]"))

    def check_grown(self, nginx, rows):
        def check(expected, path, headers=None):
            self.assertEqual(self.grown(nginx, path, headers), expected)
        self.check_table(rows, check)

    def test_a_booking_grows_only_past_what_is_booked_ahead(self):
        nginx = self.start(cases.config(1, 1000, upstream=GROWTH), self.backends(None))

        def tokens(prompt, ahead):
            return {"X-Prompt-Tokens": str(prompt), "X-Max-Tokens": str(ahead)}
        self.check_grown(nginx, [
            (11, "/?events=1"),
            (11, "/?events=16"),
            (12, "/?events=17"),
            (10, "/?events=0"),
            (10, "/?events=8", {"X-Prompt-Tokens": "152"}),
            (11, "/?events=9", {"X-Prompt-Tokens": "152"}),
            (1, "/?events=16", {"X-Prompt-Tokens": "0"}),
            (20, "/?events=160", tokens(160, 160)),
            (20, "/?events=10", tokens(160, 160)),
            (21, "/?events=161", tokens(160, 160)),
            (20, "/?events=160", tokens(160, 80)),
            (20, "/?events=160", tokens(160, "many")),
        ])

    def test_a_booking_does_not_grow_past_max(self):
        nginx = self.start(cases.config(1, 1000, upstream=GROWTH, tokens=" max=200"), self.backends(None))
        self.check_grown(nginx, [(13, "/?events=400"), (13, "/?events=40"), (12, "/?events=32")])

    def test_block_size(self):
        nginx = self.start(cases.config(1, 1000, zone=" block_size=50", upstream=GROWTH), self.backends(None))
        self.check_grown(nginx, [(4, "/?events=40"), (5, "/?events=41"), (5, "/?events=90")])

    def test_only_events_are_counted(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, upstream=GROWTH), backends)
        self.check_grown(nginx, [
            (20, "/?events=160&type=text/event-stream%3B%20charset%3Dutf-8"),
            (20, "/?events=160&type=Text/Event-Stream"),
            (10, "/?events=160&type=application/json"),
            (10, "/?events=160&type=text/plain"),
            (10, "/?length=10000"),
        ])
        plain = self.start(cases.config(1, 1000, upstream="kvca_output $http_x_max_tokens;"), backends)
        self.check_grown(plain, [(10, "/?events=160")])

    def test_an_event_has_data_and_ends_with_a_blank_line(self):
        """Lines end with LF or CR LF."""
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, zone=" block_size=1", upstream=GROWTH), backends)

        def check(events, text):
            backends[0].scripts["text"] = [text]
            self.assertEqual(self.grown(nginx, "/?script=text", {"X-Prompt-Tokens": "1"}, text), 1 + events)
        self.check_table([
            (1, b"data: a\n\n"),
            (1, b"data: a\r\n\r\n"),
            (2, b"data: a\n\ndata: b\n\n"),
            (2, b"data: a\r\n\r\ndata: b\r\n\r\n"),
            (1, b"data:a\n\n"),
            (1, b"data\n\n"),
            (1, b"data:\n\n"),
            (1, b"event: x\ndata: a\ndata: b\nid: 1\n\n"),
            (1, b"data: a\n\n\n\n\n"),
            (1, b"data: a\nevent: x\n\n"),
            (1, b"data: a\n: why\n\n"),
            (0, b": ping\n\n: ping\n\n"),
            (0, b"event: x\n\n"),
            (0, b"\n\n\n\n"),
            (0, b"data: a\n"),
            (0, b"data: a"),
            (1, b"data: a\n\ndata: b\n"),
            (0, b"xdata: a\n\n"),
            (0, b"DATA: a\n\n"),
            (0, b" data: a\n\n"),
            (0, b""),
            (2, b"data: {\"a\": \"b\\n\\n\"}\n\ndata: [DONE]\n\n"),
        ], check)

    def test_events_may_be_split_anywhere(self):
        """The backend waits after each part until the client has it, so nginx sees the parts one by one."""
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, zone=" block_size=1", upstream=GROWTH), backends)
        for text in (b": hi\n\nevent: x\ndata: a\n\ndata: b\n\n",
                     b"data: a\r\n\r\n: hi\r\n\r\ndata: b\r\n\r\n",
                     b"data: a\n\rx\ndata: b\n\ndata: c\n\n"):
            for cut in range(1, len(text)):
                gate = Gate()
                backends[0].scripts["text"] = [text[:cut], gate, text[cut:]]
                response = self.open(nginx, "/?script=text", {"X-Prompt-Tokens": "1"}).getresponse()
                self.assertEqual(response.read(cut), text[:cut])
                gate.open()
                self.assertEqual(response.read(), text[cut:])
        self.assertEqual({line.split()[-1] for line in nginx.access_log(1)}, {"[3]"})

    def test_events_in_many_small_parts(self):
        """Each byte is a chunk of its own, and nginx gets many of them at once."""
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, zone=" block_size=1", upstream=GROWTH), backends)
        text = b"data: a\r\n\r\n: hi\n\ndata: b\n\n" * 20
        backends[0].scripts["text"] = [bytes([byte]) for byte in text]
        self.assertEqual(self.grown(nginx, "/?script=text", {"X-Prompt-Tokens": "1"}, text), 41)

    def test_large_events_and_buffering(self):
        for location in ("proxy_buffering on;", "proxy_buffering off;", "gzip on; gzip_types *; gzip_min_length 1;"):
            backends = self.backends(None)
            nginx = self.start(cases.config(1, 1000, upstream=GROWTH).replace("proxy_buffering off;", location),
                               backends)
            large = b"data: " + b"x" * 100000 + b"\n\n"
            backends[0].scripts["text"] = [large] * 17
            for headers in ({}, {"Accept-Encoding": "gzip"}):
                self.assertEqual(self.grown(nginx, "/?script=text", cases.tokens(10) | headers), 12, location)

    def test_growth_of_many(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 1000, upstream=GROWTH, after="keepalive 16;"), backends)
        result = run_load(nginx.port, 20, lambda *_: Ask("/?events=32&every=0.001", cases.tokens(10)), seconds=20,
                          most=10)
        self.assertEqual((result.statuses, result.failures), ({200: 200}, {}))
        self.assertEqual({line.split()[-1] for line in nginx.access_log(200)}, {"[12]"})
        self.assertEqual(nginx.zone()["counters"], {"placed": 200, "fallbacks": 0, "none": 0, "stale": 0, "voided": 0})

    def test_growth_takes_room_from_others(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 20, kvca=" overflow=reject", upstream=GROWTH), backends)
        held = self.open(nginx, "/?events=160&permit=1", cases.tokens(10))
        harness.wait_for(lambda: nginx.booked() == [10], "booked")
        self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 200)
        backends[0].permit(1)
        harness.wait_for(lambda: nginx.booked() == [11], "grown")
        self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 503)
        backends[0].permit(159)
        self.assertEqual(harness.read_answer(held.getresponse()).status, 200)

    def test_growth_past_the_capacity(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 12, upstream=GROWTH), backends)
        self.check_grown(nginx, [(20, "/?events=160")])
        self.assertEqual(nginx.zone()["counters"]["fallbacks"], 0)

    def test_a_booking_grows_after_a_retry(self):
        backends = self.backends(None, None)
        backends[0].always = {"status": 503}
        nginx = self.start(cases.config(2, [1000, 10], upstream=GROWTH,
                                        location="proxy_next_upstream error http_503;"), backends)
        self.assertEqual(self.grown(nginx, "/?events=33", cases.tokens(20)), 23)

    def test_events_count_in_an_answer_with_any_status(self):
        nginx = self.start(cases.config(1, 1000, upstream=GROWTH), self.backends(None))
        self.assertEqual(nginx.ask("/?events=17&status=400", cases.tokens(10)).status, 400)
        self.assertEqual(nginx.access_log(1)[0].split()[-1], "[12]")


class Ends(cases.Case):
    def test_a_client_that_leaves_a_stream_gives_back(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 1000, upstream=GROWTH, after="keepalive 16;"), backends)
        held = [self.open(nginx, "/?events=1000&every=0.02", cases.tokens(10)) for _ in range(30)]
        for connection in held:
            connection.response = connection.getresponse()
            connection.response.read(10)
        self.assertEqual(nginx.requests(), [15, 15])
        for connection in held:
            connection.response.close()
            connection.close()
        nginx.wait_until_idle()
        harness.wait_for(lambda: [backend.active for backend in backends] == [0, 0], "the backends notice it, too")

    def test_a_client_that_leaves_before_the_answer_gives_back(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 1000), backends)
        held = self.fill(nginx, [10] * 10)
        self.assertEqual(nginx.requests(), [5, 5])
        for number, connection in enumerate(held):
            reset(connection) if number % 2 else connection.close()
        nginx.wait_until_idle()
        harness.wait_for(lambda: [backend.active for backend in backends] == [0, 0], "the backends notice it, too")

    def test_a_client_that_leaves_while_its_request_is_read_gives_back(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, location="proxy_request_buffering off;"), backends)
        held = []
        for _ in range(5):
            connection = nginx.connect()
            self.addCleanup(connection.close)
            connection.putrequest("POST", "/")
            connection.putheader("X-Prompt-Tokens", "160")
            connection.putheader("Content-Length", "1000")
            connection.endheaders(b"x" * 10)
            held.append(connection)
        harness.wait_for(lambda: nginx.booked() == [50], "five requests are booked")
        for connection in held:
            reset(connection)

    def test_nginx_may_go_on_after_its_client_has_left(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, location="proxy_ignore_client_abort on;"), backends, workers=1)
        for connection in self.fill(nginx, [10] * 4):
            connection.close()
        nginx.ask("/", cases.tokens(10))  # by now nginx could know
        self.assertEqual(nginx.booked(), [40])
        backends[0].open_gate()
        self.assertEqual([line.split()[1] for line in nginx.access_log(5)], ["200"] * 5)

    def test_growth_counts_until_a_backend_breaks_off(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000, upstream=GROWTH), backends)
        for _ in range(5):
            response = self.open(nginx, "/?events=100&cut=17", cases.tokens(10)).getresponse()
            with self.assertRaises(http.client.IncompleteRead):
                response.read()
        self.assertEqual({line.split()[-1] for line in nginx.access_log(5)}, {"[12]"})

    def test_streams_of_a_dead_backend_are_given_back(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 1000), backends)
        begun = [self.open(nginx, "/?events=9&permit=1", cases.tokens(10)).getresponse() for _ in range(8)]
        self.assertEqual(nginx.requests(), [4, 4])
        backends[0].stop()
        harness.wait_for(lambda: nginx.requests() == [0, 4], "the bookings on the dead backend are given back")
        backends[1].stop()
        for response in begun:
            with self.assertRaises(http.client.IncompleteRead):
                response.read()

    def test_connections_to_backends_are_kept(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 1000, after="keepalive 32;"), backends)
        result = run_load(nginx.port, 8, lambda *_: Ask("/", cases.tokens(10)), seconds=10, most=50)
        self.assertEqual((result.statuses, result.failures), ({200: 400}, {}))
        self.assertLess(sum(backend.connections for backend in backends), 100)
