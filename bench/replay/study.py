#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The replay study: three public traces, three pools, three loads, all policies, five seeds.

    bench/replay/study.py --kvca build/src/tool/kvca --out study CODE.csv CONV.csv MOONCAKE.jsonl

Writes results.csv (every run), tables.md and, if gnuplot is installed, two plots. Prints how long it took.
docs/replay.md explains the traces and the results.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

SEEDS = 5
TRACES = [("code", 1024), ("conv", 2048), ("mooncake", 16384)]  # name, KV blocks of a rank
POOLS = [("8 equal", 8, False), ("32 equal", 32, False), ("8 unequal", 8, True)]  # unequal: every other rank has half
# The mean KV blocks in use with default:0, as a share of the most that it can fill (see speed_for).
LOADS = [("50 %", 0.50), ("80 %", 0.80), ("95 %", 0.95)]
WEIGHTS = [0, 1, 4, 16, 64, 256, 1024]
DEFAULTS = [f"default:{weight}" for weight in WEIGHTS]
KVCA = [f"kvca:{fraction}:{count}:0" for fraction in ("1.0", "0.9", "0.8", "off") for count in ("on", "off")]
FILTERED = [policy for policy in KVCA if not policy.startswith("kvca:off")]
OTHERS = ["least_requests", "p2c", "round_robin"]
# How requests are booked and held, and the policies that this affects.
MODES = [
    ("plain", [], DEFAULTS + KVCA + OTHERS),
    ("track", ["--track-output-blocks"], DEFAULTS + KVCA),
    ("hold", ["--hold"], FILTERED),
    ("track+hold", ["--track-output-blocks", "--hold"], FILTERED),
]
# The sensitivity of the model: one change at a time, for a few policies.
CHANGES = [
    ("watermark 0", ["--watermark", "0"]),
    ("watermark 0.05", ["--watermark", "0.05"]),
    ("batch_ms 0.1", ["--batch-ms", "0.1"]),
    ("batch_ms 0.25", ["--batch-ms", "0.25"]),
    ("independent", ["--independent"]),
]
FEW = ["default:0", "kvca:1.0:on:0", "kvca:1.0:off:0"]
KEYS = ["trace", "pool", "load", "mode", "change", "speed"]


class Study:
    def __init__(self, options):
        self.kvca = options.kvca
        self.files = dict(zip([name for name, _ in TRACES], options.traces))
        self.runs = 0

    def replay(self, trace, capacity, pool, speed, flags, policies, seeds):
        """Runs the command. Returns a dictionary for each policy and seed."""
        _, ranks, unequal = pool
        command = [self.kvca, "replay", "--format", "json", "--ranks", str(ranks), "--speed", repr(speed), "--capacity",
                   f"{capacity},{capacity // 2}" if unequal else str(capacity), "--seeds", str(seeds)]
        for policy in policies:
            command += ["--policy", policy]
        done = subprocess.run(command + flags + [self.files[trace]], check=True, stdout=subprocess.PIPE)
        self.runs += len(policies) * seeds
        return json.loads(done.stdout)

    def speed_for(self, trace, capacity, pool, share):
        """The speed at which default:0 fills this share of the most blocks that it can fill.

        It cannot fill all blocks: a trace begins and ends, and in an unequal pool the small ranks are full first."""

        def use(speed):
            return self.replay(trace, capacity, pool, speed, [], ["default:0"], 1)[0]["kv_use"]

        grid = [2.0 ** exponent for exponent in range(-2, 11)]
        uses = [use(speed) for speed in grid]
        most = max(uses)
        target = share * most
        above = next(index for index, used in enumerate(uses) if used >= target)
        low, high = grid[max(above - 1, 0)], grid[above]
        for _ in range(10):
            middle = (low * high) ** 0.5
            if use(middle) < target:
                low = middle
            else:
                high = middle
        return round(high, 3)

    def point(self, task):
        """All runs of one trace on one pool under one load."""
        (trace, capacity), pool, (load, share) = task
        speed = self.speed_for(trace, capacity, pool, share)
        rows = []

        def add(mode, change, results):
            for result in results:
                rows.append({"trace": trace, "pool": pool[0], "load": load, "mode": mode, "change": change,
                             "speed": speed, **result})

        for mode, flags, policies in MODES:
            add(mode, "", self.replay(trace, capacity, pool, speed, flags, policies, SEEDS))
        if pool[1] == 8:
            for change, flags in CHANGES:
                add("plain", change, self.replay(trace, capacity, pool, speed, flags, FEW, SEEDS))
                add("hold", change, self.replay(trace, capacity, pool, speed, flags + ["--hold"], FEW[1:], SEEDS))
        return rows


def mean(rows, key):
    return statistics.fmean(row[key] for row in rows)


def select(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def spread(rows, key):
    """The mean over seeds, and the largest distance of a seed from it."""
    middle = mean(rows, key)
    return middle, max(abs(row[key] - middle) for row in rows)


def show(rows, key, digits):
    middle, far = spread(rows, key)
    return f"{middle:.{digits}f} ± {far:.{digits}f}"


NAMED = [
    ("default:0", "plain", "default:0"),
    ("default:64", "plain", "default:64"),
    ("default:1024", "plain", "default:1024"),
    ("kvca, count on", "plain", "kvca:1.0:on:0"),
    ("kvca, count off", "plain", "kvca:1.0:off:0"),
    ("kvca, count on, hold", "hold", "kvca:1.0:on:0"),
    ("kvca, count off, hold", "hold", "kvca:1.0:off:0"),
    ("kvca 0.8, count off, hold", "hold", "kvca:0.8:off:0"),
    ("kvca, count off, track", "track", "kvca:1.0:off:0"),
    ("kvca, count off, track, hold", "track+hold", "kvca:1.0:off:0"),
    ("least_requests", "plain", "least_requests"),
    ("p2c", "plain", "p2c"),
    ("round_robin", "plain", "round_robin"),
]


def table(rows, pool, load):
    """A Markdown table of the named settings for one pool and load. The traces are side by side."""
    lines = ["| policy | " + " | ".join(f"{trace}: e2e mean s | wait p99 s | preempted | avoidable" for trace, _ in TRACES)
             + " |", "|---|" + "---:|" * (4 * len(TRACES))]
    for name, mode, policy in NAMED:
        cells = [name]
        for trace, _ in TRACES:
            found = select(rows, trace=trace, pool=pool, load=load, mode=mode, change="", policy=policy)
            cells += [show(found, "e2e_mean_s", 2), show(found, "wait_p99_s", 2), f"{mean(found, 'preemptions'):.0f}",
                      f"{mean(found, 'over_capacity_avoidable'):.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def relative(rows, trace, pool, load, mode, policy, change="", key="e2e_mean_s"):
    """A setting's mean as a share of default:0 under the same change."""
    base = mean(select(rows, trace=trace, pool=pool, load=load, mode="plain", change=change, policy="default:0"), key)
    return mean(select(rows, trace=trace, pool=pool, load=load, mode=mode, change=change, policy=policy), key) / base


def relative_table(rows):
    """Mean e2e of the named settings as a share of default:0, for every trace, pool and load."""
    columns = [(pool[0], load) for pool in POOLS for load, _ in LOADS]
    lines = []
    for trace, _ in TRACES:
        lines += [f"**{trace}**", "", "| policy | " + " | ".join(f"{pool}, {load}" for pool, load in columns) + " |",
                  "|---|" + "---:|" * len(columns)]
        for name, mode, policy in NAMED[1:]:
            cells = [f"{relative(rows, trace, pool, load, mode, policy):.2f}" for pool, load in columns]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def every_table(rows):
    """The best setting of all, and the best that places at once, at every point."""
    lines = ["| trace | pool | load | speed | KV use, default:0 | best of all, e2e mean s | best that places at once | "
             "default:0 |", "|---|---|---|---:|---:|---|---|---:|"]
    for trace, _ in TRACES:
        for pool in POOLS:
            for load, _ in LOADS:
                here = select(rows, trace=trace, pool=pool[0], load=load, change="")
                settings = sorted({(row["mode"], row["policy"]) for row in here})
                ranked = sorted((mean(select(here, mode=mode, policy=policy), "e2e_mean_s"), mode, policy)
                                for mode, policy in settings)
                at_once = [entry for entry in ranked if "hold" not in entry[1]]
                plain = select(here, mode="plain", policy="default:0")
                base = mean(plain, "e2e_mean_s")
                cells = [trace, pool[0], load, f"{here[0]['speed']:g}", f"{100 * mean(plain, 'kv_use'):.0f} %"]
                cells += [f"{value:.2f} {policy} ({mode})" for value, mode, policy in (ranked[0], at_once[0])]
                lines.append("| " + " | ".join(cells + [f"{base:.2f}"]) + " |")
    return "\n".join(lines)


def claims(rows):
    """Statements that can be counted over all points."""
    points = [(trace, pool[0], load) for trace, _ in TRACES for pool in POOLS for load, _ in LOADS]

    def at(point, mode, policy, key="e2e_mean_s"):
        found = select(rows, trace=point[0], pool=point[1], load=point[2], mode=mode, change="", policy=policy)
        return mean(found, key)

    def best(point, held):
        here = select(rows, trace=point[0], pool=point[1], load=point[2], change="")
        settings = {(row["mode"], row["policy"]) for row in here if ("hold" in row["mode"]) == held}
        return min(at(point, mode, policy) for mode, policy in settings)

    def count(name, chosen, test):
        chosen = list(chosen)
        return f"- {name}: {sum(map(test, chosen))} of {len(chosen)} points"

    equal = [point for point in points if "unequal" not in point[1]]
    unequal = [point for point in points if "unequal" in point[1]]
    light = [point for point in equal if point[2] == "50 %"]
    avoidable = sum(row["over_capacity_avoidable"] for row in rows if row["policy"].startswith("kvca:1.0"))
    return "\n".join([
        f"- avoidable over-capacity bookings of kvca with fraction 1.0, in all its runs together: {avoidable:.0f}",
        count("equal ranks, load 50 %: default:0 within 1 % of the best that places at once, or better", light,
              lambda point: at(point, "plain", "default:0") <= 1.01 * best(point, False)),
        count("equal ranks: kvca with count on is more than 1 % slower than default:0", equal,
              lambda point: at(point, "plain", "kvca:1.0:on:0") > 1.01 * at(point, "plain", "default:0")),
        count("equal ranks: kvca with count off is within 1 % of default:0", equal,
              lambda point: abs(at(point, "plain", "kvca:1.0:off:0") / at(point, "plain", "default:0") - 1) <= 0.01),
        count("unequal ranks: kvca with count on is more than 1 % faster than default:0", unequal,
              lambda point: at(point, "plain", "kvca:1.0:on:0") < 0.99 * at(point, "plain", "default:0")),
        count("unequal ranks: kvca with count off is more than 1 % faster than default:0", unequal,
              lambda point: at(point, "plain", "kvca:1.0:off:0") < 0.99 * at(point, "plain", "default:0")),
        count("the best setting with hold is more than 1 % faster than the best that places at once", points,
              lambda point: best(point, True) < 0.99 * best(point, False)),
        count("the best setting with hold is more than 1 % slower than the best that places at once", points,
              lambda point: best(point, True) > 1.01 * best(point, False)),
        count("kvca 1.0, count off, with hold is more than 1 % slower than default:0", points,
              lambda point: at(point, "hold", "kvca:1.0:off:0") > 1.01 * at(point, "plain", "default:0")),
    ])


def settings_table(rows):
    """Mean e2e of every setting as a share of default:0: the geometric mean over traces and loads, and the worst."""
    here = select(rows, change="")
    lines = ["| policy | mode | unequal pool: mean | worst | equal pools: mean | worst |", "|---|---|---:|---:|---:|---:|"]
    found = []
    for mode, policy in sorted({(row["mode"], row["policy"]) for row in here}):
        cells = []
        for unequal in (True, False):
            shares = [relative(here, trace, pool[0], load, mode, policy) for trace, _ in TRACES for pool in POOLS
                      for load, _ in LOADS if pool[2] == unequal]
            cells += [statistics.geometric_mean(shares), max(shares)]
        found.append((cells, policy, mode))
    for cells, policy, mode in sorted(found):
        lines.append(f"| {policy} | {mode} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return "\n".join(lines)


def sensitivity_table(rows):
    """How the comparison with default:0 changes with one change of the model."""
    settings = [("kvca, count on", "plain", "kvca:1.0:on:0"), ("kvca, count off", "plain", "kvca:1.0:off:0"),
                ("kvca, count on, hold", "hold", "kvca:1.0:on:0"), ("kvca, count off, hold", "hold", "kvca:1.0:off:0")]
    lines = ["| pool, load | trace | change | " + " | ".join(name for name, _, _ in settings) + " |",
             "|---|---|---|" + "---:|" * len(settings)]
    for pool in ("8 equal", "8 unequal"):
        for trace, _ in TRACES:
            for change in [""] + [name for name, _ in CHANGES]:
                cells = [f"{relative(rows, trace, pool, '95 %', mode, policy, change):.2f}"
                         for _, mode, policy in settings]
                lines.append(f"| {pool}, 95 % | {trace} | {change or 'none'} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_tables(rows, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Tables of the replay study\n\nMade by bench/replay/study.py. ± is the largest distance of a seed "
                   "from the mean of five.\n\n## Counted\n\n" + claims(rows) + "\n\n## Mean e2e, as a share of default:0\n\n" + relative_table(rows) + "\n")
        for pool in POOLS:
            for load, _ in LOADS:
                file.write(f"## {pool[0]} ranks, load {load}\n\n{table(rows, pool[0], load)}\n\n")
        file.write("## All settings, over all traces and loads\n\nMean e2e as a share of default:0: the geometric mean over "
                   "traces and loads, and the worst of them.\n\n"
                   + settings_table(rows) + "\n\n")
        file.write("## The best of all settings\n\n" + every_table(rows) + "\n\n")
        file.write("## Sensitivity: mean e2e as a share of default:0 under the same change\n\n"
                   + sensitivity_table(rows) + "\n")


DOTS = [("default:64", "plain", "default:64", "#9a9a9a", 6), ("least requests", "plain", "least_requests", "#c9a227", 8),
        ("kvca, count on", "plain", "kvca:1.0:on:0", "#7fb2e5", 7), ("kvca, count off", "plain", "kvca:1.0:off:0", "#1f5fa8", 7),
        ("kvca, count off, hold", "hold", "kvca:1.0:off:0", "#d1495b", 5)]


def plot(script, path):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    print(f"wrote {path}")


def begin(path, width, height, layout):
    return [f'set terminal svg size {width},{height} font "Helvetica,14" background "white"\nset output "{path}"',
            f"set multiplot layout {layout}", "set grid ytics lc rgb '#dddddd'", "set tics nomirror", "set border 3"]


def latency_plot(rows, path):
    """Plots mean e2e against default:0: a panel for each pool, a column for each trace and load."""
    places = [(trace, load) for trace, _ in TRACES for load, _ in LOADS]
    spots = [index + index // len(LOADS) for index in range(len(places))]  # a gap between traces
    script = begin(path, 1200, 560, "1,3 margins 0.07,0.99,0.17,0.8 spacing 0.035")
    script += ["set yrange [0.45:1.25]", f"set xrange [-0.7:{spots[-1] + 0.7}]",
               "set xtics (" + ", ".join(f"'{load[:2]}' {spot}" for (_, load), spot in zip(places, spots)) + ") font ',12'",
               "set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lw 2 lc rgb '#333333'",
               "set label 1 'slower than default:0' at graph 0.03, first 1.22 tc rgb '#777777' font ',12'",
               "set label 2 'faster' at graph 0.03, first 0.48 tc rgb '#777777' font ',12'"]
    for index, (trace, _) in enumerate(TRACES):
        middle = spots[index * len(LOADS) + 1]
        script.append(f"set label {10 + index} '{trace}' at first {middle}, graph -0.14 center")
    script.append("set label 20 'load, %' at graph -0.02, graph -0.06 right font ',12'")
    for index, pool in enumerate(POOLS):
        script.append(f"set title '{pool[0]} ranks' font ',16'")
        script.append("set ylabel 'mean e2e / that of default:0'" if index == 0 else "unset ylabel")
        script.append("set key at screen 0.97, 0.97 right top maxrows 1 samplen 0.5 width -4" if index == 0 else "unset key")
        for i, dot in enumerate(DOTS):
            values = [relative(rows, trace, pool[0], load, dot[1], dot[2]) for trace, load in places]
            shift = 0.13 * (i - (len(DOTS) - 1) / 2)
            script.append(f"$d{index}{i} << EOD")
            script += [f"{spot + shift} {value:.4f}" for spot, value in zip(spots, values)] + ["EOD"]
        script.append("plot " + ", ".join(f"$d{index}{i} using 1:2 with points pt {dot[4]} ps 1.1 lc rgb '{dot[3]}' "
                                          f"title '{dot[0]}'" for i, dot in enumerate(DOTS)))
    plot("\n".join(script) + "\nunset multiplot\n", path)


def overbooking_plot(rows, path):
    """Plots the share of requests that default:W books past a capacity while another rank has room. kvca has none."""
    script = begin(path, 1200, 460, "1,3 margins 0.06,0.99,0.17,0.8 spacing 0.045")
    script += ["set label 1 \"Requests booked past a rank's capacity while another rank had room\" at screen 0.5, 0.95 center "
               "font ',17'", "set label 2 'kvca, fraction 1: none' at graph 0.03, first 0 offset 0, -0.9 font ',13'",
               "set xlabel 'W of default:W'", f"set xrange [-0.3:{len(WEIGHTS) - 0.7}]", "set yrange [-4:*]",
               "set xtics (" + ", ".join(f"'{weight}' {i}" for i, weight in enumerate(WEIGHTS)) + ")"]
    colors = ["#e3a008", "#1f5fa8", "#d1495b"]
    for index, (trace, _) in enumerate(TRACES):
        plots = []
        for i, pool in enumerate(POOLS):
            shares = []
            for policy in DEFAULTS:
                found = select(rows, trace=trace, pool=pool[0], load="80 %", mode="plain", change="", policy=policy)
                shares.append(100 * mean(found, "over_capacity_avoidable") / mean(found, "requests"))
            script.append(f"$d{index}{i} << EOD")
            script += [f"{x} {share:.4f}" for x, share in enumerate(shares)] + ["EOD"]
            plots.append(f"$d{index}{i} using 1:2 with linespoints pt 7 lw 2 lc rgb '{colors[i]}' title '{pool[0]} ranks'")
        plots.append("0 with lines dt 2 lw 3 lc rgb '#222222' notitle")
        script.append(f"set title '{trace}, load 80 %' font ',16'")
        script.append("set ylabel '% of requests'" if index == 0 else "unset ylabel")
        script.append("set key top left samplen 2" if index == 0 else "unset key")
        script.append("plot " + ", ".join(plots))
    plot("\n".join(script) + "\nunset multiplot\n", path)


def write_results(rows, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=KEYS + [key for key in rows[0] if key not in KEYS])
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvca", required=True, help="the kvca command")
    parser.add_argument("--out", required=True, help="the folder to write to")
    parser.add_argument("traces", nargs=3, help="the Azure code, the Azure conversation and the Mooncake trace")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    started = time.monotonic()
    study = Study(options)
    tasks = [(trace, pool, load) for trace in TRACES for pool in POOLS for load in LOADS]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
        for index, found in enumerate(executor.map(study.point, tasks)):
            rows += found
            print(f"{index + 1} of {len(tasks)}: {found[0]['trace']}, {found[0]['pool']}, {found[0]['load']}, "
                  f"speed {found[0]['speed']:g}", file=sys.stderr)
    write_results(rows, os.path.join(options.out, "results.csv"))
    write_tables(rows, os.path.join(options.out, "tables.md"))
    if shutil.which("gnuplot"):
        latency_plot(rows, os.path.join(options.out, "latency.svg"))
        overbooking_plot(rows, os.path.join(options.out, "overbooking.svg"))
    else:
        print("gnuplot is not installed: no plots", file=sys.stderr)
    print(f"{study.runs} runs in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
