# SPDX-License-Identifier: Apache-2.0
"""Tries that fail. The booking of a try is given back before the next try books, and its rank is not tried again."""

import collections

import cases
import harness
from harness import Ask, run_load

NEXT = "proxy_next_upstream error timeout http_503;"


class Retries(cases.Case):
    def test_a_dead_backend(self):
        backends = self.backends(None, None, None)
        nginx = self.start(cases.config(3, 400, server_options="max_fails=1 fail_timeout=60s", after="keepalive 16;"),
                           backends)
        backends[1].stop()
        result = run_load(nginx.port, 40, lambda *_: Ask("/?hold=0.005", cases.tokens(10)), seconds=10, most=40)
        self.assertEqual((result.statuses, result.failures), ({200: 1600}, {}))
        # Each worker tries it until the first failure is known: no more often than it can have requests at once.
        refused = [line for line in nginx.logged("error") if "Connection refused" in line]
        self.assertTrue(1 <= len(refused) <= 40, len(refused))
        self.assertEqual(nginx.zone()["counters"]["placed"], 1600 + len(refused))

    def test_each_try_is_given_back_before_the_next_books(self):
        backends = self.backends(None, None, None)
        for backend in backends[:2]:
            backend.always = {"status": 503}
        nginx = self.start(cases.config(3, 10, kvca=" overflow=reject", location=NEXT), backends)
        for _ in range(20):
            answer = nginx.ask("/", cases.tokens(10))
            self.assertEqual((answer.status, answer.headers["x-backend"]), (200, backends[2].address))
            self.assertEqual(answer.headers["x-rank"], backends[2].address)
            nginx.wait_until_idle()
        seen = sum(len(backend.seen) for backend in backends)
        self.assertEqual(nginx.zone()["counters"]["placed"], seen)
        self.assertEqual([backend.peak_active for backend in backends], [1, 1, 1])

    def test_in_flight_only_the_last_try_is_booked(self):
        backends = self.backends(None, None)
        backends[0].always = {"status": 503}
        backends[1].always = {"gate": 1}
        nginx = self.start(cases.config(2, [1000, 100], location=NEXT), backends)
        # Rank 0 takes the request, which does not fit on rank 1. It answers 503, and only rank 1 is left.
        held = self.open(nginx, "/", cases.tokens(500))
        harness.wait_for(lambda: backends[1].active == 1, "the second try is in flight")
        self.assertEqual((nginx.booked(), nginx.requests()), ([0, 500], [0, 1]))
        self.assertEqual(nginx.zone()["counters"]["fallbacks"], 1)
        answer, = self.finish(backends[1:], [held])
        self.assertEqual(answer.headers["x-outcome"], "fallback")

    def test_a_rank_is_tried_once(self):
        backends = self.backends(None, None, None, None)
        for backend in backends:
            backend.always = {"status": 503}
        nginx = self.start(cases.config(4, 100, location=NEXT), backends)
        for number in range(1, 11):
            self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 503)  # the status of the last try
            self.assertEqual([len(backend.seen) for backend in backends], [number] * 4)

    def test_tries_are_bounded(self):
        backends = self.backends(None, None, None, None)
        for backend in backends:
            backend.always = {"status": 503}
        nginx = self.start(cases.config(4, 100, location=NEXT + " proxy_next_upstream_tries 2;"), backends)
        for _ in range(10):
            self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 503)
        self.assertEqual(sum(len(backend.seen) for backend in backends), 20)
        self.assertEqual(nginx.zone()["counters"]["placed"], 20)

    def test_no_retry_unless_configured(self):
        backends = self.backends(None, None)
        backends[0].always = {"status": 503}
        nginx = self.start(cases.config(2, 100, location="proxy_next_upstream off;"), backends)
        statuses = collections.Counter(nginx.ask("/", cases.tokens(10)).status for _ in range(40))
        self.assertEqual(statuses, {200: len(backends[1].seen), 503: len(backends[0].seen)})

    def test_if_all_backends_are_dead_each_is_tried_once(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100), backends)
        for backend in backends:
            backend.stop()
        for _ in range(10):
            self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 502)
        self.assertEqual(nginx.zone()["counters"]["placed"], 20)

    def test_a_close_before_the_answer_is_retried(self):
        backends = self.backends(None, None)
        backends[0].always = {"close": 1}
        nginx = self.start(cases.config(2, 100, after="keepalive 4;"), backends)
        for _ in range(20):
            self.assertEqual(nginx.ask("/", cases.tokens(10)).headers["x-backend"], backends[1].address)

    def test_a_timeout_is_retried_on_another_rank(self):
        backends = self.backends(None, None)
        backends[0].always = {"gate": 1}
        nginx = self.start(cases.config(2, [1000, 100], location=NEXT + " proxy_read_timeout 200ms;"), backends)
        answer = nginx.ask("/", cases.tokens(200))
        self.assertEqual((answer.status, answer.headers["x-rank"]), (200, backends[1].address))
        self.assertIn("upstream timed out", nginx.error_log())

    def test_a_timeout_without_another_rank_is_504(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100, location="proxy_read_timeout 200ms;"), backends)
        self.assertEqual(nginx.ask("/?gate=1", cases.tokens(20)).status, 504)

    def test_a_rank_with_max_fails_is_left_out(self):
        backends = self.backends(None, None)
        backends[0].always = {"status": 503}
        nginx = self.start(cases.config(2, [1000, 100], location=NEXT, server_options="max_fails=2 fail_timeout=60s"),
                           backends, workers=1)
        for _ in range(5):
            self.assertEqual(nginx.ask("/", cases.tokens(200)).headers["x-backend"], backends[1].address)
        self.assertEqual(len(backends[0].seen), 2)
        backends[1].always = {"status": 503}
        answers = [nginx.ask("/", cases.tokens(200)) for _ in range(5)]
        self.assertEqual([answer.status for answer in answers], [502] * 5)
        self.assertEqual(answers[-1].headers["x-outcome"], "none_eligible")
        self.assertEqual(len(backends[1].seen), 5 + 2)

    def test_a_failed_rank_comes_back_after_its_time(self):
        backends = self.backends(None, None)
        backends[0].always = {"status": 503}
        nginx = self.start(cases.config(2, [1000, 100], location=NEXT, server_options="max_fails=1 fail_timeout=1s"),
                           backends, workers=1)
        self.assertEqual(nginx.ask("/", cases.tokens(200)).headers["x-backend"], backends[1].address)
        backends[0].always = {}
        harness.wait_for(lambda: nginx.ask("/", cases.tokens(200)).headers["x-backend"] == backends[0].address,
                         "rank 0 is tried again")

    def test_requests_that_change_something_are_not_repeated(self):
        backends = self.backends(None, None)
        for backend in backends:
            backend.always = {"close": 1}
        nginx = self.start(cases.config(2, 100), backends)
        self.assertEqual(nginx.ask("/", cases.tokens(10), method="POST", body=b"x").status, 502)
        self.assertEqual(sum(len(backend.seen) for backend in backends), 1)

    def test_a_closed_kept_connection_is_retried(self):
        """nginx then tries once more: its only server again, or another one."""
        for count in (1, 2):
            backends = self.backends(*[None] * count)
            nginx = self.start(cases.config(count, 100, after="keepalive 4;"), backends, workers=1)
            self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 200)
            answer = nginx.ask("/?close=reused", cases.tokens(10))
            self.assertEqual(answer.status, 200)
            nginx.wait_until_idle()
            seen = sum(len(backend.seen) for backend in backends)
            self.assertEqual(nginx.zone()["counters"]["placed"], seen)
