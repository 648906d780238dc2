"""Edits of a package as agents and people make them: six of ten change the body of a function, the others all else there is."""

from __future__ import annotations

import ast
import itertools
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from impact.mutants import Mutant, mutants, replaced
from impact.packages import Package

BODIES = (True, True, False, True, False, True, True, False, True, False)
"""Which of ten edits change the body of a function of the package. The others take turns by kind."""
DATA = (".json", ".txt", ".toml", ".yml", ".yaml", ".ini", ".cfg", ".html", ".md", ".lark", ".csv", ".test", ".sql")
"""Endings of files that tests may read."""
MAX_DATA_BYTES = 300_000
"""The largest data file that is edited, in bytes."""
Place = tuple[ast.stmt | ast.expr, str]
"""A node of a file, and the text in its place."""


def edits_of_kinds(root: Path, package: Package, seed: int) -> Iterator[Mutant]:
    """Yield edits in a drawn order. What each does begins with its kind.

    Args:
        root: The top of the tree.
        package: The package.
        seed: What the order is drawn from, together with the package's name.
    """
    drawn = random.Random(f"{seed} {package.name}")
    code = os.path.normpath(f"{package.source}/{package.code}")
    every = mutants(root, code, seed)
    bodies = (replace(each, what=f"body: {each.what}") for each in every if each.is_body)
    others = [_in_turns(drawn.sample(edits, len(edits))) for edits in _others(root, package, code).values()]
    rest = (edit for turn in itertools.zip_longest(*drawn.sample(others, len(others))) for edit in turn if edit is not None)
    for is_body in itertools.cycle(BODIES):
        edit = next(bodies if is_body else rest, None)
        if edit is None:
            return
        yield edit


def _in_turns(edits: list[Callable[[], Mutant | None]]) -> Iterator[Mutant]:
    """Yield the edits after which a file of Python's can be parsed. Each is made when its turn comes."""
    made = (edit() for edit in edits)
    return (edit for edit in made if edit and (not edit.path.endswith(".py") or _parses(edit.content)))


def _others(root: Path, package: Package, code: str) -> dict[str, list[Callable[[], Mutant | None]]]:
    """Return what makes the edits that change more than a body of the package, by their kind."""
    sources = [file for file in sorted((root / code).rglob("*.py")) if "test" not in file.relative_to(root / code).as_posix()]
    tests = root / package.tests
    of_tests = (
        [tests]
        if tests.is_file()
        else [file for file in sorted(tests.rglob("*.py")) if "test" in file.stem and file.stem != "conftest"]
    )
    home = of_tests[0].parent
    near = {file.parent for file in (*sources, *of_tests)}
    data = [
        file
        for folder in near
        for file in folder.rglob("*")
        if file.suffix in DATA and file.stat().st_size < MAX_DATA_BYTES and ".git" not in file.parts
    ]
    made: dict[str, list[Callable[[], Mutant | None]]] = {}
    for kind, files, places in (
        ("docstring", sources, _docstrings),
        ("default", sources, _defaults),
        ("constant", sources, _constants),
        ("decorator", sources, _decorators),
        ("constant of a test", of_tests, _of_tests),
    ):
        made[kind] = [
            partial(_at, file, root, kind, text, node, new)
            for file in files
            for text in (file.read_text(encoding="utf-8"),)
            for node, new in places(ast.parse(text))
        ]
    made["data file"] = [partial(_of_data, file, root) for file in sorted({*data})]
    test, fixture = "def test_added():\n    assert 1\n", "import pytest\n\n\n@pytest.fixture\ndef spare():\n    return 1\n"
    made["test added"] = [partial(_with_end, file, root, "test added", test) for file in of_tests]
    made["conftest"] = [partial(_with_end, home / "conftest.py", root, "conftest", fixture)]
    new = {home / "test_new.py": "def test_new():\n    assert 1\n", sources[0].parent / "spare.py": "SPARE = 1\n"}
    made["new file"] = [partial(_with_end, file, root, "new file", text) for file, text in new.items()]
    return {kind: edits for kind, edits in made.items() if edits}


def _at(file: Path, root: Path, kind: str, text: str, node: ast.stmt | ast.expr, new: str) -> Mutant:
    what = f"{kind}: {_short(node)} -> {new or 'gone'}"[:60]
    return Mutant(str(file.relative_to(root)), node.lineno, what, replaced(text, node, new))


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:24]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _with_end(file: Path, root: Path, kind: str, end: str) -> Mutant:
    text = f"{file.read_text(encoding='utf-8')}\n\n" if file.exists() else ""
    return Mutant(str(file.relative_to(root)), text.count("\n") + 1, f"{kind}: {file.name}", f"{text}{end}")


def _of_data(file: Path, root: Path) -> Mutant | None:
    """Return an edit of the first line from the middle that has a word; None if no line near has one."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
    for at in [*range(len(lines) // 2, len(lines))][:20]:
        if words := [word for word in lines[at].split() if word.isalnum()]:
            changed = lines[at].replace(words[-1], f"{words[-1]}x", 1)
            content = "".join((*lines[:at], changed, *lines[at + 1 :]))
            return Mutant(str(file.relative_to(root)), at + 1, f"data file: {words[-1][:20]} -> {words[-1][:20]}x", content)
    return None


def _other(node: ast.AST) -> str | None:
    """Return another constant of the same type; None where the node is no constant."""
    value = node.value if isinstance(node, ast.Constant) else ...
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, int | float):
        return repr(value + 1)
    return repr(f"{value}x") if isinstance(value, str) else "0" if value is None else None


def _docstrings(tree: ast.Module) -> Iterator[Place]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            yield node.body[0], '"""Other words."""'


def _defaults(tree: ast.Module) -> Iterator[Place]:
    for node in ast.walk(tree):
        for value in (*node.args.defaults, *node.args.kw_defaults) if isinstance(node, ast.FunctionDef) else ():
            if value is not None and (new := _other(value)):
                yield value, new


def _constants(tree: ast.Module) -> Iterator[Place]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in itertools.chain(tree.body, *(each.body for each in classes)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and (new := _other(node.value)):
            yield node.value, new


def _decorators(tree: ast.Module) -> Iterator[Place]:
    for node in ast.walk(tree):
        for each in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            yield each, "(lambda each: each)"


def _of_tests(tree: ast.Module) -> Iterator[Place]:
    for test in ast.walk(tree):
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test"):
            for node in ast.walk(test):
                if isinstance(node, ast.Constant) and type(node.value) is int and (new := _other(node)):
                    yield node, new
