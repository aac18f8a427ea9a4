#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares kvca with least_conn in one nginx, in turns: what they cost, and where they place requests.

    bench/nginx/bench.py --module BUILD/src/nginx/ngx_http_kvca_module.so [--clock MODULE] [--quick] [PART...]

Parts (default: all):
    cost       requests a second and the workers' processor time for a request, with 4 and 64 ranks. wrk sends requests.
               Another nginx plays the ranks and answers at once.
    inside     nanoseconds in the module for each request. MODULE is ngx_http_kvca_module_clock.so.
    placement  requests that were sent to a rank past its capacity, counted by the ranks. Ranks are of unequal and equal
               sizes, prompts of mixed lengths, and answers take time.

Takes 5 minutes, or 90 s with --quick. The status is 77 if nginx, wrk or a module is missing.
"""

import argparse
import dataclasses
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "nginx"))
import harness  # noqa: E402

SKIPPED = 77
CONNECTIONS = 64
WORKERS = 2
TICKS = os.sysconf("SC_CLK_TCK")

UPSTREAM = """\
upstream @name@ {
@zone@
@method@
@servers@
keepalive 256;
}
"""
SERVER = """\
server {
listen 127.0.0.1:@port@ backlog=1024 reuseport;
keepalive_requests 1000000000;
proxy_http_version 1.1;
proxy_set_header Connection "";
proxy_buffering off;
location = /kvca { kvca_status json; }
@locations@
}
"""


@dataclasses.dataclass
class Arm:
    """A way to balance. The name of its upstream is made from its name."""
    name: str
    method: str
    zone: bool = True
    weights: bool = False

    @property
    def upstream(self):
        return "arm_" + re.sub(r"\W+", "_", self.name)

    def config(self, capacities):
        method = self.method
        if method.startswith("kvca"):
            method += "\nkvca_tokens $http_x_prompt_tokens;\n"
            method += "\n".join(f"kvca_rank @b{i}@ total_kv_blocks={blocks};" for i, blocks in enumerate(capacities))
        weights = [f" weight={blocks}" if self.weights else "" for blocks in capacities]
        servers = "\n".join(f"server @b{i}@ max_fails=0{weight};" for i, weight in enumerate(weights))
        text = UPSTREAM.replace("@name@", self.upstream).replace("@method@", method).replace("@servers@", servers)
        return text.replace("@zone@", f"zone shared_{self.upstream} 512k;" if self.zone else "")

    @property
    def location(self):
        return f"location /{self.upstream} {{ proxy_pass http://{self.upstream}; }}\n"


def frontend(arms, capacities, module, backends):
    """An nginx with an upstream and a location for each arm, over the same backends."""
    zones = "".join(f"kvca_zone of_{arm.upstream} 1m;\n" for arm in arms if arm.method.startswith("kvca"))
    upstreams = "".join(arm.config(capacities).replace("@of@", f"of_{arm.upstream}") for arm in arms)
    locations = "".join(arm.location for arm in arms)
    return harness.Nginx(zones + upstreams + SERVER.replace("@locations@", locations), module=module, backends=backends,
                         workers=WORKERS)


KVCA = "kvca zone=@of@;"
LEAST = "least_conn;"


# Ranks that answer at once.


@dataclasses.dataclass
class Address:
    address: str


class Ranks:
    """An nginx that answers at once, at several addresses."""

    def __init__(self, count):
        ports = {harness.free_port()}
        while len(ports) < count:
            ports.add(harness.free_port())
        self.addresses = [Address(f"127.0.0.1:{port}") for port in ports]
        listens = "".join(f"listen {rank.address} backlog=1024;\n" for rank in self.addresses)
        self.nginx = harness.Nginx(f"server {{\nlisten 127.0.0.1:@port@;\n{listens}keepalive_requests 1000000000;\n"
                                   "return 200 ok;\n}\n", workers=1)

    def __enter__(self):
        self.nginx.__enter__()
        return self.addresses

    def __exit__(self, *_):
        self.nginx.close()


def wrk(port, path, seconds):
    """Runs wrk. Returns how many requests were answered, and how many a second."""
    command = [shutil.which("wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H", "X-Prompt-Tokens: 1600",
               f"http://127.0.0.1:{port}/{path}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    total = re.search(r"(\d+) requests in", done.stdout)
    rate = re.search(r"Requests/sec: +([\d.]+)", done.stdout)
    if done.returncode != 0 or not total or not rate or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise AssertionError(f"{' '.join(command)}:\n{done.stdout}")
    return int(total[1]), float(rate[1])


def processor_seconds(pids):
    """User and system time of processes, in seconds."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


# Part "cost".

COST_ARMS = [
    Arm("least_conn", LEAST, zone=False), Arm("kvca", KVCA, zone=False),
    Arm("least_conn, zone", LEAST), Arm("kvca, zone", KVCA),
]


def measure(nginx, arm, seconds):
    """(requests a second, microseconds of the workers for each)"""
    before = processor_seconds(nginx.worker_pids())
    requests, rate = wrk(nginx.port, arm.upstream, seconds)
    return rate, (processor_seconds(nginx.worker_pids()) - before) / requests * 1e6


def rounds_of(arms, rounds, measured):
    """The results of measured(arm) in each round, by the arm's name. The order of the arms changes in each round."""
    order, results = random.Random(1), {arm.name: [] for arm in arms}
    for _ in range(rounds):
        for arm in order.sample(arms, len(arms)):
            results[arm.name].append(measured(arm))
    return results


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} .. {max(values):.{digits}f})"


def cost(options, ranks):
    rounds, seconds = (3, 1) if options.quick else (7, 2)
    with Ranks(ranks) as addresses, frontend(COST_ARMS, [1000000] * ranks, options.module, addresses) as nginx:
        for arm in COST_ARMS:
            wrk(nginx.port, arm.upstream, 1)
        results = rounds_of(COST_ARMS, rounds, lambda arm: measure(nginx, arm, seconds))
        nginx.wait_until_idle()
    print(f"\n{ranks} ranks, {rounds} rounds of {seconds} s for each; median (least .. most)")
    row = "{:26}{:>32}{:>34}"
    print(row.format("", "requests a second", "us of the workers for a request"))
    for arm in COST_ARMS:
        rates, times = zip(*results[arm.name])
        print(row.format(arm.name, spread(rates, 0), spread(times, 2)))
    for least, ours in (COST_ARMS[:2], COST_ARMS[2:]):
        ratios = [tuple(a / b for a, b in zip(*pair)) for pair in zip(results[ours.name], results[least.name])]
        print(row.format(f"{ours.name} : {least.name}", *(spread(column, 3) for column in zip(*ratios))))


# Part "inside".


def inside(options, ranks):
    seconds = 2 if options.quick else 5
    arm = Arm("kvca, zone", KVCA)
    with Ranks(ranks) as addresses, frontend([arm], [1000000] * ranks, options.clock, addresses) as nginx:
        wrk(nginx.port, arm.upstream, seconds)
        workers = nginx.worker_pids()
        nginx.signal(harness.signal.SIGQUIT)
        harness.wait_for(lambda: not any(map(harness.is_alive, workers)), "the workers have ended")
        lines = [line for line in nginx.error_log().splitlines() if "kvca clock: " in line]
    print(f"\n{ranks} ranks, {WORKERS} workers, {CONNECTIONS} connections, {seconds} s: ns for a call, median and mean")
    for line in lines:
        print("    " + line.partition("kvca clock: ")[2])
    if len(lines) != WORKERS:
        raise AssertionError(f"{len(lines)} of {WORKERS} workers wrote their times")


# Part "placement".

PLACEMENT_ARMS = [
    Arm("kvca", KVCA), Arm("kvca, overflow=reject", "kvca zone=@of@ overflow=reject;"),
    Arm("least_conn", LEAST), Arm("least_conn, weight=capacity", LEAST, weights=True),
]
SIZES = {"unequal ranks": [800, 800, 400, 400, 400, 200, 200, 200], "equal ranks": [425] * 8}
# The share of the requests, their least and most blocks, their least and most seconds.
MIX = [(0.70, 2, 20, 0.05, 0.3), (0.25, 20, 60, 0.1, 0.5), (0.05, 80, 160, 0.2, 0.8)]


def draw(generator):
    """(blocks, seconds) of a request."""
    kind = generator.choices(MIX, [share for share, *_ in MIX])[0]
    return generator.randint(kind[1], kind[2]), generator.uniform(kind[3], kind[4])


def clients_for(share, capacities):
    """The number of clients, each with one request at a time, that keep about that share of all capacity booked."""
    generator = random.Random(1)
    drawn = [draw(generator) for _ in range(20000)]
    blocks = sum(blocks * seconds for blocks, seconds in drawn) / sum(seconds for _, seconds in drawn)
    return round(share * sum(capacities) / blocks)


def place(nginx, backends, arm, clients, seconds, seed):
    """[requests, rejected, past a capacity, past a capacity while another rank had room]"""
    def ask(_client, _number, generator):
        blocks, hold = draw(generator)
        return harness.Ask(f"/{arm.upstream}?hold={hold:.3f}", {"X-Prompt-Tokens": blocks * harness.BLOCK_SIZE})
    for backend in backends:
        backend.reset()
    load = harness.run_load(nginx.port, clients, ask, seconds=seconds, seed=seed)
    rejected = load.statuses.pop(503, 0)
    if load.failures or set(load.statuses) != {200} or (rejected and "reject" not in arm.method):
        raise AssertionError(f"{arm.name}: {load.statuses} {rejected} {load.failures}")
    over, avoidable = (sum(getattr(backend, name) for backend in backends) for name in ("over", "avoidable"))
    return [load.requests, rejected, over, avoidable]


def placement(options, name, shares):
    capacities = SIZES[name]
    rounds, seconds = (2, 2) if options.quick else (2, 4)
    backends = harness.Backend.several(capacities)
    with frontend(PLACEMENT_ARMS, capacities, options.module, backends) as nginx:
        for share in shares:
            clients = clients_for(share, capacities)
            results = rounds_of(PLACEMENT_ARMS, rounds, lambda arm, clients=clients: place(
                nginx, backends, arm, clients, seconds, seed=1))
            nginx.wait_until_idle()
            print(f"\n{name} ({', '.join(map(str, capacities))} blocks), {clients} clients: about {share:.0%} of all "
                  f"capacity booked; {rounds} rounds of {seconds} s for each")
            print_placement(results)
    for backend in backends:
        backend.stop()


def print_placement(results):
    row = "{:30}{:>10}{:>14}{:>16}{:>26}"
    print(row.format("", "requests", "rejected", "past capacity", "while another had room"))
    for name, measured in results.items():
        requests, *counts = map(sum, zip(*measured))
        print(row.format(name, requests, *(f"{count} ({count / requests:.1%})" for count in counts)))


# The program.


def version(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.strip()


def describe(options):
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="latin-1"))
    print("command    " + " ".join(os.path.basename(word) if os.sep in word else word for word in sys.argv))
    print(f"nginx      {version(harness.find_nginx(), '-v').rpartition('/')[2]}, {WORKERS} workers")
    print(f"load       wrk, 1 thread, {CONNECTIONS} connections; all on the same processors")
    print(f"processor  {cpu[1] if cpu else os.uname().machine}, {os.cpu_count()} online")
    average = os.getloadavg()[0]
    print(f"before     load average {average:.2f}{': the machine is busy' if average > 1 else ''}", flush=True)


def missing(options):
    if not harness.find_nginx() or not shutil.which("wrk"):
        return "nginx or wrk is missing"
    return next((f"{path} is missing" for path in (options.module, options.clock)
                 if path and not os.path.exists(path)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", required=True, type=os.path.abspath)
    parser.add_argument("--clock", type=os.path.abspath)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    parts = options.parts or ["cost", "inside", "placement"]
    if not set(parts) <= {"cost", "inside", "placement"}:
        parser.error("a PART is cost, inside or placement")
    why = missing(options)
    if why:
        print(f"skipped: {why}")
        return SKIPPED
    describe(options)
    for ranks in (4, 64) if "cost" in parts else ():
        cost(options, ranks)
    for ranks in (4, 64) if "inside" in parts and options.clock else ():
        inside(options, ranks)
    for name in SIZES if "placement" in parts else ():
        placement(options, name, [0.8] if options.quick else [0.7, 0.9])
    return 0


if __name__ == "__main__":
    sys.exit(main())
