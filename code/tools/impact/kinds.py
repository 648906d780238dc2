"""Edits of many kinds, as agents and people make them: each draws its place in a package, its tests and its data files."""

from __future__ import annotations

import ast
import builtins
import itertools
import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from impact.mutants import Mutant, mutants
from impact.packages import Package

Made = Iterator[tuple[int, str, str]]
"""What one kind makes of a file: for each edit its line, what it is, and the whole new text."""
DATA = (".json", ".txt", ".toml", ".yml", ".yaml", ".ini", ".cfg", ".html", ".md", ".lark", ".csv", ".test", ".sql")
"""Endings of files that tests may read."""
FROM_EACH = 10
"""The most edits of a kind."""
MOST = 300_000
"""The largest data file that is edited."""


def edits_of_kinds(root: Path, package: Package, seed: int) -> Iterator[Mutant]:
    """Yield edits of all kinds in a drawn order, in which kinds take turns, at most so many of a kind as FROM_EACH.

    Args:
        root: The top of the tree.
        package: The package.
        seed: What the order is drawn from, together with the package's name.
    """
    drawn = random.Random(f"{seed} {package.name}")
    code, tests = os.path.normpath(f"{package.source}/{package.code}"), package.tests
    every = sorted((root / code).rglob("*.py"))
    sources = [file for file in every if "test" not in file.relative_to(root / code).as_posix()]
    of_tests = [root / tests] if (root / tests).is_file() else sorted((root / tests).rglob("test*.py"))
    folders = {file.parent for file in (*sources, *of_tests)}
    data = [
        each for each in sorted(root.rglob("*")) if each.suffix in DATA and each.parent != root and ".git/" not in str(each)
    ]
    kinds = {name: [each for file in sources for each in _in(file, root, name, make)] for name, make in OF_CODE.items()}
    kinds["operator"] = [replace(each, what=f"operator: {each.what}") for each in mutants(root, code, seed)]
    near = [file for file in data if _is_near(file, folders)]
    near = drawn.sample(near, min(FROM_EACH, len(near)))
    helpers = [file for file in sorted((root / tests).rglob("*.py")) if file not in of_tests]
    for name, files, make in (
        ("data file", near, _of_data),
        ("line of a data file removed", near, _without_line),
        ("test's constant", of_tests, _of_constants),
        ("test's helper", helpers, _of_constants),
        ("test removed", of_tests, _removed),
        (
            "test added",
            of_tests,
            lambda text: [(text.count("\n"), "test_added", f"{text}\n\ndef test_added():\n    assert 1\n")],
        ),
    ):
        kinds[name] = [each for file in files for each in _in(file, root, name, make)]
    kinds["patch in a test file"] = [
        each for file in of_tests for each in _patches("patch in a test file", file, root, code, sources, drawn)
    ]
    conftest = (root / tests if (root / tests).is_dir() else (root / tests).parent) / "conftest.py"
    kinds["conftest"] = list(_patches("conftest", conftest, root, code, sources, drawn))
    orders = [drawn.sample(edits, min(FROM_EACH, len(edits))) for edits in drawn.sample([*kinds.values()], len(kinds))]
    for turn in itertools.zip_longest(*orders):
        yield from (edit for edit in turn if edit is not None and (not edit.path.endswith(".py") or _parses(edit.content)))


def _is_near(file: Path, folders: set[Path]) -> bool:
    return file.stat().st_size < MOST and any(file.is_relative_to(folder) for folder in folders)


def _in(file: Path, root: Path, kind: str, make: Callable[[str], Iterable[tuple[int, str, str]]]) -> Iterator[Mutant]:
    try:
        text = file.read_text(encoding="utf-8")
        for line, what, content in make(text):
            if content != text:
                yield Mutant(str(file.relative_to(root)), line, f"{kind}: {' '.join(what.split())[:24]}", content)
    except (UnicodeDecodeError, SyntaxError):
        return


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _replaced(text: str, node: ast.expr | ast.stmt, new: str) -> str:
    lines = text.splitlines(keepends=True)
    start = len("".join(lines[: node.lineno - 1]).encode()) + node.col_offset
    end = len("".join(lines[: (node.end_lineno or node.lineno) - 1]).encode()) + (node.end_col_offset or 0)
    raw = text.encode()
    return (raw[:start] + new.encode() + raw[end:]).decode()


def _other(node: ast.expr) -> str | None:
    """Another constant of the same type; None where the node is no constant."""
    value = node.value if isinstance(node, ast.Constant) else ...
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, int | float):
        return repr(value + 1)
    return repr(f"{value}x") if isinstance(value, str) else "0" if value is None else None


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def _classes(text: str) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def _dropped(text: str) -> Made:
    for function in _functions(text):
        for node in function.body:
            if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) and not isinstance(node.value, ast.Constant):
                yield node.lineno, ast.unparse(node), _replaced(text, node, "pass")


def _defaults(text: str) -> Made:
    for function in _functions(text):
        for value in (*function.args.defaults, *function.args.kw_defaults):
            if value is not None and (new := _other(value)) is not None:
                yield value.lineno, f"{function.name} {ast.unparse(value)} -> {new}", _replaced(text, value, new)


def _assigned(body: list[ast.stmt], text: str) -> Made:
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and (new := _other(node.value)) is not None:
            yield node.lineno, ast.unparse(node), _replaced(text, node.value, new)


def _attributes(text: str) -> Made:
    for each in _classes(text):
        yield from _assigned(each.body, text)


def _docstrings(text: str) -> Made:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            yield node.body[0].lineno, getattr(node, "name", "module"), _replaced(text, node.body[0], '"""Other words."""')


def _decorators(text: str) -> Made:
    lines = text.splitlines(keepends=True)
    nodes: list[ast.FunctionDef | ast.ClassDef] = [*_functions(text), *_classes(text)]
    for node in nodes:
        for each in node.decorator_list:
            rest = lines[: each.lineno - 1] + lines[each.end_lineno or each.lineno :]
            yield each.lineno, f"{node.name} without {ast.unparse(each)}", "".join(rest)


def _before(text: str, node: ast.FunctionDef, line: str) -> str:
    lines = text.splitlines(keepends=True)
    at = min((node.lineno, *(each.lineno for each in node.decorator_list))) - 1
    return "".join((*lines[:at], f"{' ' * node.col_offset}{line}\n", *lines[at:]))


def _cached(text: str) -> Made:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node.lineno, node.name, _before(text, node, "@__import__('functools').lru_cache(maxsize=None)")


def _deleted(text: str) -> Made:
    for each in _classes(text):
        for node in each.body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                yield node.lineno, f"{each.name}.{node.name}", _replaced(text, node, "pass")


def _added(text: str) -> Made:
    for each in _classes(text):
        last = each.body[-1]
        lines = text.splitlines(keepends=True)
        end, pad = last.end_lineno or last.lineno, " " * each.body[0].col_offset
        new = f"\n{pad}def __bool__(self):\n{pad}    return False\n"
        yield each.lineno, f"{each.name}.__bool__", "".join((*lines[:end], new, *lines[end:]))


def _bases(text: str) -> Made:
    for each in _classes(text):
        for base in each.bases[:1]:
            if isinstance(base, ast.Name):
                new = "Exception" if base.id.endswith(("Error", "Exception", "Warning")) else "object"
                yield each.lineno, f"{each.name}({base.id}) -> {new}", _replaced(text, base, new)


def _shadowed(text: str) -> Made:
    called = {
        node.func.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    for name in sorted(called & {"len", "sorted", "str", "int", "list", "enumerate", "repr", "min", "max"} & {*dir(builtins)}):
        yield text.count("\n") + 1, name, f"{text}\n\ndef {name}(*arguments, **named):\n    return None\n"


def _renamed(text: str) -> Made:
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            line = lines[node.lineno - 1].replace(f"def {node.name}(", f"def {node.name}_(", 1)
            yield node.lineno, node.name, "".join((*lines[: node.lineno - 1], line, *lines[node.lineno :]))


def _parameters(text: str) -> Made:
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            line = lines[node.lineno - 1].replace(f"def {node.name}(", f"def {node.name}(extra, ", 1)
            yield node.lineno, node.name, "".join((*lines[: node.lineno - 1], line, *lines[node.lineno :]))


def _tables(text: str) -> Made:
    for node in ast.parse(text).body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        parts = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", ())
        for part in parts[-1:]:
            if (new := _other(part)) is not None:
                yield part.lineno, f"{ast.unparse(part)} -> {new}", _replaced(text, part, new)


def _swapped(text: str) -> Made:
    lines = text.splitlines(keepends=True)
    for function in _functions(text):
        for one, two in itertools.pairwise(function.body):
            a, b, c, d = one.lineno - 1, one.end_lineno or 0, two.lineno - 1, two.end_lineno or 0
            if b <= c and ast.get_docstring(function) is None:
                yield one.lineno, f"{function.name}", "".join((*lines[:a], *lines[c:d], *lines[b:c], *lines[a:b], *lines[d:]))


def _exports(text: str) -> Made:
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.level and len(node.names) > 1:
            one, two = node.names[:2]
            new = f"from {'.' * node.level}{node.module or ''} import {two.name} as {one.asname or one.name}"
            yield node.lineno, new, f"{text}\n{new}\n"


def _of_constants(text: str) -> Made:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and (new := _other(node)) is not None:
            yield node.lineno, f"{node.value} -> {new}", _replaced(text, node, new)


def _removed(text: str) -> Made:
    for function in _functions(text):
        if function.name.startswith("test"):
            line = text.splitlines()[function.lineno - 1]
            yield function.lineno, function.name, text.replace(line, line.replace("def test", "def no_test", 1), 1)


def _of_data(text: str) -> Made:
    """Edits of a few lines: a file may have thousands."""
    lines = text.splitlines(keepends=True)
    for at, line in list(enumerate(lines))[:: len(lines) // FROM_EACH + 1]:
        words = [word for word in line.split() if word.isalnum()]
        if words:
            new = line.replace(words[-1], f"{words[-1]}x", 1)
            yield at + 1, f"{words[-1]} -> {words[-1]}x", "".join((*lines[:at], new, *lines[at + 1 :]))


def _without_line(text: str) -> Made:
    lines = text.splitlines(keepends=True)
    for at, line in list(enumerate(lines))[:: len(lines) // FROM_EACH + 1]:
        yield at + 1, line, "".join((*lines[:at], *lines[at + 1 :]))


OF_CODE: dict[str, Callable[[str], Made]] = {
    "dropped": _dropped, "default": _defaults, "constant": lambda text: _assigned(ast.parse(text).body, text),
    "attribute": _attributes, "docstring": _docstrings, "decorator": _decorators, "cache": _cached, "deleted method": _deleted,
    "added method": _added, "base": _bases, "shadowed": _shadowed, "renamed": _renamed, "swapped": _swapped,
    "re-export": _exports, "parameter": _parameters, "table": _tables,
}  # fmt: skip
"""The kinds of edits of the package's code, beside mutants."""


def _patches(kind: str, file: Path, root: Path, code: str, sources: list[Path], drawn: random.Random) -> Iterator[Mutant]:
    """A file of tests, or a conftest that may be new, which replaces a function of the package while it is imported."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    parts = Path(code).parts
    for source in drawn.sample(sources, min(3, len(sources))):
        inner = source.relative_to(root / code).with_suffix("").parts
        names = [node.name for node in ast.parse(source.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
        if names:
            name = drawn.choice(names)
            module = ".".join((*parts[-1:], *(part for part in inner if part != "__init__")))
            line = f"import importlib\nsetattr(importlib.import_module('{module}'), '{name}', lambda *a, **k: None)\n"
            yield Mutant(str(file.relative_to(root)), 1, f"{kind}: {module}.{name}", f"{text}\n{line}")
