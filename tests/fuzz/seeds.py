#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for the fuzz targets: FOLDER/<target>/<name>.

policy, ranks and selection: the cases of tests/vectors/. pool: the programs below, in the bytes of pool.c, of the
model's steps and of bytes.c. This reads only as much YAML as the vectors use.
"""
import json
import re
import struct
import sys
from pathlib import Path

ANY_BITS = (1 << 64) - 1  # a choice among this many takes eight bytes


def scalar(text):
    if text in ("null", "~"):
        return None
    if text in ("true", "false"):
        return text == "true"
    return int(text, 0) if re.fullmatch(r"\d+|0x[0-9a-fA-F]+", text) else float(text)


def mapping(text):
    """A mapping of scalars on one line: {a: 1, b: null}."""
    pairs = (pair.split(":", 1) for pair in text.strip().strip("{}").split(",") if pair.strip())
    return {key.strip(): scalar(value.strip()) for key, value in pairs}


def cases(path):
    name, lines = None, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("- name: "):
            if name:
                yield name, lines
            name, lines = line.removeprefix("- name: ").strip(), []
        elif name and not line.startswith("#"):
            lines.append(line)
    if name:
        yield name, lines


def policy_seeds(vectors):
    for name, lines in cases(vectors / "config.yaml"):
        for line in lines:
            if line.startswith("  text: \""):
                yield name, json.loads(line.removeprefix("  text: ").strip()).encode("utf-8", "surrogatepass")


def read_selection(lines):
    """Parameters, the request's blocks, ranks."""
    params, blocks, ranks = {}, 0, []
    for line in lines:
        if line.startswith("  parameters: "):
            params = mapping(line.removeprefix("  parameters: "))
        elif line.startswith("  request_blocks: "):
            blocks = scalar(line.removeprefix("  request_blocks: ").strip())
        elif line.startswith("    - {"):
            ranks.append(line.strip().removeprefix("- "))
    return params, blocks, ranks


def ranks_seeds(vectors):
    for name, lines in cases(vectors / "selection.yaml"):
        _, blocks, ranks = read_selection(lines)
        text = f"request_blocks: {blocks}\nranks:\n" + "".join(f"  - {rank}\n" for rank in ranks)
        yield name, text.encode()


def any_integer(value):
    return bytes([3 + 4 * 7]) + struct.pack("<Q", value)


def any_double(value):
    return bytes([3]) + struct.pack("<d", value)


def selection_seed(params, blocks, ranks):
    """In the form that selection.c reads."""
    form, values = 0, b""
    fraction = params.get("capacity_fraction", 1.0)
    form |= 0 if params.get("count_priority", True) else 1
    form |= 4 if fraction is None else 2
    values += b"" if fraction is None else any_double(fraction)
    form |= 16 | 32
    values += any_double(params.get("decode_active_request_weight", 0.0))
    values += any_integer(params.get("capacity_blocks") or 0)
    seed = bytes([form]) + values + bytes([0, 0]) + any_integer(blocks)
    for rank in map(mapping, ranks):
        seed += bytes([1 | 2 | 4 | 8 | 16])
        seed += any_integer(rank["decode_cost_blocks"]) + any_integer(rank["active_requests"])
        seed += any_integer(rank.get("total_kv_blocks") or 0)
        seed += any_double(rank.get("preferred_taint_multiplier", 1.0))
    return seed


def selection_seeds(vectors):
    for name, lines in cases(vectors / "selection.yaml"):
        yield name, selection_seed(*read_selection(lines))
    for count in (2, 7, 8, 9, 63, 64, 65, 71, 72, 73, 127, 128, 129, 199, 200):
        alike = bytes([1 | 2 | 32, count - 2, 9, 1]) if count > 2 else bytes([1 | 2, 9, 1])
        yield f"the_last_of_{count}_ranks_is_best", bytes([0, 0, 1, 0]) + alike + bytes([1, 8])
    yield "as_many_ranks_as_there_can_be", bytes([0, 0, 1, 0, 1 | 2 | 32, 199, 8, 1])


class Program:
    """A program for a pool. Slots are given by their index in the list of sizes in pool.c, variants from the fastest
    on.
    """

    MOVE, ATTACH_TO_LESS, REPAIR, SCRIBBLE, MANY = range(5)
    PUT, DRAIN, DROP, CLAIM, VOID, PARAMS, PLACE, GROW, RELEASE, FORGED, TIES, AGAIN = (
        0, 6, 8, 9, 13, 14, 16, 63, 75, 95, 97, 99)

    def __init__(self, slots=0, large=False, variant=0):
        self.large = large
        self.bytes = b""
        self.choose(8 * variant + slots, 24).choose(int(large), 2)

    def choose(self, value, n):
        width = 0 if n <= 1 else 1 if n <= 0x100 else 2 if n <= 0x10000 else 8
        self.bytes += value.to_bytes(width, "little")
        return self

    def own(self, step):
        return self.choose(step, 32)

    def step(self, step):
        return self.choose(31, 32).choose(step, 100)

    def amount(self, value, most):
        if self.large and value >= most:
            return self.choose(0, 4).choose(64 - value.bit_length(), 64).choose(0, 3)
        return (self.choose(1, 4) if self.large else self).choose(value, most)

    def put(self, identity, capacity=0):
        self.step(self.PUT).choose(identity, 10).choose(int(capacity > 0), 4)
        return self.amount(capacity - 20, 80) if capacity > 0 else self

    def drain(self, identity):
        return self.step(self.DRAIN).choose(identity, 10)

    def drop(self, identity):
        return self.step(self.DROP).choose(identity, 10)

    def claim(self):
        return self.step(self.CLAIM)

    def void(self, owner):
        return self.step(self.VOID).choose(owner, 3)

    def params(self, fraction, by_count, weight, capacity):
        self.step(self.PARAMS).choose(fraction, 4).choose(0 if by_count else 1, 2)
        return self.choose(weight, 3).choose(capacity, 2)

    def place(self, booking, blocks, owner=0, only_if_fits=False, eligible=None, multipliers=None):
        self.step(self.PLACE).choose(owner, 3).choose(booking, 40).amount(blocks, 30)
        self.choose(0 if only_if_fits else 1, 2)
        self.choose(1 if eligible is None else 0, 2)
        for word in eligible or ():
            self.choose(word, ANY_BITS)
        self.choose(1 if multipliers is None else 0, 2)
        return self if multipliers is None else self.choose(multipliers, ANY_BITS).choose(1, 16)

    def grow(self, booking, blocks):
        return self.step(self.GROW).choose(booking, 40).amount(blocks, 5)

    def release(self, booking):
        return self.step(self.RELEASE).choose(booking, 40)

    def forged(self, booking, kind):
        return self.step(self.FORGED).choose(booking, 40).choose(kind, 4)


def pool_seeds():
    def two_ranks(**options):
        return Program(**options).claim().put(0, 60).put(1, 40)

    yield "placed_grown_released", two_ranks().place(0, 10).place(1, 20).grow(0, 3).release(0).release(1).release(0)
    yield "none_fits", two_ranks().place(0, 29).place(1, 29).place(2, 29, only_if_fits=True).place(2, 29)
    yield "drained_and_dropped", two_ranks().place(0, 5).place(1, 5).drain(0).drop(1).release(0).release(1).put(0, 50)
    yield "two_owners_one_voided", two_ranks().claim().place(0, 5).place(1, 6, owner=1).void(0).release(0).release(1)
    yield "bookings_that_were_not_made", two_ranks().place(0, 5).forged(0, 0).forged(0, 1).forged(0, 2).forged(0, 3)
    yield "released_twice", two_ranks().place(0, 5).release(0).step(Program.AGAIN).drop(0).drop(1).step(Program.AGAIN)
    yield "some_slots_eligible", two_ranks().place(0, 5, eligible=(2, 0)).place(1, 5, eligible=(0, 0), multipliers=9)
    yield "parameters_change", two_ranks().place(0, 25).params(0, False, 2, 1).place(1, 25).params(3, True, 0, 0)
    yield "no_capacity_known", Program().claim().put(0).put(2, 30).place(0, 29).place(1, 29).step(Program.TIES)
    yield "sums_near_the_largest", (two_ranks(large=True).place(0, ANY_BITS).place(1, ANY_BITS).place(2, 1)
                                    .grow(0, 1).release(0).release(1).release(2))
    yield "capacity_near_the_largest", (two_ranks(large=True).put(2, 20 + (1 << 63)).place(0, 1 << 62)
                                        .place(1, 1 << 62))
    one = Program().claim().put(0, 90)
    for booking in range(5):
        one.place(booking, 7 * booking)
    for booking in range(5):
        one.grow(booking, booking).release(booking)
    yield "many_requests_on_one_rank", one
    for slots in range(8):
        for variant in range(3):
            many = Program(slots=slots, variant=variant).claim()
            many.own(Program.MANY).choose(variant, 256).choose(1, 2).choose(500, 512)
            for seed in range(4):
                many.own(Program.MANY).choose(seed, 256).choose(0, 2).choose(60, 64)
            yield f"many_steps_{slots}_{variant}", many.step(Program.TIES)
    yield "moved", two_ranks().place(0, 5).own(Program.MOVE).place(1, 5).own(Program.MOVE).release(0)
    yield "attached_to_less", two_ranks().own(Program.ATTACH_TO_LESS).choose(64, 1000).choose(0, 7)
    yield "repaired", two_ranks().place(0, 5).drain(1).own(Program.REPAIR).choose(1, 2).place(1, 5)
    words = {1: "layout", 20: "dirty", 22: "slot_to_repair", 43: "slots_in_use", 44: "first_free_slot"}
    for word, name in words.items():
        scribbled = two_ranks().place(0, 5).own(Program.SCRIBBLE).choose(0, 3).choose(word, 52)
        scribbled.bytes += bytes([4 * 63, 0, 0, 5, 0])  # the word becomes 63; then a put of a rank that is not there
        yield "scribbled_on_" + name, scribbled


def main():
    folder, vectors = Path(sys.argv[1]), Path(sys.argv[2])
    seeds = {
        "policy": policy_seeds(vectors),
        "ranks": ranks_seeds(vectors),
        "selection": selection_seeds(vectors),
        "pool": ((name, program.bytes) for name, program in pool_seeds()),
    }
    for target, named in seeds.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, content in named:
            (folder / target / name).write_bytes(content)
    (folder / "trace").mkdir(exist_ok=True)
    folder.with_suffix(".stamp").touch()


main()
