#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs and libraries of different versions understand each other: growth.py --cc CC --library FOLDER ROOT.

Makes the library of a later version, each of whose structures has one more field, and lets it meet today's programs and
today's library meet its programs. Also: each structure begins with its size, and each function refuses a wrong one.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import headers

# Structures whose layout is final.
FINAL = {"kvca_booking"}
# Those that the library only hands out by pointer.
HANDED_OUT = {"kvca_warning", "kvca_counters"}
FIELD = "uint64_t grown;"
LIBRARIES = ["-lyaml", "-lm"]

# What is needed for each call, and for (function, parameter) the variable that is handed in.
PROGRAM = """\
#include <kvca/config.h>
#include <kvca/pool.h>
#include <stdio.h>
#include <string.h>

static uint64_t column[2] = {1, 2};
static uint64_t buffer[1024];
static _Alignas(64) unsigned char memory[65536];
static int failed;

static void expect(const char *what, kvca_status status, kvca_status expected)
{
    if (status != expected) {
        printf("%s: %d (%s), not %d\\n", what, (int)status, kvca_strerror(status), (int)expected);
        failed = 1;
    }
}

int main(void)
{
    kvca_params params = KVCA_PARAMS_DEFAULT;
    kvca_ranks ranks = {.size = sizeof ranks, .count = 2, .decode_cost_blocks = column, .active_requests = column};
    kvca_selection selection = {.size = sizeof selection};
    kvca_explanation explanation = {.size = sizeof explanation};
    kvca_rank rank = {.size = sizeof rank, .worker_id = 1, .total_kv_blocks = 1000};
    kvca_put put = {.size = sizeof put};
    kvca_owner_info info = {.size = sizeof info};
    kvca_request request = {.size = sizeof request, .blocks = 1};
    kvca_snapshot snapshot = {.size = sizeof snapshot};
    kvca_error error = {.size = sizeof error};
    kvca_policy *policy = NULL;
    kvca_policy *other_policy = NULL;
    kvca_pool *pool = NULL;
    kvca_pool *other_pool = NULL;
    kvca_owner owner;
    kvca_booking booking;
    size_t row;
    expect("policy", kvca_policy_new(&params, &policy), KVCA_OK);
    expect("pool", kvca_pool_new(2, 1, &params, &pool), KVCA_OK);
    expect("owner", kvca_pool_owner_claim(pool, 7, &owner), KVCA_OK);
    (void)row;
    (void)memory;
    (void)info;
    (void)error;
@CHECKS@
    kvca_policy_free(other_policy);
    kvca_policy_free(policy);
    kvca_pool_free(other_pool);
    kvca_pool_free(pool);
    return failed;
}
"""

# How each function that takes a structure is called so that it returns KVCA_OK.
CALLS = {
    "kvca_params_validate": "&params",
    "kvca_policy_new": "&params, &other_policy",
    "kvca_ranks_validate": "&ranks, &row",
    "kvca_select": "policy, &ranks, &selection",
    "kvca_tie_set": "policy, &ranks, NULL, 0, &selection",
    "kvca_explain": "&params, &ranks, &selection, 0, &explanation",
    "kvca_pool_explain": "pool, &request, NULL, &selection, 0, &explanation",
    "kvca_pool_init": "memory, sizeof memory, 2, 1, &params, &other_pool",
    "kvca_pool_new": "2, 1, &params, &other_pool",
    "kvca_pool_set_params": "pool, &params",
    "kvca_pool_put": "pool, &rank, &put",
    "kvca_pool_owner_at": "pool, 0, &info",
    "kvca_pool_place": "pool, owner, &request, &booking, &selection",
    "kvca_pool_snapshot": "pool, buffer, sizeof buffer, &snapshot",
    "kvca_config_load_buffer": '"{}", 2, "-", KVCA_ROLE_DECODE, &params, &error',
    "kvca_config_load_file": '"@POLICY@", KVCA_ROLE_DECODE, &params, &error',
}
# Each takes a size beside its structure.
OTHER_CALLS = {"kvca_params_init"}
# What a call made is freed before the next one makes another.
CLEAR = {"kvca_policy_new": "kvca_policy_free(other_policy); other_policy = NULL;",
         "kvca_pool_new": "kvca_pool_free(other_pool); other_pool = NULL;",
         "kvca_pool_init": "other_pool = NULL;"}


class Tried:
    """Counts what is tried, and tells what failed."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, passed, what):
        self.passed += bool(passed)
        self.failed += not passed
        if not passed:
            print(what)


def run(command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)


def must_run(command, **options):
    done = run(command, **options)
    if done.returncode != 0:
        sys.exit(" ".join(map(str, command)) + "\n" + done.stdout)
    return done.stdout


def grow(root, folder):
    """A copy of the sources in which each structure has another field."""
    for part in ("include", "src"):
        shutil.copytree(root / part, folder / part)
    grown = set()
    for path in (folder / "include/kvca").glob("*.h"):
        text = path.read_text(encoding="utf-8")
        for name in set(headers.STRUCT.findall(text)):
            if name[0] not in FINAL:
                text = text.replace("} " + name[0] + ";", f"    {FIELD}\n}} {name[0]};")
                grown.add(name[0])
        path.write_text(text, encoding="utf-8")
    return grown


def build_library(cc, root, library):
    parts = (".", "rule", "vector", "policy", "pool", "config")
    sources = [path for part in parts for path in (root / "src" / part).glob("*.c")]
    must_run([*cc, "-std=c11", "-O1", "-ffp-contract=off", "-D_DEFAULT_SOURCE", "-fPIC", "-shared",
              "-Wl,-soname," + library.name,
              f"-Wl,--version-script={root / 'src/kvca.map'}",
              "-I", root / "include", "-I", root / "src", *sources, *LIBRARIES, "-o", library])


def build_program(cc, root, source, library, program):
    must_run([*cc, "-std=c11", "-D_DEFAULT_SOURCE", "-pthread", "-I", root / "include", source, "-L", library, "-lkvca",
              *LIBRARIES, "-o", program])


def meet(program, library, *arguments):
    """What a program does with a library."""
    done = run([program, *arguments], env=dict(os.environ, LD_LIBRARY_PATH=str(library)))
    return done.returncode, done.stdout


def parameters(read):
    """(function, [(const, structure, argument)]) of each function that takes a structure with a size."""
    sized = {name for header in read for name in header.structs} - FINAL
    for header in read:
        for name, declaration in header.functions.items():
            taken = re.findall(r"(const )?(kvca_\w+) \*(?!\*)(\w+)", declaration[declaration.index("("):])
            found = [(bool(const), struct) for const, struct, _ in taken if struct in sized]
            if found:
                yield name, found


def variables(call):
    return re.findall(r"&(params|ranks|selection|explanation|rank|put|info|request|snapshot|error)\b", call)


def checks(read, tried, sizes):
    """The lines that hand in what is refused: wrong sizes, or a field that the library does not know."""
    for function, taken in parameters(read):
        if function in OTHER_CALLS:
            continue
        tried.check(function in CALLS, f"{function}: growth.py does not know how to call it")
        call = CALLS.get(function, "")
        handed = variables(call)
        tried.check(len(handed) == len(taken), f"{function}: takes {taken}, and is given {handed}")
        clear = CLEAR.get(function, "")
        yield f'    expect("{function}", {function}({call}), KVCA_OK); {clear}'
        for (const, struct), variable in zip(taken, handed):
            if sizes:
                for size in ("0", "sizeof " + variable + " - 1", "4097", "SIZE_MAX"):
                    yield (f"    {variable}.size = {size};\n"
                           f'    expect("{function}, {variable}.size = {size}", {function}({call}), KVCA_ERR_SIZE);\n'
                           f"    {variable}.size = sizeof {variable};")
            elif const:
                yield (f"    {variable}.grown = 1;\n"
                       f'    expect("{function}, {variable}.grown", {function}({call}), KVCA_ERR_SIZE);\n'
                       f"    {variable}.grown = 0;")
            else:
                left = 1 if struct == "kvca_error" else 0  # which is not written where there is none
                same = f"{variable}.grown == {left} && {variable}.size == sizeof {variable}"
                yield (f"    {variable}.grown = 1;\n"
                       f'    expect("{function}, {variable}", {function}({call}), KVCA_OK); {clear}\n'
                       f'    expect("{function}, what is not known in {variable}", '
                       f"({same}) ? KVCA_OK : KVCA_ERR_SIZE, KVCA_OK);\n"
                       f"    {variable}.grown = 0;")
    if sizes:
        for size in ("0", "sizeof params - 1", "4097", "SIZE_MAX"):
            yield f'    expect("kvca_params_init, {size}", kvca_params_init(&params, {size}), KVCA_ERR_SIZE);'
    yield '    expect("kvca_params_init", kvca_params_init(&params, sizeof params), KVCA_OK);'
    yield '    expect("its size", (kvca_status)(params.size == sizeof params ? 0 : 1), KVCA_OK);'


def check_rule(read, tried):
    """What the headers say of sizes."""
    taken = {struct for _, found in parameters(read) for _, struct in found}
    for header in read:
        for name, fields in header.structs.items():
            sized = fields[0] == ("size_t", "size")
            tried.check(sized != (name in FINAL), f"{name} begins with {fields[0]}; only a final layout has no size")
            tried.check(name in taken | FINAL | HANDED_OUT, f"{name}: no function takes it")
            for kind, field in fields:
                tried.check(kind not in taken | HANDED_OUT, f"{name}.{field} has a structure in it that may grow")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, type=pathlib.Path, help="the folder of today's library")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("cc", nargs="+")
    options = parser.parse_args()
    root, cc, tried = options.root.resolve(), options.cc, Tried()
    paths = sorted((root / "include/kvca").glob("*.h"))
    read = [headers.read(path) for path in paths]
    check_rule(read, tried)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        later = folder / "later"
        grown = grow(root, later)
        tried.check(grown == {name for header in read for name in header.structs} - FINAL, f"grown: {grown}")
        now = {"": options.library.resolve(), "later": folder / "later_library"}
        now["later"].mkdir()
        soname = must_run(["readelf", "-d", now[""] / "libkvca.so"])
        soname = re.search(r"soname: \[(.*)\]", soname)[1]
        build_library(cc, later, now["later"] / soname)
        (now["later"] / "libkvca.so").symlink_to(soname)
        router = root / "docs/examples/router.c"
        policy = root / "docs/examples/policy.yaml"
        build_program(cc, root, router, now[""], folder / "router")
        build_program(cc, later, router, now["later"], folder / "later_router")
        expected = meet(folder / "router", now[""], policy)
        tried.check(expected[0] == 0, expected)
        for program, library in (("router", "later"), ("later_router", ""), ("later_router", "later")):
            got = meet(folder / program, now[library], policy)
            tried.check(got == expected, f"{program} with {library or 'today'}:\n{got}\nexpected\n{expected}")
        for program, sources, library, sizes in (("sizes", root, "", True), ("sizes_later", root, "later", True),
                                                 ("fields", later, "", False)):
            source = folder / (program + ".c")
            lines = "\n".join(checks(read, tried, sizes)).replace("@POLICY@", str(policy))
            source.write_text(PROGRAM.replace("@CHECKS@", lines), encoding="utf-8")
            build_program(cc, sources, source, now[""], folder / program)
            status, output = meet(folder / program, now[library])
            tried.check(status == 0, f"{program}: status {status}\n{output}")
    print(f"{tried.passed} passed, {tried.failed} failed")
    return 1 if tried.failed else 0


if __name__ == "__main__":
    sys.exit(main())
