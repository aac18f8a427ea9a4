#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows the links of all Markdown files within the tree: links.py ROOT

A link names a file or folder that exists. After # it names a heading of that page, by GitHub's rules. Links to
other sites are not followed: they must only be whole https addresses.
"""
import pathlib
import re
import sys
import urllib.parse

from checks import Checks, read

FOLDERS = ["docs", "tests", "bench", "src"]
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]*(?:\([^()]*\)[^()\s]*)*)\)")
ELSEWHERE = re.compile(r"https://[\w.-]+\.\w+(/[\w.,:;@%&=+~#?/()-]*)?")


def without_code(text):
    """Removes blocks and spans of code, which have no links. Keeps the text of spans, because headings have them."""
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)


def without_spans(text):
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """What follows # in links to the headings of a page."""
    found = {}
    for heading in re.findall(r"^#{1,6} (.*?) *$", without_code(text), re.M):
        shown = LINK.sub(r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        count = found.get(anchor, 0)
        found[anchor] = count + 1
        yield anchor if count == 0 else f"{anchor}-{count}"


def fault_of(page, target):
    if re.match(r"\w+:", target):
        return None if ELSEWHERE.fullmatch(target) else "not a whole https address"
    path, _, anchor = urllib.parse.unquote(target).partition("#")
    other = (page.parent / path).resolve() if path else page
    if not other.exists():
        return "no such file"
    if anchor and (other.suffix != ".md" or anchor not in anchors(read(other))):
        return "no such heading"
    return None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [*root.glob("*.md"), *(page for folder in FOLDERS for page in (root / folder).rglob("*.md"))]
    checks = Checks()
    for page in sorted(pages):
        for _, target in LINK.findall(without_spans(without_code(read(page)))):
            checks.check(f"{page.relative_to(root)}: {target}", fault_of(page, target))
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
