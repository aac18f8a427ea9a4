# SPDX-License-Identifier: Apache-2.0
"""Workers that die inside the ledger while they hold its mutex. This module is built with faults.c, which says how."""

import signal

import cases
import harness


class Faults(cases.StreamCase):
    def setUp(self):
        if not cases.FAULTS:
            self.skipTest("there is no module with fault points")

    def start_with_faults(self, **parts):
        nginx, streams = self.start_streams(module=cases.FAULTS, main="env KVCA_FAULT_FILE=@prefix@/fault;", **parts)
        nginx.expected_alerts.append("was locked by")
        return nginx, streams

    def order(self, nginx, action):
        (nginx.prefix / "fault.done").unlink(missing_ok=True)
        (nginx.prefix / "order").write_text(action)
        (nginx.prefix / "order").rename(nginx.prefix / "fault")

    def victim(self, nginx):
        """The process that has done it; None before that."""
        try:
            return int((nginx.prefix / "fault.done").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def send_until_done(self, nginx):
        """Sends requests until one has met the fault, and returns the process."""
        def send():
            self.open(nginx, "/?events=17", cases.tokens(7))
            return self.victim(nginx)
        return harness.wait_for(send, "a process meets the fault")

    def check_survived(self, nginx, streams, victim):
        harness.wait_for(lambda: victim not in nginx.worker_pids() and len(nginx.worker_pids()) == 2,
                         "the worker is replaced")
        survivors = [stream for stream in streams if stream.worker != victim]
        self.check_booked(nginx, len(survivors))
        answer = nginx.ask("/", cases.tokens(10))
        self.assertEqual((answer.status, answer.headers["x-outcome"]), (200, "fit"))
        return survivors

    def check_finished(self, nginx, streams):
        self.finish_streams(streams)
        nginx.wait_until_idle()
        held = self.fill(nginx, [1000] * 30)
        self.assertEqual(nginx.booked(), [10000] * 3)
        self.finish(self.all, held)

    def test_torn_updates_are_repaired(self):
        """A death before the first store of a call, the second, and so on, through placing, growing and releasing."""
        nginx, streams = self.start_with_faults(upstream="kvca_output growth=sse;")
        for stores in list(range(1, 16)) + [20, 26, 33, 41]:
            self.order(nginx, f"kill {stores}")
            streams = self.check_survived(nginx, streams, self.send_until_done(nginx))
            self.add_streams(nginx, streams, least=2, count=8)
        self.check_finished(nginx, streams)

    def hang(self, nginx, stores=3):
        self.order(nginx, f"hang {stores}")
        return self.send_until_done(nginx)

    def reload_while_it_hangs(self, nginx, victim, said):
        old = set(nginx.worker_pids())
        nginx.signal(signal.SIGHUP)
        harness.wait_for(lambda: said in nginx.error_log(), f"the master says: {said}")
        nginx.signal(signal.SIGKILL, victim)
        harness.wait_for(lambda: len(nginx.worker_pids()) == 2 and not old & set(nginx.worker_pids()),
                         "new workers run")

    def test_requests_wait_for_a_worker_that_holds_the_mutex(self):
        nginx, streams = self.start_with_faults(listen="", least=0)
        victim = self.hang(nginx)
        waiting = [self.open(nginx, "/", cases.tokens(10)) for _ in range(8)]
        nginx.signal(signal.SIGKILL, victim)
        self.finish(self.all, waiting)
        self.assertIn(f"was locked by {victim}", nginx.error_log())
        for backend in self.all:
            backend.close_gate()
        streams = self.check_survived(nginx, streams, victim)
        self.check_finished(nginx, streams)

    def test_a_reload_waits_until_the_worker_with_the_mutex_dies(self):
        """The master waits for the mutex, but not for ever, although nobody else tells it of the death."""
        nginx, streams = self.start_with_faults()
        victim = self.hang(nginx)
        self.reload_while_it_hangs(nginx, victim, "reconfiguring")
        streams = self.check_survived(nginx, streams, victim)
        self.assertEqual(nginx.logged("emerg"), [])
        self.check_finished(nginx, streams)

    def test_a_reload_gives_up_if_a_worker_keeps_the_mutex(self):
        """The master gives up in the end and says so. The next reload makes up for it."""
        nginx, streams = self.start_with_faults()
        nginx.expected_alerts.append("could not be locked")
        victim = self.hang(nginx)
        self.reload_while_it_hangs(nginx, victim, "could not be locked")
        nginx.reload()
        streams = self.check_survived(nginx, streams, victim)
        self.check_finished(nginx, streams)
