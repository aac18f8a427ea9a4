#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots how the time of a pick grows with the ranks, from the figures of select_bench.

    build/bench/select_bench --csv select.csv
    bench/select_plot.py select.csv docs/performance/growth.svg

Needs gnuplot. Times are those for latency on random loads.
"""
import argparse
import csv
import math
import subprocess

# Subject, label, colour (of the palette of Okabe and Ito, for colour-blind readers), dash, point.
CURVES = [
    ("A", "A: a router's pipeline", "#777777", 1, 9),
    ("C", "C: the rule, written plainly", "#D55E00", 1, 5),
    ("select+m", "kvca_select, multipliers", "#CC79A7", 1, 11),
    ("select", "kvca_select", "#0072B2", 1, 7),
    ("place", "kvca_pool_place", "#009E73", 1, 13),
    ("D", "D: the floor, each column read", "#000000", 2, 6),
]
GAP = 0.055  # between labels, as a share of the plot's height


def read(path):
    """{subject: [(ranks, median, low, high)]} for latency on random loads."""
    points = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["scenario"] == "random" and row["mode"] == "latency":
                point = (int(row["ranks"]), float(row["median_ns"]), float(row["p10_ns"]), float(row["p90_ns"]))
                points.setdefault(row["subject"], []).append(point)
    return {subject: sorted(of_subject) for subject, of_subject in points.items()}


def label_heights(ends, low, high):
    """The labels' heights, as shares of the plot's height. They are GAP apart, in the order of the curves' ends."""
    heights = {name: math.log(end / low) / math.log(high / low) for name, end in ends.items()}
    order = sorted(heights, key=heights.get)
    for _ in range(100):
        for below, above in zip(order, order[1:]):
            lack = GAP - (heights[above] - heights[below])
            if lack > 0:
                heights[below] -= lack / 2
                heights[above] += lack / 2
    return heights


def script(points, output):
    curves = [curve for curve in CURVES if curve[0] in points]
    sizes = sorted({ranks for name, *_ in curves for ranks, *_ in points[name]})
    times = [time for name, *_ in curves for _, time, _, _ in points[name]]
    low = 0.9 * 10 ** math.floor(math.log10(min(times)))
    high = 10 ** math.ceil(math.log10(max(times)))
    heights = label_heights({name: points[name][-1][1] for name, *_ in curves}, low, high)
    lines = [
        'set terminal svg size 1000,620 font "Helvetica,15" background "white"',
        f'set output "{output}"',
        "set lmargin at screen 0.09; set rmargin at screen 0.72; set tmargin at screen 0.90; set bmargin at screen 0.13",
        "set logscale xy",
        f"set xrange [{sizes[0] * 0.85}:{sizes[-1] * 1.18}]",
        f"set yrange [{low}:{high}]",
        "set xtics (" + ", ".join(f"'{size}' {size}" for size in sizes) + ") nomirror",
        "set ytics ('1 ns' 1, '10 ns' 10, '100 ns' 100, '1 µs' 1e3, '10 µs' 1e4, '100 µs' 1e5, '1 ms' 1e6) nomirror",
        "set mytics 1",
        "set grid ytics xtics lc rgb '#e2e2e2' lt 1",
        "set border 3 lc rgb '#555555'",
        "set title 'Time of a pick on random loads, each waiting for the last' font ',17' offset 0,0.5",
        "set xlabel 'ranks'",
        "unset key",
    ]
    plots = []
    for index, (name, label, colour, dash, point) in enumerate(curves):
        lines.append(f"$c{index} << EOD")
        lines += [f"{ranks} {median} {p10} {p90}" for ranks, median, p10, p90 in points[name]]
        lines.append("EOD")
        lines.append(f"set label {index + 1} \"{label}\" at graph 1.02, graph {heights[name]:.4f} tc rgb '{colour}' noenhanced")
        plots.append(f"$c{index} using 1:2 with linespoints lw 2.2 dt {dash} pt {point} ps 0.8 lc rgb '{colour}'")
    return "\n".join(lines) + "\nplot " + ", ".join(plots) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("csv", help="written by select_bench --csv")
    parser.add_argument("svg", help="the picture to write")
    options = parser.parse_args()
    points = read(options.csv)
    if not points:
        parser.error(f"{options.csv}: found no figures for latency on random loads")
    subprocess.run(["gnuplot"], input=script(points, options.svg), text=True, check=True)
    print(f"wrote {options.svg}")


if __name__ == "__main__":
    main()
