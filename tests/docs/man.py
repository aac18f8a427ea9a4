#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the manual pages with what they describe.

    man.py sources --root ROOT [--kvca KVCA]     compares their sources with the command and the headers
    man.py pages PAGE...                         checks the built pages: no warning, and at most 80 columns
"""
import argparse
import pathlib
import re
import subprocess
import sys

from checks import Checks, Page, need, plain, read, skip

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interface"))
import headers  # noqa: E402

COMMANDS = {"kvca": [], "kvca-check": ["check"], "kvca-select": ["select"], "kvca-replay": ["replay"]}
# scdoc writes an empty paragraph here and there, which no reader sees.
OF_SCDOC = "skipping paragraph macro"
COLUMNS = 80


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          check=False, **more).stdout


def options_of_help(text):
    """'  -c, --policy POLICY  the policy file' is {'-c POLICY', '--policy POLICY'}."""
    options = set()
    for names, argument in re.findall(r"^  (?:    )?((?:-\w, )?--[a-z-]+|-\w)(\S* [A-Z][A-Z,.\[\]]*(?= |$)|\S*)",
                                      text, re.M):
        options |= {name + argument for name in names.split(", ")}
    return options


def options_of_page(page):
    return {option for line in page.terms("OPTIONS") for option in plain(line).split(", ")}


def check_options(checks, kvca, pages):
    for name, command in COMMANDS.items():
        options = options_of_help(run([kvca, *command, "--help"]))
        checks.equal(f"options of {name}", sorted(options_of_page(pages[name])), sorted(options))


def accepted(kvca, arguments, text):
    """The keys that the command lists as accepted when it gets another one."""
    message = run([kvca, *arguments], input=text)
    return re.search(r"accepted are (.*)$", message, re.M)[1].split(", ")


def check_keys(checks, kvca, root, pages):
    parameters = accepted(kvca, ["check", "-"], "x: 1")
    parameters.remove("worker_selection")
    checks.equal("parameters", [plain(term) for term in pages["kvca-policy"].terms("PARAMETERS")], parameters)
    selection = accepted(kvca, ["check", "-"], "worker_selection: {x: 1}")
    text = plain(pages["kvca-policy"].sections["SECTIONS AND KEYS"])
    checks.equal("keys of worker_selection", [key for key in selection if key in text], selection)
    columns = accepted(kvca, ["select", "-c", str(root / "docs/examples/policy.yaml"), "-"], "{x: 1}")
    terms = [key for term in pages["kvca-select"].terms("RANKS FILE") for key in plain(term).split(", ")]
    checks.equal("keys of a ranks file", sorted(terms), sorted(columns))


def declarations(text):
    """The functions of a page by name, with any white space."""
    found = {}
    for declaration in re.findall(r"^((?:const )?\w+ \*?kvca_\w+\([^;{]*\);)", text, re.M):
        shape = re.sub(r"\s+", " ", declaration)
        found[re.search(r"(kvca_\w+)\(", shape)[1]] = shape
    return found


def check_library(checks, root, pages):
    page = pages["libkvca"]
    shown = {}
    for block in page.literals():
        shown.update(declarations(block))
    declared = {name: f"{declaration};" for path in sorted((root / "include/kvca").glob("*.h"))
                for name, declaration in headers.read(path).functions.items()}
    exported = headers.read_map(root / "src/kvca.map")
    checks.equal("exported functions", sorted(declared), sorted(exported))
    for name in sorted(declared):
        checks.check(f"prototype of {name}",
                     declared[name] != shown.get(name) and f"{shown.get(name)} is not {declared[name]}")
    texts = dict(re.findall(r'case (KVCA_\w+):\s+return "(.*)";', read(root / "src/status.c")))
    told = dict(re.findall(r"^\*(KVCA_\w+)\*\n\t(.*)$", page.sections["RETURN VALUE"], re.M))
    for name in sorted(texts.keys() | told.keys()):
        checks.check(f"text of {name}", texts.get(name) != told.get(name) and f"{told.get(name)}")


def check_references(checks, pages):
    for name, page in pages.items():
        for other, section in re.findall(r"\*([\w-]+)\*\((\d)\)", page.text):
            checks.check(f"{name}: {other}({section})",
                         not (other in pages and pages[other].text.startswith(f"{other}({section})")) and "no such page")


def check_sources(options):
    root = pathlib.Path(options.root)
    pages = {path.name.split(".")[0]: Page(path) for path in sorted((root / "docs/man").glob("*.scd"))}
    checks = Checks()
    check_library(checks, root, pages)
    check_references(checks, pages)
    if options.kvca:
        check_options(checks, options.kvca, pages)
        check_keys(checks, options.kvca, root, pages)
    return checks.status()


def check_pages(options):
    if not options.pages:
        skip("no pages were built: scdoc is not installed, or -Dman=disabled")
    need("mandoc", "groff")
    checks = Checks()
    for path in options.pages:
        name = pathlib.Path(path).name
        lint = [line for line in run(["mandoc", "-T", "lint", "-W", "warning", path]).splitlines()
                if OF_SCDOC not in line]
        checks.check(f"{name}: mandoc", "\n".join(lint))
        checks.check(f"{name}: groff", run(["groff", "-ww", "-t", "-man", "-Tutf8", "-z", path]))
        shown = re.sub(r".\x08", "", run(["mandoc", "-T", "utf8", "-O", f"width={COLUMNS - 2}", path]))
        wide = [line for line in shown.splitlines() if len(line) > COLUMNS]
        checks.check(f"{name}: width", "\n".join(wide))
    return checks.status()


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    sources = commands.add_parser("sources")
    sources.add_argument("--root", required=True)
    sources.add_argument("--kvca")
    sources.set_defaults(run=check_sources)
    pages = commands.add_parser("pages")
    pages.add_argument("pages", nargs="*")
    pages.set_defaults(run=check_pages)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
