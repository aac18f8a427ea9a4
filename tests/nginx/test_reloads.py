# SPDX-License-Identifier: Apache-2.0
"""Configurations that change while requests are in flight."""

import socket

import cases
import harness
from harness import Ask, start_load


class Reloads(cases.Case):
    def test_a_removed_rank_drains_and_is_forgotten(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100), backends)
        held = self.fill(nginx, [10] * 4)
        self.assertEqual(nginx.requests(), [2, 2])
        nginx.reload(cases.config(1, 100))
        gone = nginx.ranks()[backends[1].address]
        self.assertEqual((gone["state"], gone["decode_cost_blocks"], gone["active_requests"]), ("draining", 20, 2))
        self.assertEqual(nginx.ranks()[backends[0].address]["state"], "active")
        for _ in range(10):
            self.assertEqual(nginx.ask("/", cases.tokens(10)).headers["x-rank"], backends[0].address)
        self.finish(backends, held)
        harness.wait_for(lambda: list(nginx.ranks()) == [backends[0].address], "the rank is forgotten")

    def test_a_removed_rank_without_requests_is_forgotten_at_once(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100), backends)
        nginx.reload(cases.config(1, 100))
        self.assertEqual(list(nginx.ranks()), [backends[0].address])
        nginx.reload(cases.config(2, 100))
        held = self.fill(nginx, [10] * 4)
        self.assertEqual(nginx.requests(), [2, 2])
        self.finish(backends, held)

    def test_a_rank_that_comes_back_has_what_it_had(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100), backends)
        held = self.fill(nginx, [10] * 4)
        nginx.reload(cases.config(1, 100))
        nginx.reload(cases.config(2, 100))
        rank = nginx.ranks()[backends[1].address]
        self.assertEqual((rank["state"], rank["decode_cost_blocks"]), ("active", 20))
        held += self.fill(nginx, [80] * 2)
        self.assertEqual(nginx.booked(), [100, 100])
        self.assertEqual(nginx.zone()["counters"]["fallbacks"], 0)
        self.finish(backends, held)

    def test_new_ranks_take_the_slots_of_others(self):
        backends = self.backends(None, None, None, None)
        servers = ["\n".join(f"server @b{index}@;" for index in pair) for pair in ((0, 1), (2, 3), (3, 0), (1, 2))]
        nginx = self.start(cases.config(servers=servers[0]), backends)
        held = []
        for turn in range(8):
            held += self.fill(nginx, [10 + turn] * 4)
            nginx.reload(cases.config(servers=servers[(turn + 1) % 4]))
            if turn % 2:
                half, held = held[:len(held) // 2], held[len(held) // 2:]
                for connection in half:
                    connection.close()
                harness.wait_for(lambda count=len(held): sum(nginx.requests()) == count, "half of them have ended")
        self.finish(backends, held)
        nginx.wait_until_idle()
        self.assertEqual(nginx.zone()["counters"]["stale"], 0)

    def test_an_old_worker_does_not_book_on_a_slot_that_is_another_ranks(self):
        """The old worker retries after its rank is gone and a new rank has the slot."""
        backends = self.backends(None, None, None)
        backends[0].always = {"gate": 1, "close": 1}
        nginx = self.start(cases.config(servers="server @b0@; server @b1@;", capacity=[1000],
                                        upstream="kvca_rank @b1@ total_kv_blocks=10;"), backends)
        held = self.fill(nginx, [100])
        nginx.reload(cases.config(servers="server @b0@;"))
        nginx.reload(cases.config(servers="server @b0@; server @b2@;"))
        answer, = self.finish(backends, held)
        self.assertEqual(answer.headers["x-outcome"], "unbooked")  # on the server that the old configuration still has
        self.assertEqual([len(backend.seen) for backend in backends], [1, 1, 0])

    def test_the_order_of_servers_does_not_matter(self):
        backends = self.backends(None, None, None)
        nginx = self.start(cases.config(3, [10, 20, 30]), backends)
        held = self.fill(nginx, [30, 20, 10])
        self.assertEqual(nginx.booked(), [10, 20, 30])
        servers = "server @b2@; server @b0@; server @b1@;"
        nginx.reload(cases.config(3, [10, 20, 40], servers=servers))
        self.assertEqual(nginx.booked(), [10, 20, 30])
        held += self.fill(nginx, [10])
        self.assertEqual(nginx.booked(), [10, 20, 40])
        self.finish(backends, held)

    def test_a_reload_that_fails_changes_nothing(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100), backends)
        held = self.fill(nginx, [10] * 4)
        before = nginx.status()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            nginx.reload_in_vain(cases.config(1, 50, server=f"listen 127.0.0.1:{port};"), "still could not bind()")
        nginx.reload_in_vain(cases.config(1, 50, server="what is this;"), "unknown directive \"what\"")
        nginx.reload_in_vain(cases.config(1, 50, kvca=" policy=missing.yaml"), "missing.yaml")
        nginx.reload_in_vain(cases.config(1, 50, zone=" block_size=32"), "block_size=32 needs another zone")
        self.assertEqual(nginx.status(), before)
        held += self.fill(nginx, [10] * 2)
        self.assertEqual(nginx.requests(), [3, 3])
        nginx.expected_alerts = ["could not bind"]
        self.finish(backends, held)

    def test_capacities_and_policy_of_the_new_configuration(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100, kvca=" overflow=reject"), backends)
        held = self.fill(nginx, [100])
        nginx.reload(cases.config(1, 200, kvca=" overflow=reject"))
        held += self.fill(nginx, [50])
        (nginx.prefix / "policy.yaml").write_text("capacity_fraction: 0.8\n")
        nginx.reload(cases.config(1, 200, kvca=" overflow=reject policy=policy.yaml"))
        self.assertEqual(nginx.zone()["capacity_fraction"], 0.8)
        self.assertEqual(nginx.ask("/", cases.tokens(11)).status, 503)
        self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 200)
        nginx.reload(cases.config(1, 200))
        self.assertEqual((nginx.zone()["capacity_fraction"], nginx.booked()), (1, [150]))
        self.finish(backends, held)

    def test_a_zone_of_another_size_begins_empty(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100), backends)
        held = self.fill(nginx, [100])
        nginx.reload(cases.config(1, 100).replace("kvca_zone ranks 1m", "kvca_zone ranks 2m"))
        self.assertEqual(nginx.booked(), [0])
        self.assertEqual(nginx.ask("/", cases.tokens(100)).headers["x-outcome"], "fit")
        self.finish(backends, held)
        harness.wait_for(lambda: not nginx.leaving_pids(), "the old workers have gone")
        self.assertEqual(nginx.zone()["counters"]["placed"], 1)

    def test_kvca_comes_and_goes(self):
        backends = self.backends(None)
        plain = cases.config(1, 100)
        without = "\n".join(line for line in plain.splitlines() if "kvca" not in line)
        nginx = self.start(plain, backends)
        held = self.fill(nginx, [100])
        nginx.reload(without)
        self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 200)
        nginx.reload(plain)
        self.assertEqual(nginx.booked(), [0])
        self.finish(backends, held)

    def test_a_load_goes_on_through_reloads(self):
        backends = self.backends(None, None, None)
        for backend in backends:
            backend.capacity = 1000
        nginx = self.start(cases.config(3, 1000, after="keepalive 8;"), backends)
        texts = [cases.config(count, 1000, after="keepalive 8;") for count in (2, 3)]
        pending = start_load(nginx.port, 12, lambda _client, _number, random: Ask(
            f"/?hold={random.random() * 0.03:.3f}", cases.tokens(random.randint(1, 80)) | {"Connection": "close"}),
            seconds=3)
        for turn in range(6):
            nginx.reload(texts[turn % 2])
        result = pending.result(harness.PATIENCE)
        self.assertEqual((set(result.statuses), result.failures), ({200}, {}))
        nginx.wait_until_idle()
        counters = nginx.zone()["counters"]
        self.assertEqual((counters["placed"], counters["fallbacks"], counters["stale"], counters["voided"]),
                         (result.requests, 0, 0, 0))
        self.assertEqual(sum(backend.over for backend in backends), 0)

    def test_more_earlier_workers_than_the_ledger_has_room_for(self):
        """There are only 16 owners. A new worker sends requests unbooked until an old one has gone."""
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 1000), backends, workers=1)
        nginx.expected_alerts = ["no room for this process"]
        held = []
        for _ in range(16):
            held += self.fill(nginx, [10])
            nginx.reload()
        self.assertEqual(nginx.requests(), [16])
        for _ in range(3):
            answer = nginx.ask("/", cases.tokens(10))
            self.assertEqual((answer.status, answer.headers["x-outcome"], answer.headers.get("x-booked")),
                             (200, "unbooked", None))
            self.assertEqual(answer.headers["x-rank"], backends[0].address)
        self.assertEqual(nginx.requests(), [16])
        held[0].close()
        harness.wait_for(lambda: nginx.ask("/", cases.tokens(10)).headers["x-outcome"] == "fit",
                         "the worker books again when an old one has gone")
        self.finish(backends, held[1:])

    def test_a_full_zone_has_no_room_for_new_ranks(self):
        """While removed ranks finish, there may be no room for new ones. Those are logged and get no requests."""
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100).replace("ranks 1m", "ranks 32k"), backends)
        held = self.fill(nginx, [10] * 2)
        room = nginx.zone()["max_ranks"]
        # More servers, on which nobody listens. All are down, except the first two.
        others = [f"127.0.0.1:{port}" for port in range(1, room + 1)]
        servers = "server @b0@; " + " ".join(f"server {address} down;" for address in others[:room - 1])
        nginx.expected_alerts = ["no room for rank"]
        nginx.reload(cases.config(servers=servers).replace("ranks 1m", "ranks 32k"))
        self.assertEqual(len(nginx.logged("alert")), 1)
        self.assertIn("reload again later", nginx.logged("alert")[0])
        self.assertEqual(nginx.ask("/", cases.tokens(10)).headers["x-rank"], backends[0].address)
        self.finish(backends, held)
        nginx.wait_until_idle()
        nginx.reload()
        self.assertEqual(len(nginx.logged("alert")), 1)
        self.assertEqual(len(nginx.ranks()), room)
        too_many = servers + f" server {others[-1]} down;"
        nginx.reload_in_vain(cases.config(servers=too_many).replace("ranks 1m", "ranks 32k"), "is too small")
        self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 200)
