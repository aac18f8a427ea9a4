#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples in Python and Rust repeat structures and constants of the headers, and they must be the same:
mirrors.py ROUTER_PY ROUTER_RS HEADER... (Importing the first one loads the library, so the loader must find it.)
"""
import ctypes
import importlib.util
import pathlib
import re
import sys

import headers

SIMPLE = {  # C: (Python, Rust)
    "bool": (ctypes.c_bool, "bool"),
    "char": (ctypes.c_char, "c_char"),
    "double": (ctypes.c_double, "f64"),
    "size_t": (ctypes.c_size_t, "usize"),
    "uint32_t": (ctypes.c_uint32, "u32"),
    "uint64_t": (ctypes.c_uint64, "u64"),
    "kvca_owner": (ctypes.c_uint64, "u64"),
    "kvca_status": (ctypes.c_int, "kvca_status"),
}
RUST_STRUCT = re.compile(r"pub struct (kvca_\w+) \{(.*?)\}", re.S)
RUST_FIELD = re.compile(r"pub (\w+): (.*),")
RUST_CONSTANT = re.compile(r"const (KVCA_\w+): \w+ = (\d+);")


def import_example(path):
    spec = importlib.util.spec_from_file_location("example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def array(kind):
    """("char", 1024) for "char[1024]"."""
    found = re.fullmatch(r"(.*)\[(\d+)\]", kind)
    return (found[1], int(found[2])) if found else None


def in_rust(kind, enums):
    if array(kind):
        return "[{}; {}]".format(in_rust(array(kind)[0], enums), array(kind)[1])
    if kind.endswith(" *"):
        return "*const " + in_rust(kind[len("const "):-2], enums)
    if kind in SIMPLE:
        return SIMPLE[kind][1]
    return "c_int" if kind in enums else kind


def in_python(kind, enums, module):
    if array(kind):
        return in_python(array(kind)[0], enums, module) * array(kind)[1]
    if kind.endswith(" *"):
        return ctypes.POINTER(in_python(kind[len("const "):-2], enums, module))
    if kind in SIMPLE:
        return SIMPLE[kind][0]
    return ctypes.c_int if kind in enums else getattr(module, kind, kind)


def read_python(path, structs, enums):
    """What the example has, and what it should have there."""
    module = import_example(path)
    has, should = {}, {}
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, ctypes.Structure) and "_fields_" in vars(value):
            has[name] = [(kind, field) for field, kind in value._fields_]
        elif name.startswith("KVCA_"):
            has[name] = value
    for name, fields in structs.items():
        should[name] = [(in_python(kind, enums, module), field) for kind, field in fields]
    return has, should


def read_rust(path, structs, enums):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    has = {name: int(value) for name, value in RUST_CONSTANT.findall(text)}
    for name, body in RUST_STRUCT.findall(text):
        has[name] = [(kind, field) for field, kind in RUST_FIELD.findall(body)]
    should = {name: [(in_rust(kind, enums), field) for kind, field in fields] for name, fields in structs.items()}
    return has, should


def main():
    python, rust, *paths = sys.argv[1:]
    structs, enums = {}, {}
    for path in paths:
        header = headers.read(path)
        structs.update(header.structs)
        enums.update(header.enums)
    values = {name: value for values in enums.values() for name, value in values.items()}
    faults = []
    for path, read in ((python, read_python), (rust, read_rust)):
        has, should = read(path, structs, enums)
        should.update(values)
        faults += [f"{path}: {name} is\n  {value}\nbut in the headers\n  {should.get(name)}"
                   for name, value in has.items() if value != should.get(name)]
        faults += [] if has else [f"{path}: nothing found"]
        print(f"{path}: {len(has)} structures and constants")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
