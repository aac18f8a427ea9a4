# SPDX-License-Identifier: Apache-2.0
"""Workers that die, and their bookings."""

import os
import signal
import threading

import cases
import harness
from harness import Ask, run_load


class Deaths(cases.StreamCase):
    def test_a_killed_worker_loses_its_bookings(self):
        nginx, streams = self.start_streams()
        victim, others = nginx.worker_pids()[0], nginx.worker_pids()[1:]
        lost = self.shares(nginx, streams)[victim]
        nginx.signal(signal.SIGKILL, victim)
        self.check_booked(nginx, len(streams) - lost)
        self.assertEqual(nginx.zone()["counters"]["voided"], lost)
        self.assertTrue(set(others) < set(nginx.worker_pids()))
        self.assertEqual(nginx.ask("/", cases.tokens(10)).headers["x-outcome"], "fit")
        self.finish_streams(streams, [victim])

    def test_killed_workers_lose_all_bookings(self):
        nginx, streams = self.start_streams()
        victims = nginx.worker_pids()
        for victim in victims:
            nginx.signal(signal.SIGKILL, victim)
        harness.wait_for(lambda: len(set(nginx.worker_pids()) - set(victims)) == 2, "new workers run")
        nginx.wait_until_idle()
        self.assertEqual(nginx.zone()["counters"]["voided"], len(streams))
        self.finish_streams(streams, victims)

    def test_a_terminated_worker(self):
        nginx, streams = self.start_streams()
        victim = nginx.worker_pids()[0]
        lost = self.shares(nginx, streams)[victim]
        nginx.signal(signal.SIGTERM, victim)
        self.check_booked(nginx, len(streams) - lost)
        self.assertNotIn("died, and gave back", nginx.error_log())  # the worker gave them back itself
        self.finish_streams(streams, [victim])

    def test_a_worker_that_quits_keeps_its_streams(self):
        # With reuseport the system would go on giving it connections that nobody takes.
        nginx, streams = self.start_streams(least=0, listen="")
        leaver = streams[0].worker
        nginx.signal(signal.SIGQUIT, leaver)
        harness.wait_for(lambda: leaver in nginx.leaving_pids(), "the worker leaves")
        self.check_booked(nginx, len(streams))
        self.finish_streams(streams)
        harness.wait_for(lambda: not harness.is_alive(leaver), "the worker has gone")
        self.assertEqual(nginx.zone()["counters"]["voided"], 0)
        self.assertNotIn("died, and gave back", nginx.error_log())

    def test_a_killed_worker_of_an_earlier_configuration(self):
        nginx, streams = self.start_streams()
        nginx.reload()
        victim = nginx.leaving_pids()[0]
        lost = sum(stream.worker == victim for stream in streams)
        self.check_booked(nginx, len(streams))
        nginx.signal(signal.SIGKILL, victim)  # nginx does not replace it: another worker's sweep finds it
        self.check_booked(nginx, len(streams) - lost)
        self.assertEqual(nginx.zone()["counters"]["voided"], lost)
        self.assertIn(f"process {victim} died, and gave back {lost} requests, {10 * lost} blocks", nginx.error_log())
        self.finish_streams(streams, [victim])

    def test_workers_of_several_users(self):
        """A worker may not signal another user's process, which does not mean that the process is dead."""
        if os.geteuid() != 0:
            self.skipTest("this user cannot start workers of others")
        nginx, streams = self.start_streams()
        nginx.user = "nobody nogroup"
        nginx.reload()
        victim = nginx.leaving_pids()[0]
        lost = sum(stream.worker == victim for stream in streams)
        nginx.signal(signal.SIGKILL, victim)
        self.check_booked(nginx, len(streams) - lost)
        self.assertEqual(nginx.zone()["counters"]["voided"], lost)
        self.finish_streams(streams, [victim])

    def test_grown_bookings_are_given_back(self):
        nginx, streams = self.start_streams(upstream="kvca_output growth=sse;")
        for backend in self.all:
            backend.permit(2)
        harness.wait_for(lambda: sum(nginx.booked()) > 10 * len(streams), "bookings have grown")
        victims = nginx.worker_pids()
        for victim in victims:
            nginx.signal(signal.SIGKILL, victim)
        harness.wait_for(lambda: not set(victims) & set(nginx.worker_pids()) and len(nginx.worker_pids()) == 2,
                         "new workers run")
        nginx.wait_until_idle()

    def test_workers_killed_throughout_a_load(self):
        """A worker may die anywhere, even inside the ledger. The rest still adds up, and nobody waits for ever."""
        backends = self.backends(1000, 1000, 500, 800)
        nginx = self.start(cases.config(4, [1000, 1000, 500, 800], upstream="kvca_output growth=sse;",
                                        after="keepalive 16;"), backends)
        nginx.expected_alerts = [cases.KILLED, "was locked by"]
        over = threading.Event()
        kills = []

        def kill():
            while not over.wait(0.15):
                pids = nginx.worker_pids()
                victim = pids[len(kills) % len(pids)] if pids else None
                if victim:
                    os.kill(victim, signal.SIGKILL)
                    kills.append(victim)
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            result = run_load(nginx.port, 30, lambda _client, _number, random: Ask(
                f"/?events=20&every={random.random() * 0.002:.5f}", cases.tokens(random.randint(1, 60))), seconds=4)
        finally:
            over.set()
            killer.join()
        self.assertGreater(len(kills), 5)
        self.assertEqual(set(result.statuses), {200})
        harness.wait_for(lambda: len(nginx.worker_pids()) == 2, "all workers run")
        nginx.wait_until_idle()
        for backend in backends:
            harness.wait_for(lambda backend=backend: backend.active == 0, "nothing is in flight")
            backend.reset()
        result = run_load(nginx.port, 30, lambda _client, _number, random: Ask(
            "/?hold=0.02", cases.tokens(random.randint(1, 60))), seconds=1)
        self.assertEqual((set(result.statuses), result.failures), ({200}, {}))
        self.assertEqual(sum(backend.over for backend in backends), 0)

    def test_a_new_binary_begins_with_an_empty_ledger(self):
        """Streams of the old binary finish well. The new one does not know of them."""
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 1000), backends, daemon=True)
        streams = [cases.Stream(self, nginx) for _ in range(8)]
        self.all = backends
        self.assertEqual(sum(nginx.requests()), 8)
        old = nginx.pid
        nginx.signal(signal.SIGUSR2)
        harness.wait_for(lambda: nginx.pid not in (old, None) and len(nginx.worker_pids()) == 2, "the new binary runs")
        nginx.signal(signal.SIGQUIT, old)
        harness.wait_for(lambda: not nginx.worker_pids(old), "the old workers take no more requests")
        self.assertEqual(sum(nginx.requests()), 0)
        self.assertEqual(nginx.ask("/", cases.tokens(10)).headers["x-outcome"], "fit")
        self.finish_streams(streams)
        harness.wait_for(lambda: not harness.is_alive(old), "the old master has gone")
