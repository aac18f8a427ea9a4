# SPDX-License-Identifier: Apache-2.0
"""Where requests go, and what the ledger and the backends hold then."""

import collections
import shutil
import subprocess

import cases
import harness
from harness import Ask, run_load

BLOCK_SECONDS = 0.002  # how long a request of a load is held for each of its blocks


def held_ask(path, blocks):
    return Ask(f"{path}?hold={blocks * BLOCK_SECONDS:.3f}", cases.tokens(blocks))


def mixed(least, most):
    return lambda _client, _number, random: held_ask("/", random.randint(least, most))


class Placing(cases.Case):
    def test_forty_clients_stay_within_the_capacities(self):
        # 66 blocks always fit somewhere: to leave less on all four ranks takes more than 45 other requests. There are
        # 39, and a few whose clients have seen the end before nginx has.
        capacities = [1000, 1000, 500, 800]
        backends = self.backends(*capacities)
        nginx = self.start(cases.config(4, capacities, after="keepalive 32;"), backends)
        result = run_load(nginx.port, 40, mixed(10, 66), seconds=3, status="/kvca")
        self.assertEqual((set(result.statuses), result.failures), ({200}, {}))
        counters = nginx.zone()["counters"]
        self.assertEqual(counters, {"placed": result.requests, "fallbacks": 0, "none": 0, "stale": 0, "voided": 0})
        self.assertGreater(result.samples, 10)
        for backend in backends:
            self.assertLessEqual(result.peaks[backend.address], backend.capacity)
            self.assertLessEqual(backend.peak_blocks, backend.capacity)
            self.assertEqual(backend.over, 0)
            self.assertGreater(len(backend.seen), 0)

    def test_at_twice_the_capacity_requests_fall_back(self):
        capacities = [400, 400, 200, 320]
        backends = self.backends(*capacities)
        nginx = self.start(cases.config(4, capacities), backends)
        result = run_load(nginx.port, 80, mixed(10, 56), seconds=2)
        self.assertEqual((set(result.statuses), result.failures), ({200}, {}))
        counters = nginx.zone()["counters"]
        outcomes = collections.Counter(line.split()[3] for line in nginx.access_log(result.requests))
        self.assertEqual(counters["placed"], result.requests)
        self.assertGreater(counters["fallbacks"], 0)
        self.assertEqual(outcomes, {"[fit]": result.requests - counters["fallbacks"],
                                    "[fallback]": counters["fallbacks"]})

    def test_at_twice_the_capacity_requests_are_rejected(self):
        capacities = [400, 400, 200, 320]
        backends = self.backends(*capacities)
        nginx = self.start(cases.config(4, capacities, kvca=" overflow=reject"), backends)
        result = run_load(nginx.port, 80, mixed(10, 56), seconds=2)
        self.assertEqual((set(result.statuses), result.failures), ({200, 503}, {}))
        counters = nginx.zone()["counters"]
        self.assertEqual((counters["placed"], counters["none"], counters["fallbacks"]),
                         (result.statuses[200], result.statuses[503], 0))
        self.assertEqual([backend.over for backend in backends], [0, 0, 0, 0])
        self.assertEqual(nginx.logged("error"), [])
        outcomes = collections.Counter(line.split()[3] for line in nginx.access_log(result.requests))
        self.assertEqual(outcomes, {"[fit]": result.statuses[200], "[none_fits]": result.statuses[503]})

    def test_unequal_ranks_where_least_conn_overbooks(self):
        # 80 blocks always fit somewhere: 29 requests of at most 80 leave as much on one of the ranks.
        capacities = [100, 100, 200, 200, 400, 400, 800, 800]
        backends = self.backends(*capacities)
        servers = "".join(f"server {backend.address} max_fails=0; " for backend in backends)
        text = cases.config(8, capacities, http=f"upstream least {{ zone least 128k; least_conn; {servers} }}",
                            server="location /least { proxy_pass http://least; }")
        nginx = self.start(text, backends)
        least = self.overbooked(nginx, backends, "/least")
        ours = self.overbooked(nginx, backends, "/")
        self.assertGreater(least, 100, "the load shows no difference between the two")
        self.assertEqual(ours, 0)

    def overbooked(self, nginx, backends, path):
        """How many requests of a load did not fit on the backend that they came to, while another one had room."""
        for backend in backends:
            backend.reset()

        def make(_client, _number, random):
            return held_ask(path, random.randint(60, 80) if random.random() < 1 / 9 else random.randint(2, 20))
        result = run_load(nginx.port, 26, make, seconds=30, most=110)
        self.assertEqual((result.statuses, result.failures), ({200: 26 * 110}, {}))
        return sum(backend.avoidable for backend in backends)

    def test_overflow_goes_to_the_rank_with_the_fewest_blocks(self):
        backends = self.backends(None, None, None, None)
        nginx = self.start(cases.config(4, 100), backends)
        held = self.fill(nginx, [50] * 40)
        self.assertEqual((nginx.requests(), nginx.booked()), ([10] * 4, [500] * 4))
        self.assertEqual((nginx.zone()["counters"]["placed"], nginx.zone()["counters"]["fallbacks"]), (40, 32))
        self.finish(backends, held)

    def test_a_request_larger_than_every_rank(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, [100, 200]), backends)
        self.assertEqual(nginx.ask("/", cases.tokens(201)).headers["x-outcome"], "fallback")
        nginx.wait_until_idle()
        self.assertEqual(nginx.ask("/", cases.tokens(200)).headers["x-rank"], backends[1].address)

    def check_choice(self, policy, capacities, held, asked, expected):
        """Checks which rank takes one more request, while requests of these (blocks, rank) are in flight."""
        kvca = " policy=policy.yaml" if policy else ""
        single = [f"upstream only{index} {{ kvca zone=ranks{kvca}; kvca_tokens $http_x_prompt_tokens; "
                  f"server @b{index}@; }}" for index in range(2)]
        backends = self.backends(None, None)
        nginx = self.make(cases.config(2, capacities, kvca=kvca, http="\n".join(single), server="""
            location /only0 { proxy_pass http://only0; }
            location /only1 { proxy_pass http://only1; }
            """), backends)
        (nginx.prefix / "policy.yaml").write_text(f"{policy}\n")
        nginx.start()
        begun = []
        for blocks, rank in held:
            begun += self.fill(nginx, [blocks], f"/only{rank}?gate=1")
        answer = nginx.ask("/", cases.tokens(asked))
        self.assertEqual(answer.headers["x-rank"], backends[expected].address)
        self.finish(backends, begun)

    def test_what_decides_among_ranks_that_fit(self):
        weighs = "{count_priority: false, decode_active_request_weight: 1000}"
        self.check_table([
            # policy, capacities, in flight, blocks of the request, rank that takes it
            (None, [1000, 1000], [(10, 0), (10, 0), (500, 1)], 10, 1),  # the fewest requests
            (None, [1000, 1000], [(30, 0), (20, 1)], 10, 1),  # then the fewest blocks
            (None, [1000, 100], [(10, 0), (10, 0), (95, 1)], 5, 1),
            (None, [1000, 100], [(10, 0), (10, 0), (95, 1)], 6, 0),  # a rank that it does not fit is passed over
            (None, [100, 100], [(10, 0), (95, 0), (104, 1)], 10, 1),  # if none fits, the fewest blocks
            ("count_priority: false", [1000, 1000], [(10, 0), (10, 0), (500, 1)], 10, 0),
            (weighs, [9000, 9000], [(10, 0), (10, 0), (500, 1)], 10, 1),
            ("capacity_fraction: 0.5", [1000, 100], [(10, 0), (10, 0), (45, 1)], 5, 1),
            ("capacity_fraction: 0.5", [1000, 100], [(10, 0), (10, 0), (45, 1)], 6, 0),
            ("capacity_fraction: null", [1000, 100], [(10, 0), (10, 0), (95, 1)], 6, 1),
            ("capacity_blocks: 100", [1000, None], [(10, 0), (10, 0), (95, 1)], 6, 0),
            ("capacity_blocks: 100", [1000, 200], [(10, 0), (10, 0), (95, 1)], 6, 1),
        ], self.check_choice)

    def test_equally_good_ranks_are_drawn_at_random(self):
        backends = self.backends(*[None] * 4)
        nginx = self.start(cases.config(4, 100), backends)
        for _ in range(400):
            nginx.ask("/", cases.tokens(10))
        counts = [len(backend.seen) for backend in backends]
        # The mean of each is 100 and the deviation 8.7: a count outside these bounds comes once in 10^13 runs.
        self.assertTrue(all(35 <= count <= 165 for count in counts), counts)

    def test_more_than_64_ranks(self):
        backends = self.backends(*[None] * 70)
        nginx = self.start(cases.config(70, 3), backends)
        self.assertEqual(len(nginx.ranks()), 70)
        held = self.fill(nginx, [1] * 70)
        self.assertEqual(nginx.requests(), [1] * 70)
        held += self.fill(nginx, [2] * 70)
        self.assertEqual(nginx.booked(), [3] * 70)
        held += self.fill(nginx, [1])
        self.assertEqual(nginx.zone()["counters"]["fallbacks"], 1)
        self.finish(backends, held)
        self.assertTrue(all(backend.peak_blocks <= 4 for backend in backends))

    def test_a_single_server(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 20, kvca=" overflow=reject", after="keepalive 4;", server_options=""),
                           backends)
        held = self.fill(nginx, [10, 10])
        self.assertEqual(nginx.ask("/", cases.tokens(1)).status, 503)
        self.finish(backends, held)
        nginx.wait_until_idle()
        self.assertEqual(nginx.ask("/", cases.tokens(20)).status, 200)

    def test_a_single_server_that_fails_is_asked_again(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 20, server_options="max_fails=1 fail_timeout=60s"), backends)
        backends[0].stop()
        for _ in range(3):
            self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 502)
        backends[0].start()
        self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 200)

    def test_unix_sockets(self):
        folder = self.folder()
        backends = [harness.Backend(unix=f"{folder}/{name}.sock") for name in "ab"]
        for backend in backends:
            self.addCleanup(backend.stop)
        nginx = self.start(cases.config(2, [30, 20]), backends)
        held = self.fill(nginx, [10] * 5)
        self.assertEqual((set(nginx.ranks()), nginx.booked()), ({b.address for b in backends}, [30, 20]))
        self.assertEqual(nginx.set_capacity(backends[0].address, 50).status, 204)
        self.assertEqual(nginx.ranks()[backends[0].address]["total_kv_blocks"], 50)
        self.finish(backends, held)

    def test_two_upstreams_share_a_zone(self):
        """Both have rank 0, and each has one more."""
        backends = self.backends(None, None, None)
        text = cases.config(2, 100, http="""
            upstream second {
                kvca zone=ranks; kvca_tokens $http_x_prompt_tokens; kvca_rank @b2@ total_kv_blocks=100;
                server @b0@ max_fails=0; server @b2@ max_fails=0;
            }
            """, server="location /second { proxy_pass http://second; }")
        nginx = self.start(text, backends)
        self.assertEqual(len(nginx.ranks()), 3)
        held = self.fill(nginx, [40, 40], "/?gate=1")
        held += self.fill(nginx, [70], "/second?gate=1")  # rank 0 has 40 of another upstream: it fits only on rank 2
        self.assertEqual(nginx.booked(), [40, 40, 70])
        held += self.fill(nginx, [60], "/second?gate=1")
        self.assertEqual(nginx.booked(), [100, 40, 70])
        held += self.fill(nginx, [60], "/?gate=1")
        self.assertEqual(nginx.booked(), [100, 100, 70])
        self.assertEqual(nginx.zone()["counters"]["fallbacks"], 0)
        self.finish(backends, held)

    def test_two_zones_know_nothing_of_each_other(self):
        backends = self.backends(None)
        text = cases.config(1, 100, http="""
            kvca_zone others 1m block_size=32;
            upstream second { kvca zone=others; kvca_tokens $http_x_prompt_tokens; server @b0@; }
            """, server="location /second { proxy_pass http://second; }")
        nginx = self.start(text, backends)
        held = self.fill(nginx, [40])
        held.append(self.open(nginx, "/second?gate=1", cases.tokens(40)))
        harness.wait_for(lambda: nginx.booked("others") == [20], "the other zone has the booking")
        self.assertEqual(nginx.booked("ranks"), [40])
        self.finish(backends, held)

    def test_workers_share_failures_in_an_upstream_with_a_zone(self):
        """The workers share the list of failed servers: none of them tries a dead server a second time."""
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100, listen=" reuseport", before="zone pool 128k;",
                                        server_options="max_fails=1 fail_timeout=60s", after="keepalive 8;"), backends)
        backends[0].stop()
        for _ in range(40):
            answer = nginx.ask("/", cases.tokens(10))
            self.assertEqual((answer.status, answer.headers["x-rank"]), (200, backends[1].address))
        self.assertEqual(len([line for line in nginx.logged("error") if "Connection refused" in line]), 1)
        result = run_load(nginx.port, 20, mixed(1, 9), seconds=1)
        self.assertEqual((set(result.statuses), result.failures), ({200}, {}))

    def test_max_conns_is_kept(self):
        backends = self.backends(None, None)
        for before in ("", "zone pool 128k;"):
            with self.subTest(before or "of one worker"):
                nginx = self.start(cases.config(2, 1000, before=before, server_options="max_conns=2"), backends,
                                   workers=1 if not before else 2)
                held = self.fill(nginx, [10] * 4)
                self.assertEqual(nginx.requests(), [2, 2])
                answer = nginx.ask("/", cases.tokens(10))
                self.assertEqual((answer.status, answer.headers["x-outcome"]), (502, "none_eligible"))
                counters = nginx.zone()["counters"]
                self.assertEqual((counters["placed"], counters["none"]), (4, 1))
                self.finish(backends, held)
                nginx.wait_until_idle()
                self.assertEqual(nginx.ask("/", cases.tokens(10)).status, 200)
                for backend in backends:
                    backend.close_gate()

    def test_max_conns_is_kept_by_all_workers(self):
        """After a booking, a worker may find that others took the last connection of the rank."""
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 1000, listen=" reuseport", before="zone pool 128k;",
                                        server_options="max_fails=0 max_conns=2"), backends)
        result = run_load(nginx.port, 16, lambda *_: Ask("/", cases.tokens(10)), seconds=1)
        self.assertEqual((set(result.statuses), result.failures), ({200, 502}, {}))
        self.assertLessEqual(max(backend.peak_active for backend in backends), 2)
        self.assertEqual(sum(len(backend.seen) for backend in backends), result.statuses[200])

    def test_a_server_that_is_down_gets_nothing(self):
        backends = self.backends(None, None, None)
        nginx = self.start(cases.config(3, 100, servers="server @b0@; server @b1@ down; server @b2@;"), backends)
        held = self.fill(nginx, [30] * 8)
        self.assertEqual(nginx.requests(), [4, 0, 4])
        self.finish(backends, held)
        nginx.reload(nginx.config.replace("@b0@;", "@b0@ down;").replace("@b2@;", "@b2@ down;"))
        answer = nginx.ask("/", cases.tokens(1))
        self.assertEqual((answer.status, answer.headers["x-outcome"]), (502, "none_eligible"))
        self.assertIn("no live upstreams", nginx.error_log())

    def test_a_name_with_two_addresses_is_two_ranks(self):
        folder = self.folder()
        with open(f"{folder}/hosts", "w", encoding="utf-8") as file:
            file.write("127.0.0.1 twofold\n127.0.0.2 twofold\n127.0.0.1 single\n")
        wrapper = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', f"{folder}/hosts"]
        if not shutil.which("unshare") or subprocess.run(wrapper + ["true"], capture_output=True).returncode != 0:
            self.skipTest("this user cannot give nginx another /etc/hosts")
        port = harness.free_port()
        nginx = self.start(cases.config(servers=f"server twofold:{port}; server single:1;", upstream=f"""
            kvca_rank twofold:{port} total_kv_blocks=5;
            kvca_rank single:1 total_kv_blocks=6;
            """), wrapper=wrapper)
        capacities = {rank: shown["total_kv_blocks"] for rank, shown in nginx.ranks().items()}
        self.assertEqual(capacities, {f"127.0.0.1:{port}": 5, f"127.0.0.2:{port}": 5, "127.0.0.1:1": 6})
        warned, = nginx.logged("warn")
        self.assertIn(f'server "twofold:{port}" has 2 addresses, and is as many ranks', warned)
        self.assertIn(f"in {nginx.config_path}:{nginx.line('kvca zone=')}", warned)

    def test_a_variable_may_name_the_upstream(self):
        backends = self.backends(None)
        nginx = self.start(cases.config(1, 100, server="location /by { set $name pool; proxy_pass http://$name; }"),
                           backends)
        self.assertEqual(nginx.ask("/by", cases.tokens(10)).headers["x-booked"], "10")

    def test_it_works_without_a_master_process(self):
        backends = self.backends(None, None)
        nginx = self.start(cases.config(2, 100), backends, master=False)
        held = self.fill(nginx, [30] * 6)
        self.assertEqual(nginx.booked(), [90, 90])
        self.finish(backends, held)
        result = run_load(nginx.port, 10, mixed(1, 9), seconds=1)
        self.assertEqual((set(result.statuses), result.failures), ({200}, {}))
