#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completes command lines as a shell would: completion.py bash|zsh --completion FILE --kvca KVCA

bash: the function is called with the words of a line, and sets COMPREPLY. zsh: a shell runs on a terminal of its
own and writes its offers to a file.
"""
import argparse
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

from checks import Checks, need

ROLES = ["decode", "prefill", "aggregated", "encode"]
FILES = ["policy.yaml", "ranks.yaml", "trace.csv"]
COMMANDS = ["check", "select", "replay", "help"]
DEADLINE_S = 60

# A line up to the cursor, and the offers there.
CASES = {
    "kvca ": COMMANDS,
    "kvca re": ["replay"],
    "kvca x": [],
    "kvca check ": FILES,
    "kvca check --q": ["--quiet"],
    "kvca check --role ": ROLES,
    "kvca check --role=": ROLES,
    "kvca check --role=en": ["encode"],
    "kvca check --quiet po": ["policy.yaml"],
    "kvca select -c ": FILES,
    "kvca select -c policy.yaml --role ": ROLES,
    "kvca select --policy policy.yaml --j": ["--json"],
    "kvca select --seed ": [],
    "kvca select -c policy.yaml ra": ["ranks.yaml"],
    "kvca replay --format ": ["table", "json", "csv"],
    "kvca replay --format=c": ["csv"],
    "kvca replay --engine ": ["fast", "plain"],
    "kvca replay --ranks ": [],
    "kvca replay --ranks 8 --po": ["--policy"],
    "kvca replay --policy ": ["default", "kvca", "least_requests", "p2c", "round_robin"] + FILES,
    "kvca replay --policy po": ["policy.yaml"],
    "kvca replay --policy p2c tr": ["trace.csv"],
}

BASH = r"""
source "$1"; shift
files=yes
compopt() { [ "$*" != '+o default' ] || files=no; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_kvca
[ ${#COMPREPLY[@]} -gt 0 ] || [ $files = no ] || mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
"""

# Every offer goes through compadd. With -O, -A or -D it only filters.
ZSH = r"""
fpath=({folder} $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {{
    if [[ ${{(M)@[1,(i)(-|--)]}} == *(-*[OAD])* ]]; then
        builtin compadd "$@"
        return
    fi
    local -a offered
    builtin compadd -O offered "$@"
    (( $#offered )) && print -rl -- $offered >> {log}
    builtin compadd "$@"
}}
capture() {{ _main_complete; print -r -- '# end' >> {log}; compstate[list]=; compstate[insert]= }}
zle -C capture list-choices capture
bindkey '^I' capture
bindkey '^U' kill-whole-line
print '# ready' >> {log}
"""


def words_of(line):
    """Splits a line like bash: = is a word of its own."""
    words = re.findall(r"=|[^\s=]+", line)
    return words + [""] if line[-1] in " =" and line[-1] != "=" else words


def offers_of_bash(completion, folder, lines):
    for line in lines:
        done = subprocess.run(["bash", "-c", BASH, "bash", completion, *words_of(line)], cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
        yield line, done.stdout.splitlines()


class Zsh:
    """A shell on a terminal. Its offers go to a file."""

    def __init__(self, completion, folder):
        self.log = folder.parent / "offers"
        self.log.touch()
        setup = folder.parent / "setup.zsh"
        setup.write_text(ZSH.format(folder=pathlib.Path(completion).resolve().parent, log=self.log))
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": str(folder.parent)})
        self.send(f"source {setup}\n")
        self.wait("# ready")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, mark):
        """Returns the log up to the mark. Reads the terminal meanwhile, or the shell would wait."""
        deadline = time.monotonic() + DEADLINE_S
        while mark not in self.log.read_text():
            if time.monotonic() > deadline:
                raise TimeoutError(f"zsh does not come to {mark}: {self.log.read_text()}")
            if select.select([self.terminal], [], [], 0.05)[0]:
                os.read(self.terminal, 65536)
        offers = self.log.read_text().split(mark)[0].splitlines()
        self.log.write_text("")
        return offers

    def offers(self, line):
        self.send(f"\x15{line}\t")
        return self.wait("# end")

    def close(self):
        self.send("\x15exit\n")
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:  # the terminal has ended
            pass
        os.waitpid(self.pid, 0)


def offers_of_zsh(completion, folder, lines):
    shell = Zsh(completion, folder)
    try:
        for line in lines:
            yield line, shell.offers(line)
    finally:
        shell.close()


def options_of(kvca, command):
    help_text = subprocess.run([kvca, *command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted(set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", help_text, re.M)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shell", choices=["bash", "zsh"])
    parser.add_argument("--completion", required=True)
    parser.add_argument("--kvca", required=True)
    options = parser.parse_args()
    need(options.shell)
    cases = dict(CASES)
    for command in [], ["check"], ["select"], ["replay"]:
        cases[" ".join(["kvca", *command, "--"])] = options_of(options.kvca, command)
    completion = os.path.abspath(options.completion)
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "here"
        folder.mkdir()
        for name in FILES:
            (folder / name).touch()
        offers = {"bash": offers_of_bash, "zsh": offers_of_zsh}[options.shell]
        for line, offered in offers(completion, folder, cases):
            checks.equal(f"'{line}'", sorted(set(offered)), sorted(cases[line]))
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
