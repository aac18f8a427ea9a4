#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loop of router.c in Python, by ctypes: nothing is built.

    python3 router.py policy.yaml

The first part wraps what a router needs of the library and can be taken as it is. Its structures are those of the
headers of kvca 0.2, whose library it asks for by name; their sizes tell them from those of a later version.
"""
import ctypes
import os
import sys
import threading
import weakref
from collections import deque
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass

KVCA_OK, KVCA_NOT_SELECTED, KVCA_STALE, KVCA_NONE_FITS = 0, 35, 50, 52
KVCA_ROLE_DECODE = 0
KVCA_REASON_TIED, KVCA_REASON_DOES_NOT_FIT, KVCA_REASON_MORE_REQUESTS = 0, 1, 2
KVCA_REASON_HIGHER_COST, KVCA_REASON_MORE_BLOCKS = 3, 4


class Sized(ctypes.Structure):
    """A structure that begins with its size."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **fields)


class kvca_params(Sized):
    _fields_ = [("size", c_size_t), ("capacity_fraction", c_double), ("decode_active_request_weight", c_double),
                ("capacity_blocks", c_uint64), ("count_priority", c_bool)]


class kvca_error(Sized):
    _fields_ = [("size", c_size_t), ("status", c_int), ("line", c_size_t), ("column", c_size_t), ("message", c_char * 1024)]


class kvca_ranks(Sized):
    _fields_ = [("size", c_size_t), ("count", c_size_t), ("worker_id", POINTER(c_uint64)), ("dp_rank", POINTER(c_uint32)),
                ("decode_cost_blocks", POINTER(c_uint64)), ("active_requests", POINTER(c_uint64)),
                ("total_kv_blocks", POINTER(c_uint64)), ("preferred_taint_multiplier", POINTER(c_double)),
                ("request_blocks", c_uint64)]


class kvca_selection(Sized):
    _fields_ = [("size", c_size_t), ("row", c_size_t), ("outcome", c_int), ("fits", c_size_t), ("ties", c_size_t),
                ("unknown_capacity", c_size_t)]


class kvca_explanation(Sized):
    _fields_ = [("size", c_size_t), ("decode_cost_blocks", c_uint64), ("active_requests", c_uint64), ("capacity", c_uint64),
                ("capacity_source", c_int), ("limit", c_uint64), ("fits", c_bool), ("cost", c_double),
                ("reason", c_int)]


class kvca_rank(Sized):
    _fields_ = [("size", c_size_t), ("worker_id", c_uint64), ("dp_rank", c_uint32), ("total_kv_blocks", c_uint64)]


class kvca_put(Sized):
    _fields_ = [("size", c_size_t), ("slot", c_uint32), ("generation", c_uint32), ("added", c_bool), ("unknown_capacity", c_bool)]


class kvca_request(Sized):
    _fields_ = [("size", c_size_t), ("blocks", c_uint64), ("eligible", POINTER(c_uint64)),
                ("preferred_taint_multiplier", POINTER(c_double)), ("only_if_fits", c_bool)]


class kvca_booking(ctypes.Structure):
    _fields_ = [("slot", c_uint32), ("generation", c_uint32), ("owner", c_uint64), ("blocks", c_uint64)]


class kvca_counters(Sized):
    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in ("placed", "fallbacks", "none", "stale", "voided")]


class kvca_snapshot(Sized):
    _fields_ = [("size", c_size_t), ("count", c_size_t), ("ranks", POINTER(kvca_ranks)), ("slot", POINTER(c_uint32)),
                ("counters", POINTER(kvca_counters)), ("params", POINTER(kvca_params))]


class Error(Exception):
    """A status of the library that is not KVCA_OK."""

    def __init__(self, status, message=None):
        super().__init__(message or LIBRARY.kvca_strerror(status).decode())
        self.status = status


def check(status, _function, _arguments):
    if status != KVCA_OK:
        raise Error(status)


def load_library():
    """The library, with the types of its functions. Those that answer a status raise an Error instead."""
    library = ctypes.CDLL("libkvca.so.0.2")
    for name, result, *arguments in (
        ("kvca_strerror", c_char_p, c_int),
        ("kvca_policy_free", None, c_void_p),
        ("kvca_pool_free", None, c_void_p),
        ("kvca_pool_snapshot_bytes", c_size_t, c_void_p),
        ("kvca_config_load_file", c_int, c_char_p, c_int, POINTER(kvca_params), POINTER(kvca_error)),
        ("kvca_policy_new", check, POINTER(kvca_params), POINTER(c_void_p)),
        ("kvca_explain", check, c_void_p, POINTER(kvca_ranks), POINTER(kvca_selection), c_size_t,
         POINTER(kvca_explanation)),
        ("kvca_pool_new", check, c_uint32, c_uint32, POINTER(kvca_params), POINTER(c_void_p)),
        ("kvca_pool_owner_claim", check, c_void_p, c_uint64, POINTER(c_uint64)),
        ("kvca_pool_set_seed", check, c_void_p, c_uint64),
        ("kvca_pool_put", check, c_void_p, POINTER(kvca_rank), POINTER(kvca_put)),
        ("kvca_pool_place", check, c_void_p, c_uint64, POINTER(kvca_request), POINTER(kvca_booking),
         POINTER(kvca_selection)),
        ("kvca_pool_release", check, c_void_p, POINTER(kvca_booking)),
        ("kvca_pool_snapshot", check, c_void_p, c_void_p, c_size_t, POINTER(kvca_snapshot)),
    ):
        function = getattr(library, name)
        function.argtypes = arguments
        if result is check:
            function.restype, function.errcheck = c_int, check
        else:
            function.restype = result
    return library


LIBRARY = load_library()


def load_policy(path, role=KVCA_ROLE_DECODE):
    params, error = kvca_params(), kvca_error()
    status = LIBRARY.kvca_config_load_file(os.fsencode(path), role, byref(params), byref(error))
    if status != KVCA_OK:
        raise Error(status, error.message.decode(errors="replace"))
    return params


class Snapshot:
    """The ranks of a pool as they were at one moment."""

    def __init__(self, pool):
        size = LIBRARY.kvca_pool_snapshot_bytes(pool)
        self._columns = (c_uint64 * (size // 8 + 1))()  # what the pointers lead to: they live as long as it does
        self._told = kvca_snapshot()
        LIBRARY.kvca_pool_snapshot(pool, self._columns, size, byref(self._told))

    def explain(self, blocks, selection):
        """(worker_id, dp_rank, picked, kvca_explanation) of each rank, for a request that was placed next."""
        told = self._told.ranks.contents
        columns = ("count", "worker_id", "dp_rank", "decode_cost_blocks", "active_requests", "total_kv_blocks")
        ranks = kvca_ranks(request_blocks=blocks, **{name: getattr(told, name) for name in columns})
        rows = kvca_selection.from_buffer_copy(selection)
        rows.row = self._told.slot[:ranks.count].index(selection.row)  # a pool tells slots
        policy = c_void_p()
        LIBRARY.kvca_policy_new(self._told.params, byref(policy))
        try:
            for row in range(ranks.count):
                told = kvca_explanation()
                LIBRARY.kvca_explain(policy, byref(ranks), byref(rows), row, byref(told))
                yield ranks.worker_id[row], ranks.dp_rank[row], row == rows.row, told
        finally:
            LIBRARY.kvca_policy_free(policy)


class Pool:
    """The ledger of one process, for any number of threads: ctypes lets them run during a call, hence the lock."""

    def __init__(self, max_ranks, params):
        self._lock = threading.Lock()
        self._pool = c_void_p()
        self._owner = c_uint64()
        LIBRARY.kvca_pool_new(max_ranks, 1, byref(params), byref(self._pool))
        self._free = weakref.finalize(self, LIBRARY.kvca_pool_free, self._pool)
        LIBRARY.kvca_pool_owner_claim(self._pool, 0, byref(self._owner))

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        with self._lock:
            self._free()
            self._pool = None  # a later call is told KVCA_ERR_NULL

    def set_seed(self, seed):
        """For draws that can be repeated; a router leaves it out."""
        with self._lock:
            LIBRARY.kvca_pool_set_seed(self._pool, seed)

    def put(self, worker_id, dp_rank, total_kv_blocks):
        rank, put = kvca_rank(worker_id=worker_id, dp_rank=dp_rank, total_kv_blocks=total_kv_blocks), kvca_put()
        with self._lock:
            LIBRARY.kvca_pool_put(self._pool, byref(rank), byref(put))
        return put

    def place(self, blocks, explain=False):
        """(booking, selection, Snapshot before it or None), or None while no rank has room."""
        request = kvca_request(blocks=blocks, only_if_fits=True)
        booking, selection = kvca_booking(), kvca_selection()
        with self._lock:
            before = Snapshot(self._pool) if explain else None
            try:
                LIBRARY.kvca_pool_place(self._pool, self._owner, byref(request), byref(booking), byref(selection))
            except Error as error:
                if error.status == KVCA_NONE_FITS:
                    return None
                raise
        return booking, selection, before

    def release(self, booking):
        with self._lock:
            try:
                LIBRARY.kvca_pool_release(self._pool, byref(booking))
            except Error as error:
                if error.status != KVCA_STALE:  # stale: its rank was dropped meanwhile, the booking with it
                    raise


REQUESTS = 100
LISTED = 10
MOST_IN_FLIGHT = 16
VERDICTS = {
    KVCA_REASON_TIED: "as good as the pick",
    KVCA_REASON_DOES_NOT_FIT: "does not fit",
    KVCA_REASON_MORE_REQUESTS: "more requests",
    KVCA_REASON_HIGHER_COST: "higher cost",
    KVCA_REASON_MORE_BLOCKS: "more blocks",
}


def request_blocks(number):
    """Made-up traffic: every tenth prompt is a long one."""
    return 600 if number % 10 == 0 else 40 + number * 37 % 100


@dataclass
class Rank:
    """What was sent to a rank."""
    name: str
    requests: int = 0
    blocks: int = 0


class Router:
    def __init__(self, pool):
        self.pool = pool
        self.ranks = {}  # by slot
        self.in_flight = deque()
        self.waits = 0

    def add(self, worker_id, dp_rank, total_kv_blocks):
        put = self.pool.put(worker_id, dp_rank, total_kv_blocks)
        rank = self.ranks[put.slot] = Rank(f"worker {worker_id}, dp_rank {dp_rank}")
        if put.unknown_capacity:
            print(f"{rank.name}: no known capacity, so it is never found full", file=sys.stderr)

    def place(self, blocks, explain):
        """While no rank has room it waits for requests to end. With none left to wait for, the request is too large."""
        while not (placed := self.pool.place(blocks, explain)):
            if not self.in_flight:
                raise Error(KVCA_NONE_FITS)
            self.waits += 1
            self.pool.release(self.in_flight.popleft())
        return placed

    def serve(self, number):
        if len(self.in_flight) == MOST_IN_FLIGHT:
            self.pool.release(self.in_flight.popleft())
        blocks = request_blocks(number)
        booking, selection, before = self.place(blocks, explain=number == 0)
        self.in_flight.append(booking)
        if before:
            print_decision(list(before.explain(blocks, selection)), selection)
        rank = self.ranks[booking.slot]
        rank.requests += 1
        rank.blocks += blocks
        if number < LISTED:
            print(f"request {number}, {blocks} blocks: {rank.name}")

    def end_all(self):
        while self.in_flight:
            self.pool.release(self.in_flight.popleft())

    def report(self):
        print(f"{REQUESTS} requests placed, {self.waits} waits for room")
        for rank in self.ranks.values():
            print(f"  {rank.name}: {rank.requests} requests, {rank.blocks} blocks")


def print_decision(rows, selection):
    print(f"{selection.fits} of {len(rows)} ranks have room for the first request, {selection.ties} are equally good:")
    for worker_id, dp_rank, picked, told in rows:
        verdict = "picked" if picked else VERDICTS[told.reason]
        print(f"  worker {worker_id}, dp_rank {dp_rank}: {told.decode_cost_blocks} of {told.limit} blocks, "
              f"{told.active_requests} requests: {verdict}")


def run(params):
    with Pool(3, params) as pool:
        pool.set_seed(1)  # for output that can be compared
        router = Router(pool)
        router.add(7, 0, 1000)
        router.add(7, 1, 1000)
        router.add(8, 0, 500)
        for number in range(REQUESTS):
            router.serve(number)
        router.end_all()
        router.report()


def main():
    if len(sys.argv) != 2:
        print("usage: router POLICY", file=sys.stderr)
        return 2
    try:
        run(load_policy(sys.argv[1]))
    except Error as error:
        print(error, file=sys.stderr)
        return 0 if error.status == KVCA_NOT_SELECTED else 1  # the policy leaves the pool to the router's own selector
    return 0


if __name__ == "__main__":
    sys.exit(main())
