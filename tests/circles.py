#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No circles among files or folders: circles.py ROOT BUILD [NM]

A file is x.c together with x.h of its folder, under src/ or bench/. File A needs file B when A includes B's header,
when A's object uses a function or a variable that B's object defines, which NM tells, or when an inline function in A's
header calls a function of B. A folder needs another when a file in it does. The check prints each circle as a chain,
with the reasons for each step, and fails. It also fails when more than MOST_IN_SRC files stand directly in src/.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

TREES = ["src", "bench"]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
INDENTED = re.compile(r"^[ \t].*", re.M)
CALL = re.compile(r"\b(\w+)\(")
MOST_IN_SRC = 6

# Variables that are no more than names: by this one nginx knows the module, and the module's files find their data.
NAMES = {"ngx_http_kvca_module"}


def folder_of(file):
    return file.rpartition("/")[0]


def find(root, pattern):
    return [path for tree in TREES for path in (root / tree).rglob(pattern)]


class Graph:
    """Who needs whom, and why."""

    def __init__(self):
        self.needs = collections.defaultdict(lambda: collections.defaultdict(list))  # [who][whom]: reasons

    def add(self, who, whom, reason):
        if who != whom:
            self.needs[who][whom].append(reason)

    def folders(self):
        graph = Graph()
        for who, needed in self.needs.items():
            for whom in needed:
                graph.add(folder_of(who), folder_of(whom), f"{who} needs {whom}")
        return graph

    def way(self, start, end):
        """The shortest way of at least one step: [start, ..., end], or None."""
        before, queue = {}, collections.deque([start])
        while queue:
            who = queue.popleft()
            for whom in sorted(self.needs.get(who, ())):
                if whom not in before:
                    before[whom] = who
                    queue.append(whom)
        if end not in before:
            return None
        way = [end, before[end]]
        while way[-1] != start:
            way.append(before[way[-1]])
        return way[::-1]

    def circles(self):
        """Sets of all that need each other, each with the shortest chain in it."""
        chains = {}
        for who in sorted(self.needs):
            chain = self.way(who, who)
            if chain:
                members = frozenset(whom for whom in list(self.needs) if self.way(who, whom) and self.way(whom, who))
                chains[members] = min(chains.get(members, chain), chain, key=len)
        return chains

    def tell(self, members, chain):
        print("circle of " + ", ".join(sorted(members)))
        for who, whom in zip(chain, chain[1:]):
            reasons = sorted(set(self.needs[who][whom]))
            more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
            print(f"    {who} -> {whom}: " + ", ".join(reasons[:3]) + more)


def file_of(root, path):
    """"src/pool/place" for .../src/pool/place.c; None for what is not under TREES."""
    try:
        inside = path.resolve().relative_to(root)
    except ValueError:
        return None
    return inside.with_suffix("").as_posix() if inside.parts[0] in TREES else None


def add_includes(graph, root):
    for path in find(root, "*.[ch]"):
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            header = next((place / name for place in (path.parent, root / "src") if (place / name).exists()), None)
            if header:
                graph.add(file_of(root, path), file_of(root, header), f"includes {name}")


def objects(root, build):
    """The file of each object that is built. A file may have several, one in each program."""
    found = {}
    for command in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        name = file_of(root, pathlib.Path(command["directory"], command["file"]))
        built = pathlib.Path(command["directory"], command["output"])
        if name and built.exists():
            found[str(built)] = name
    return found


def add_symbols(graph, root, build, nm):
    """Returns the files whose objects were read."""
    files = objects(root, build)
    defined, used = collections.defaultdict(set), collections.defaultdict(set)  # [symbol]: files
    table = subprocess.run([nm, "-A", "-g", "-P", *files], check=True, stdout=subprocess.PIPE, text=True).stdout
    for built, symbol, kind in re.findall(r"^(.*): (\S+) (\S)", table, re.M):
        (used if kind in "Uvw" else defined)[symbol].add(files[built])
    for symbol in set(used) - NAMES:
        for who in used[symbol]:
            for whom in defined[symbol]:
                graph.add(who, whom, f"uses {symbol}")
    add_inline_calls(graph, root, defined)
    return set(files.values())


def add_inline_calls(graph, root, defined):
    """In a header a call is indented, a declaration is not."""
    for path in find(root, "*.h"):
        bodies = "".join(INDENTED.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))))
        for symbol in CALL.findall(bodies):
            for whom in defined.get(symbol, ()):
                graph.add(file_of(root, path), whom, f"calls {symbol} inline")


def test_itself():
    """On a small graph, of which all is known."""
    graph = Graph()
    for who, whom in ["ab", "bc", "ca", "cd", "de"]:
        graph.add(f"src/{who}/x", f"src/{whom}/x", "made up")
    graph.add("src/d/x", "src/d/x", "itself")
    circle = ["src/a/x", "src/b/x", "src/c/x", "src/a/x"]
    assert graph.circles() == {frozenset(circle): circle}
    assert list(graph.folders().circles()) == [frozenset({"src/a", "src/b", "src/c"})]
    graph.add("src/d/y", "src/c/x", "made up")  # no circle of files, but one of folders
    assert len(graph.circles()) == 1
    assert list(graph.folders().circles()) == [frozenset({"src/a", "src/b", "src/c", "src/d"})]


def main():
    test_itself()
    root, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    graph = Graph()
    add_includes(graph, root)
    files = {file_of(root, path) for path in find(root, "*.c")}
    read = add_symbols(graph, root, build, sys.argv[3]) if len(sys.argv) > 3 else set()
    unread = files - read
    if unread:
        print("by their includes alone, for want of nm or of objects: " + ", ".join(sorted(unread)))
    faults = 0
    for checked in (graph, graph.folders()):
        for members, chain in checked.circles().items():
            checked.tell(members, chain)
            faults += 1
    in_src = [path.name for path in (root / "src").iterdir() if path.is_file()]
    if len(in_src) > MOST_IN_SRC:
        faults += 1
        print(f"more than {MOST_IN_SRC} files directly in src/: " + ", ".join(sorted(in_src)))
    print(f"{len(files)} C files, {faults} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
