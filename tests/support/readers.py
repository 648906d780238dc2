"""The readers and the openers in source code.

A reader takes a text apart, in time that may grow faster than the text does, or raises on it. An opener opens, makes, moves or
removes a file or a folder. Calls are found by the names of the standard library, methods by their names, since few others
have them, and what is handed on, as in `map(int, words)`. A number, and a pattern that is written out, is no text.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

OF_MODULES = {
    "ast": {"literal_eval", "parse", "unparse"},
    "difflib": {"Differ", "SequenceMatcher", "context_diff", "get_close_matches", "ndiff", "unified_diff"},
    "fnmatch": {"filter", "fnmatch", "fnmatchcase", "translate"},
    "json": {"JSONDecoder", "JSONEncoder", "dump", "dumps", "load", "loads"},
    "re": {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"},
    "shlex": {"shlex", "split"},
    "tokenize": {"generate_tokens", "tokenize"},
}
BUILT_IN = {"Decimal", "Fraction", "compile", "eval", "exec", "float", "int"}
METHODS = {
    *("findall", "finditer", "fullmatch", "match", "search", "sub", "subn"),
    *("iterdecode", "iterencode", "raw_decode"),
    *("dump_json", "model_dump_json", "model_validate_json", "validate_json"),
    *("encode_batch", "encode_ordinary", "encode_ordinary_batch", "encode_to_numpy"),
}


class Calls(NamedTuple):
    """The calls that are looked for: names by their modules, names that are built in, and methods."""

    of_modules: Mapping[str, Collection[str]]
    built_in: Collection[str]
    methods: Collection[str]


READERS = Calls(OF_MODULES, BUILT_IN, METHODS)
OPENERS = Calls(
    {
        "bz2": {"open"},
        "gzip": {"open"},
        "io": {"FileIO", "open"},
        "lzma": {"open"},
        "mmap": {"mmap"},
        "numpy": {"fromfile", "load", "loadtxt", "memmap", "save", "savez"},
        "os": {
            *("link", "makedirs", "mkdir", "mkfifo", "open", "remove", "removedirs", "rename", "renames", "replace", "rmdir"),
            *("symlink", "truncate", "unlink"),
        },
        "pickle": {"load", "loads"},
        "shelve": {"open"},
        "shutil": {"copy", "copy2", "copyfile", "copytree", "make_archive", "move", "rmtree", "unpack_archive"},
        "sqlite3": {"connect"},
        "tarfile": {"TarFile", "open"},
        "tempfile": {"NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mkdtemp", "mkstemp"},
        "tomllib": {"load"},
        "zipfile": {"Path", "ZipFile"},
    },
    {"open"},
    {
        *("open", "read_bytes", "read_text", "touch", "write_bytes", "write_text"),
        *("hardlink_to", "mkdir", "rename", "rmdir", "symlink_to", "unlink"),
        *("extract", "extractall", "to_csv", "to_parquet", "tofile", "savefig"),
    },
)


def readers_in(source: str) -> Counter[str]:
    """How often each reader stands in it, as `NAME in FUNCTION`; in `module` where it stands in no function."""
    return calls_in(source, READERS)


def calls_in(source: str, wanted: Calls) -> Counter[str]:
    """How often each of these calls stands in it, as `NAME in FUNCTION`; in `module` where it stands in no function."""
    calls = _CallsInCode(wanted)
    calls.visit(ast.parse(source))
    return calls.counts


class _CallsInCode(ast.NodeVisitor):
    def __init__(self, wanted: Calls) -> None:
        self.counts = Counter[str]()
        self._wanted = wanted
        self._within = list[str]()
        self._names = dict[str, str]()

    def visit_Import(self, node: ast.Import) -> None:
        self._names |= {name.asname or name.name: name.name for name in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._names |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}

    def visit_Call(self, node: ast.Call) -> None:
        name = self._reader(node.func)
        if name and not (name in ("int", "float", "re.compile") and all(map(_is_no_text, node.args[:1]))):
            self._count(name)
        for handed in (*node.args, *(keyword.value for keyword in node.keywords)):
            if (name := self._reader(handed)) and not _is_about_types(node.func):
                self._count(name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._within.append(node.name)
        self.generic_visit(node)
        self._within.pop()

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815  as ast names them

    def _count(self, name: str) -> None:
        self.counts[f"{name} in {'.'.join(self._within) or 'module'}"] += 1

    def _reader(self, node: ast.expr) -> str:
        """The reader that an expression names, "" where it names none."""
        if isinstance(node, ast.Name):
            name = self._names.get(node.id, node.id)
            return name if name in self._wanted.built_in or self._is_of_a_module(name) else ""
        if not isinstance(node, ast.Attribute):
            return ""
        if isinstance(node.value, ast.Name) and node.value.id in self._names:
            name = f"{self._names[node.value.id]}.{node.attr}"
            if self._is_of_a_module(name):
                return name
        return f".{node.attr}" if node.attr in self._wanted.methods else ""

    def _is_of_a_module(self, name: str) -> bool:
        module, _, last = name.rpartition(".")
        return last in self._wanted.of_modules.get(module, ())


def _is_no_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add)
    )


def _is_about_types(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id in ("isinstance", "issubclass", "cast", "Metric", "Column")
