# SPDX-License-Identifier: Apache-2.0
"""Corners of nginx in which the module once failed, and some near them."""

import http.client
import threading
import time

import cases
import harness


class Corners(cases.Case):
    def test_a_reject_releases_the_cache(self):
        """Requests that wait for the cache go on at once, and nginx finds no stalled update."""
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 10, kvca=" overflow=reject", http="""
            proxy_cache_path @prefix@/cache keys_zone=cache:1m;
            """, location="""
            proxy_cache cache; proxy_cache_key $uri; proxy_cache_valid 200 1s; proxy_buffering on;
            proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s; error_page 503 @slow;
            """, server="""
            location @slow { limit_rate 200; root @prefix@; try_files /page =404; }
            """), backends)
        (nginx.prefix / "page").write_text("x" * 2000)
        held = self.fill(nginx, [10], "/held?gate=1")
        slow = self.open(nginx, "/shared?length=1", cases.tokens(1)).getresponse()
        self.assertEqual(slow.status, 503)
        self.finish(backends, held)
        nginx.wait_until_idle()
        self.assertEqual(nginx.ask("/shared?length=1", cases.tokens(1)).status, 200)

    def test_a_reject_while_the_cache_entry_has_expired(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 10, kvca=" overflow=reject", http="""
            proxy_cache_path @prefix@/cache keys_zone=cache:1m;
            """, location="""
            proxy_cache cache; proxy_cache_key $uri; proxy_cache_valid 200 1s; proxy_buffering on;
            """), backends)
        self.assertEqual(nginx.ask("/shared?length=1", cases.tokens(1)).status, 200)
        time.sleep(2.1)
        held = self.fill(nginx, [10], "/held?gate=1")
        self.assertEqual(nginx.ask("/shared?length=1", cases.tokens(1)).status, 503)
        self.finish(backends, held)
        nginx.wait_until_idle()
        self.assertEqual(nginx.ask("/shared?length=1", cases.tokens(1)).status, 200)

    def test_a_status_that_nginx_does_not_answer_with_is_refused(self):
        backends = self.backends(None)
        for status in (408, 444, 494, 495, 496, 497, 498, 499):
            nginx = self.make(cases.config(1, 1, kvca=f" overflow=reject status={status}"), backends)
            returned, said = nginx.check()
            self.assertEqual(returned, 1, status)
            self.assertIn(f'invalid parameter "status={status}" of "kvca": nginx does not answer with', said)

    def test_a_status_that_nginx_answers_with(self):
        backends = self.backends(None)
        for status in (400, 401, 403, 404, 405, 407, 409, 413, 416, 429, 445, 493, 500, 504, 507, 508, 599):
            nginx = self.start(cases.config(1, 1, kvca=f" overflow=reject status={status}"), backends, workers=1)
            answer = nginx.ask("/", cases.tokens(2))
            self.assertEqual((answer.status, answer.headers.get("retry-after")), (status, "1"))
            nginx.end()

    def test_a_reload_with_more_workers_than_there_are_owners(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100), backends, workers=1)
        nginx.workers = 17
        nginx.reload_in_vain(nginx.config, "has room for the bookings of 16 processes while it is in use: "
                             "worker_processes 17 needs another zone, or a restart")
        nginx.workers = 1
        self.assertEqual(nginx.ask("/", cases.tokens(1)).headers["x-outcome"], "fit")
        nginx.reload()

    def test_a_reload_that_replaces_all_servers_fails_no_request(self):
        """Old workers take requests for a while after the ledger has changed to the new ranks."""
        backends = self.backends(None, None)
        text = cases.config(servers="server @b0@ max_fails=0;")
        nginx = self.start(text, backends, workers=2)
        done = threading.Event()
        statuses = []

        def load():
            while not done.is_set():
                try:
                    statuses.append(nginx.ask("/", cases.tokens(1)).status)
                except (OSError, http.client.HTTPException) as error:
                    statuses.append(type(error).__name__)
        threads = [threading.Thread(target=load) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in (1, 0, 1, 0):
            nginx.reload(cases.config(servers=f"server @b{number}@ max_fails=0;"))
        done.set()
        for thread in threads:
            thread.join()
        self.assertEqual({status: statuses.count(status) for status in set(statuses)}, {200: len(statuses)})

    def test_a_request_whose_body_comes_after_its_server_was_removed(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(servers="server @b0@;"), backends, workers=1)
        connection = nginx.connect()
        self.addCleanup(connection.close)
        connection.putrequest("POST", "/")
        connection.putheader("Content-Length", "5")
        connection.endheaders(b"abc")
        time.sleep(0.2)
        nginx.reload(cases.config(servers="server @b1@;"))
        connection.send(b"de")
        self.assertEqual(harness.read_answer(connection.getresponse()).status, 200)

    def test_the_size_in_the_message_is_enough(self):
        for workers in (1, 64, 512, 5000):
            for ranks in (0, 1, 2, 50, 1000):
                servers = "".join(f"server 127.1.{i >> 8}.{i & 255}:80;" for i in range(ranks))
                upstream = f"upstream u {{ kvca zone=z; {servers} }}" if ranks else ""
                text = "kvca_zone z %s;" + upstream + "server { listen @port@; location / { return 200; } }"
                nginx = self.make(text % "32k", workers=workers)
                status, said = nginx.check()
                if status != 0:
                    self.assertIn("they need", said)
                    size = said.split("they need \"kvca_zone z ")[1].split('"')[0]
                    nginx.configure(text % size)
                    status, again = nginx.check()
                    self.assertEqual(status, 0, (workers, ranks, said, again))

    def test_rejects_within_rejects(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1, kvca=" overflow=reject", http="""
            upstream second {
                kvca zone=ranks overflow=reject status=429 retry_after=7;
                kvca_tokens $http_x_prompt_tokens;
                server @b0@;
            }
            limit_req_zone $uri zone=l:1m rate=2r/s;
            """, location="""
            error_page 503 = @second; recursive_error_pages on; post_action /post; mirror /mirror; satisfy any;
            allow all; proxy_intercept_errors on;
            """, server="""
            location @second { recursive_error_pages on; error_page 429 = @third; proxy_pass http://second; }
            location @third { auth_request /auth; error_page 500 =429 /last; proxy_pass http://pool; }
            location /last { limit_req zone=l burst=100; proxy_pass http://pool; }
            location /auth { proxy_pass http://second; }
            location /mirror { internal; proxy_pass http://second; }
            location /post { internal; proxy_pass http://pool; }
            """), backends)
        for body in (None, b"x" * 100, b"x" * 300000):
            for _ in range(4):
                answer = nginx.ask("/", cases.tokens(2), method="POST" if body else "GET", body=body)
                self.assertEqual((answer.status, answer.headers.get("retry-after")), (503, "1"))

    def test_options_without_a_value_are_refused(self):
        """A template writes such options if its variable is not set."""
        for option in ("policy=", "role="):
            nginx = self.make(cases.config(servers="server 127.0.0.1:1;", kvca=" " + option))
            returned, said = nginx.check()
            self.assertEqual(returned, 1, option)
            self.assertIn(f'invalid parameter "{option}" of "kvca"', said)

    def test_options_given_twice_are_refused(self):
        for line in ("upstream u { kvca zone=z zone=z; server @b0@; }",
                     "upstream u { kvca zone=z status=503 overflow=reject status=429; server @b0@; }",
                     "upstream u { kvca zone=z; kvca_tokens max=1 $arg_a max=1; server @b0@; }",
                     "upstream u { kvca zone=z; kvca_output growth=sse growth=sse; server @b0@; }"):
            nginx = self.make(f"kvca_zone z 1m; {line} server {{ listen @port@; }}", self.backends(None))
            status, said = nginx.check()
            self.assertEqual(status, 1, line)
            self.assertRegex(said, r'invalid parameter "[a-z_]+=\w+" of "kvca\w*": it is given twice in .*:\d+')
