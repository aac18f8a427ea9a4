# SPDX-License-Identifier: Apache-2.0
"""What the status location shows, and the capacities that it takes."""

import json
import re

import cases
import harness

ZERO = {"placed": 0, "fallbacks": 0, "none": 0, "stale": 0, "voided": 0}
SAMPLE = re.compile(r'^([a-z_]+)\{zone="((?:[^"\\]|\\.)*)"(?:,rank="((?:[^"\\]|\\.)*)")?\} (\d+)$')


def parse_prometheus(text):
    """Samples by (metric, zone, rank), and types by metric. Fails if the format is violated."""
    samples, types, helped = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped.add(line.split(" ", 3)[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"a second type: {line}"
            types[name] = kind
        else:
            match = SAMPLE.match(line)
            assert match, f"no sample: {line}"
            assert match[1] in types and match[1] in helped, f"a sample before its type and help: {line}"
            assert match.groups()[:3] not in samples, f"a second sample: {line}"
            samples[match.groups()[:3]] = int(match[4])
    return samples, types


class Shown(cases.Case):
    def test_json_shows_zones_and_ranks(self):
        backends = self.backends(None, None, None)
        nginx = self.start(cases.config(3, [1000, None, 500]), backends)
        nginx.set_capacity(backends[2].address, 600)
        held = self.fill(nginx, [10, 20, 30])
        answer = nginx.ask("/kvca")
        self.assertEqual((answer.status, answer.headers["content-type"]), (200, "application/json"))
        shown = json.loads(answer.body)
        self.assertEqual(set(shown), {"version", "zones"})
        self.assertRegex(shown["version"], r"^\d+\.\d+\.\d+$")
        zone, = shown["zones"]
        booked = {rank["rank"]: rank.pop("decode_cost_blocks") for rank in zone["ranks"]}
        self.assertEqual(sorted(booked.values()), [10, 20, 30])
        self.assertGreater(zone.pop("max_ranks"), 100)
        self.assertEqual(zone, {
            "name": "ranks", "block_size": 16, "capacity_fraction": 1, "count_priority": True,
            "decode_active_request_weight": 0, "capacity_blocks": None, "counters": ZERO | {"placed": 3},
            "ranks": [{"rank": backend.address, "state": "active", "active_requests": 1,
                       "total_kv_blocks": capacity, "reported": reported}
                      for backend, capacity, reported in zip(backends, (1000, None, 600), (False, False, True))],
        })
        self.finish(backends, held)

    def test_json_shows_the_policy(self):
        rows = [
            ("capacity_fraction: null", {"capacity_fraction": None}),
            ("capacity_fraction: 0.9", {"capacity_fraction": 0.9}),
            ("capacity_fraction: 1e-300", {"capacity_fraction": 1e-300}),
            ("capacity_fraction: 0.1234567890123456789", {"capacity_fraction": 0.1234567890123456789}),
            ("count_priority: false", {"count_priority": False}),
            ("decode_active_request_weight: 1.7976931348623157e308",
             {"decode_active_request_weight": 1.7976931348623157e308}),
            ("capacity_blocks: 18446744073709551615", {"capacity_blocks": 2**64 - 1}),
        ]
        nginx = self.make(cases.config(1, 100, kvca=" policy=policy.yaml"), self.backends(None))
        (nginx.prefix / "policy.yaml").write_text(rows[0][0])
        nginx.start()

        def check(policy, expected):
            (nginx.prefix / "policy.yaml").write_text(policy)
            nginx.reload()
            zone = nginx.zone()
            self.assertEqual({key: zone[key] for key in expected}, expected)
        self.check_table(rows, check)

    def test_a_capacity_of_the_policy_is_shown(self):
        nginx = self.make(cases.config(2, [100, None], kvca=" policy=policy.yaml"), self.backends(None, None))
        (nginx.prefix / "policy.yaml").write_text("capacity_blocks: 70\n")
        nginx.start()
        self.assertEqual([rank["total_kv_blocks"] for rank in nginx.zone()["ranks"]], [100, 70])

    def test_prometheus_shows_zones_and_ranks(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, [25, None], http="""
            kvca_zone "od\\"d" 1m;
            upstream odd { kvca "zone=od\\"d"; server @b1@; }
            """), backends)
        held = self.fill(nginx, [10, 20, 30])
        answer = nginx.ask("/metrics")
        self.assertEqual((answer.status, answer.headers["content-type"]), (200, "text/plain; version=0.0.4"))
        samples, types = parse_prometheus(answer.body.decode())
        gauges = ["kvca_decode_cost_blocks", "kvca_active_requests", "kvca_total_kv_blocks"]
        counters = ["kvca_placed_total", "kvca_fallbacks_total", "kvca_none_total", "kvca_stale_total",
                    "kvca_voided_total"]
        self.assertEqual(types, dict.fromkeys(gauges, "gauge") | dict.fromkeys(counters, "counter"))
        first, second = (backend.address for backend in backends)
        ranks = nginx.ranks("ranks")
        expected = {(name, zone, None): 0 for name in counters for zone in ("ranks", 'od\\"d')}
        expected |= {("kvca_placed_total", "ranks", None): 3, ("kvca_total_kv_blocks", "ranks", first): 25,
                     ("kvca_active_requests", 'od\\"d', second): 0, ("kvca_decode_cost_blocks", 'od\\"d', second): 0}
        for rank in (first, second):
            expected |= {("kvca_decode_cost_blocks", "ranks", rank): ranks[rank]["decode_cost_blocks"],
                         ("kvca_active_requests", "ranks", rank): ranks[rank]["active_requests"]}
        self.assertEqual(samples, expected)
        self.assertEqual(json.loads(nginx.ask("/kvca").body)["zones"][1]["name"], 'od"d')
        self.finish(backends, held)

    def test_counters_count_tries(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 10, http="""
            upstream strict { kvca zone=ranks overflow=reject; kvca_tokens $http_x_prompt_tokens; server @b0@; }
            """, server="location /strict { proxy_pass http://strict; }"), backends)
        for blocks, path in ((10, "/"), (11, "/"), (11, "/"), (11, "/strict"), (10, "/strict")):
            nginx.ask(path, cases.tokens(blocks))
            nginx.wait_until_idle()
        self.assertEqual(nginx.zone()["counters"], ZERO | {"placed": 4, "fallbacks": 2, "none": 1})
        samples, _ = parse_prometheus(nginx.ask("/metrics").body.decode())
        self.assertEqual([samples[f"kvca_{name}_total", "ranks", None] for name in ("placed", "fallbacks", "none")],
                         [4, 2, 1])

    def test_only_get_head_and_post_are_answered(self):
        nginx = self.start(cases.config(1, 10), self.backends(None))
        for path in ("/kvca", "/metrics"):
            head = nginx.ask(path, method="HEAD")
            self.assertEqual((head.status, head.body), (200, b""))
            for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
                self.assertEqual(nginx.ask(path, method=method).status, 405, method)
        self.assertEqual(nginx.ask("/kvca?rank=x&blocks=1").status, 200)  # only POST changes anything

    def test_a_connection_goes_on_after_each_answer(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 10), backends)
        connection = nginx.connect()
        self.addCleanup(connection.close)
        rank = backends[0].address
        for method, path, body, status in (("GET", "/kvca", None, 200), ("HEAD", "/kvca", None, 200),
                                           ("POST", f"/kvca?rank={rank}&blocks=5", None, 204),
                                           ("POST", f"/kvca?rank={rank}&blocks=6", b"x" * 100000, 204),
                                           ("POST", "/kvca?rank=nobody&blocks=6", b"x" * 1000, 404),
                                           ("POST", "/kvca", b"x" * 1000, 400),
                                           ("GET", "/kvca", b"x" * 1000, 200), ("PUT", "/kvca", b"x" * 1000, 405),
                                           ("GET", "/metrics", None, 200)):
            connection.request(method, path, body)
            self.assertEqual(harness.read_answer(connection.getresponse()).status, status, path)
            self.assertIsNotNone(connection.sock, "nginx closed the connection")

    def test_the_status_shows_a_thousand_ranks(self):
        servers = "\n".join(f"server 127.0.0.1:{port} down;" for port in range(1, 1001))
        nginx = self.start(cases.config(servers=servers))
        self.assertEqual(len(nginx.ranks()), 1000)
        samples, _ = parse_prometheus(nginx.ask("/metrics").body.decode())
        self.assertEqual(len(samples), 2 * 1000 + 5)

    def test_the_status_may_be_a_subrequest(self):
        nginx = self.start(cases.config(1, 10, server="""
            location = /page { ssi on; ssi_types *; root @prefix@/pages; }
            """), self.backends(None))
        (nginx.prefix / "pages").mkdir()
        (nginx.prefix / "pages" / "page").write_text('{"in":<!--# include virtual="/kvca" -->}')
        shown = json.loads(nginx.ask("/page").body)
        self.assertEqual(shown["in"]["zones"][0]["name"], "ranks")

    def test_the_status_without_a_zone_is_empty(self):
        nginx = self.start("server { listen 127.0.0.1:@port@; location /kvca { kvca_status json; } "
                           "location /metrics { kvca_status prometheus; } }")
        self.assertEqual(nginx.status()["zones"], [])
        self.assertEqual(parse_prometheus(nginx.ask("/metrics").body.decode())[0], {})


class Capacities(cases.Case):
    def capacity(self, nginx, rank, zone=None):
        row = nginx.ranks(zone)[rank]
        return row["total_kv_blocks"], row["reported"]

    def test_a_posted_capacity_replaces_the_configured_one(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, [100, None]), backends)
        known, unknown = (backend.address for backend in backends)
        for rank, blocks, expected in ((known, 50, (50, True)), (known, 200, (200, True)), (known, 0, (100, False)),
                                       (unknown, 50, (50, True)), (unknown, 0, (None, False)),
                                       (unknown, 2**50, (2**50, True))):
            answer = nginx.set_capacity(rank, blocks)
            self.assertEqual((answer.status, answer.body), (204, b""))
            self.assertEqual(self.capacity(nginx, rank), expected)
        self.assertEqual(nginx.set_capacity(known, 70, path="/metrics").status, 204)
        self.assertEqual(self.capacity(nginx, known), (70, True))

    def test_a_posted_capacity_counts_at_once(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100, kvca=" overflow=reject"), backends)
        held = self.fill(nginx, [60])
        self.assertEqual(nginx.ask("/", cases.tokens(41)).status, 503)
        nginx.set_capacity(backends[0].address, 101)
        self.assertEqual(nginx.ask("/", cases.tokens(41)).status, 200)
        harness.wait_for(lambda: nginx.booked() == [60], "the booking is given back")
        nginx.set_capacity(backends[0].address, 10)
        self.assertEqual((nginx.booked(), nginx.ask("/", cases.tokens(1)).status), ([60], 503))
        self.finish(backends, held)

    def test_block_size(self):
        backends = self.backends(None)
        rank = backends[0].address
        nginx = self.start(cases.config(1, zone=" block_size=32"), backends)
        self.check_table([
            (100, None, 100),
            (100, 32, 100),
            (100, 16, 50),
            (101, 16, 50),
            (100, 64, 200),
            (100, 1, 3),
            (100, 784, 2450),
            (1, 16, 1),  # 0 would mean unknown
            (2**50, 32, 2**50),
            (2**63 - 1, 32, 2**63 - 1),
        ], lambda blocks, size, expected: (
            self.assertEqual(nginx.set_capacity(rank, blocks, **({"block_size": size} if size else {})).status, 204),
            self.assertEqual(self.capacity(nginx, rank), (expected, True))))

    def test_faulty_posts_are_refused(self):
        backends = self.backends(None)
        rank = backends[0].address
        nginx = self.start(cases.config(1, 100), backends)

        def check(query, status, said=""):
            answer = nginx.ask("/kvca" + query, method="POST")
            self.assertEqual(answer.status, status)
            if status == 400:
                self.assertIn(said, answer.body.decode())
                self.assertTrue(answer.headers["content-type"].startswith("text/plain"))
            self.assertEqual(self.capacity(nginx, rank), (100, False))
        self.check_table([
            ("", 400, "rank=ADDRESS is missing"),
            ("?", 400, "rank=ADDRESS is missing"),
            ("?blocks=5", 400, "rank=ADDRESS is missing"),
            ("?rank=&blocks=5", 400, "rank=ADDRESS is missing"),
            (f"?rank={rank}", 400, "blocks=NUMBER"),
            (f"?rank={rank}&blocks=", 400, "blocks=NUMBER"),
            (f"?rank={rank}&blocks=-1", 400, "blocks=NUMBER"),
            (f"?rank={rank}&blocks=1.5", 400, "blocks=NUMBER"),
            (f"?rank={rank}&blocks=many", 400, "blocks=NUMBER"),
            (f"?rank={rank}&blocks=9223372036854775808", 400, "blocks=NUMBER"),
            (f"?rank={rank}&blocks=5&block_size=0", 400, "block_size=NUMBER"),
            (f"?rank={rank}&blocks=5&block_size=", 400, "block_size=NUMBER"),
            (f"?rank={rank}&blocks=5&block_size=x", 400, "block_size=NUMBER"),
            (f"?rank={rank}&blocks=5&zone=others", 404),
            (f"?rank={rank}&blocks=5&zone=", 404),
            (f"?rank={rank}0&blocks=5", 404),
            (f"?rank={rank[:-1]}&blocks=5", 404),
            ("?rank=127.0.0.1&blocks=5", 404),
            ("?rank=%00&blocks=5", 404),
        ], check)

    def test_arguments_may_be_escaped(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100, http="""
            kvca_zone "a b&c" 1m; upstream odd { kvca "zone=a b&c"; server @b0@; }"""), backends)
        rank = backends[0].address
        answer = nginx.ask(f"/kvca?zone=a%20b%26c&blocks=%31%30&rank={rank.replace(':', '%3A')}", method="POST")
        self.assertEqual(answer.status, 204)
        self.assertEqual((self.capacity(nginx, rank, "a b&c"), self.capacity(nginx, rank, "ranks")),
                         ((10, True), (100, False)))

    def test_a_capacity_is_for_all_zones_or_one(self):
        backends = self.backends(None)
        rank = backends[0].address
        nginx = self.start(cases.config(1, 100, http="""
            kvca_zone others 1m block_size=32;
            upstream second { kvca zone=others; server @b0@; }
            """), backends)
        self.assertEqual(nginx.set_capacity(rank, 40).status, 204)
        self.assertEqual([self.capacity(nginx, rank, zone)[0] for zone in ("ranks", "others")], [40, 40])
        self.assertEqual(nginx.set_capacity(rank, 50, block_size=16).status, 204)
        self.assertEqual([self.capacity(nginx, rank, zone)[0] for zone in ("ranks", "others")], [50, 25])
        self.assertEqual(nginx.set_capacity(rank, 60, zone="others").status, 204)
        self.assertEqual([self.capacity(nginx, rank, zone)[0] for zone in ("ranks", "others")], [50, 60])

    def test_a_posted_capacity_survives_reloads_while_its_rank_is_configured(self):
        backends = self.backends(None, None)
        rank = backends[1].address
        nginx = self.start(cases.config(2, 100), backends)
        nginx.set_capacity(rank, 70)
        nginx.reload()
        self.assertEqual(self.capacity(nginx, rank), (70, True))
        nginx.reload(cases.config(2, 200))
        self.assertEqual(self.capacity(nginx, rank), (70, True))
        nginx.set_capacity(rank, 0)
        self.assertEqual(self.capacity(nginx, rank), (200, False))
        nginx.set_capacity(rank, 70)
        nginx.reload(cases.config(1, 200))
        self.assertEqual(nginx.set_capacity(rank, 80).status, 404)
        nginx.reload(cases.config(2, 200))
        self.assertEqual(self.capacity(nginx, rank), (200, False))

    def test_a_draining_rank_takes_no_capacity(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100), backends)
        held = self.fill(nginx, [10, 10])
        nginx.reload(cases.config(1, 100))
        self.assertEqual(nginx.set_capacity(backends[1].address, 80).status, 404)
        self.assertEqual(self.capacity(nginx, backends[1].address), (100, False))
        self.finish(backends, held)

    def test_an_unknown_capacity_is_warned_of_once(self):
        backends = self.backends(None, None, None)
        nginx = self.start(cases.config(3, [100, None, None]), backends)

        def warned():
            return [sum(f"rank {backend.address} " in line and "no known capacity" in line
                        for line in nginx.logged("warn")) for backend in backends]
        self.assertEqual(warned(), [0, 1, 1])
        for _ in range(20):
            nginx.ask("/", cases.tokens(10**6))
        nginx.reload()
        nginx.reload()
        self.assertEqual(warned(), [0, 1, 1])
        # A capacity that was known and is unknown again is news.
        nginx.reload(cases.config(3, [100, 100, None]))
        nginx.reload(cases.config(3, [100, None, None]))
        self.assertEqual(warned(), [0, 2, 1])

    def test_no_warning_if_capacities_do_not_matter(self):
        for policy in ("capacity_fraction: null", "capacity_blocks: 100"):
            nginx = self.make(cases.config(1, kvca=" policy=policy.yaml"), self.backends(None))
            (nginx.prefix / "policy.yaml").write_text(policy)
            nginx.start()
            self.assertEqual(nginx.logged("warn"), [])

    def test_unknown_capacities_take_everything(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, [100, None], kvca=" overflow=reject"), backends)
        for _ in range(20):
            self.assertEqual(nginx.ask("/", cases.tokens(101)).headers["x-rank"], backends[1].address)
