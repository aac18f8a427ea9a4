# SPDX-License-Identifier: Apache-2.0
"""For the tests of the interface and of the manual: reads the declarations of the public headers as text, and the
exports of the library.
"""
import pathlib
import re
import subprocess
from dataclasses import dataclass, field

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"^KVCA_API ([^;]*?\b(\w+)\([^;]*\));", re.M)
STRUCT = re.compile(r"^typedef struct (\w+) \{(.*?)^\} \1;", re.M | re.S)
ENUM = re.compile(r"^typedef enum (\w+) \{(.*?)^\} \1;", re.M | re.S)
OTHER_TYPE = re.compile(r"^typedef (?!struct \w+ \{|enum )([^;]*);", re.M)
MACRO = re.compile(r"^#define (KVCA_\w+)(?: +(.*))?$", re.M)
FIELD = re.compile(r"(.*?)\b(\w+)(\[\w+\])?")
# Not for users, or changed in every release.
OTHER_MACROS = re.compile(r"KVCA_(API|\w+_H|VERSION.*)")


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


@dataclass
class Header:
    """Names are in the order of the header. Types and declarations are as written there, without comments."""
    name: str
    functions: dict = field(default_factory=dict)  # name: declaration
    structs: dict = field(default_factory=dict)  # name: [(type, field)]; an array's bounds are part of its type
    enums: dict = field(default_factory=dict)  # name: {value's name: value}
    types: list = field(default_factory=list)
    macros: dict = field(default_factory=dict)  # name: text


def read_fields(body):
    """("char[1024]", "message") for each field."""
    for declaration in filter(None, map(one_line, body.split(";"))):
        kind, name, bounds = FIELD.fullmatch(declaration).groups(default="")
        yield one_line(kind) + bounds, name


def read_values(body):
    for value in filter(None, map(one_line, body.split(","))):
        name, number = value.split(" = ")
        yield name, int(number)


def read(path):
    text = COMMENT.sub("", pathlib.Path(path).read_text(encoding="utf-8"))
    header = Header(pathlib.Path(path).name)
    header.functions = {name: one_line(declaration) for declaration, name in FUNCTION.findall(text)}
    header.structs = {name: list(read_fields(body)) for name, body in STRUCT.findall(text)}
    header.enums = {name: dict(read_values(body)) for name, body in ENUM.findall(text)}
    header.types = [one_line(declaration) for declaration in OTHER_TYPE.findall(text)]
    header.macros = {name: value.strip() for name, value in MACRO.findall(text) if not OTHER_MACROS.fullmatch(name)}
    read_whole = (len(re.findall(r"^typedef ", text, re.M)), len(re.findall(r"^KVCA_API ", text, re.M))) == (
        len(header.structs) + len(header.enums) + len(header.types), len(header.functions))
    if not read_whole:
        raise ValueError(f"{path}: a declaration has a form that {__file__} does not read")
    return header


def read_map(path):
    """The functions that the version script names."""
    return set(re.findall(r"^\s+(\w+);", pathlib.Path(path).read_text(encoding="utf-8"), re.M))


def read_symbols(nm, *arguments):
    """What a library defines: {"kvca_select": "kvca_select@@KVCA_0.1"}, without the names of the versions."""
    table = subprocess.run([nm, "--defined-only", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout
    symbols = [line.split() for line in table.splitlines()]
    return {symbol[2].split("@")[0]: symbol[2] for symbol in symbols if len(symbol) == 3 and symbol[1] != "A"}
