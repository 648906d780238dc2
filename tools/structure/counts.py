"""What stands in the source of the package at a commit, or in the checkout: size, rooms, and arrows between rooms."""

from __future__ import annotations

import ast
import io
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGE = "bench"
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Size:
    """The size of some source files.

    files       number of files
    lines       lines of code: neither blank, nor a comment, nor within a docstring
    statements  statements of the syntax tree, docstrings left out
    """

    files: int
    lines: int
    statements: int


def sources(commit: str | None = None) -> dict[str, str]:
    """Return path -> source of the package's Python files, at a commit or as they lie in the checkout."""
    if commit is None:
        return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / PACKAGE).rglob("*.py")}
    words = ["git", "archive", "--format=tar", commit, PACKAGE]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return {
            member.name: file.read().decode()
            for member in archive
            if member.name.endswith(".py") and (file := archive.extractfile(member))
        }


def size_of(files: Mapping[str, str]) -> Size:
    """Return the size of these sources."""
    trees = {path: ast.parse(source) for path, source in files.items()}
    return Size(
        files=len(files),
        lines=sum(lines_of(source, trees[path]) for path, source in files.items()),
        statements=sum(map(statements_of, trees.values())),
    )


def lines_of(source: str, tree: ast.Module) -> int:
    """Return how many lines of a source are code."""
    prose = {line for text in _docstrings(tree) for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    lines = enumerate(source.splitlines(), start=1)
    return sum(bool(text.strip()) and not text.lstrip().startswith("#") and number not in prose for number, text in lines)


def statements_of(tree: ast.Module) -> int:
    """Return how many statements a syntax tree has, docstrings left out."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - sum(1 for _ in _docstrings(tree))


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    """Yield the texts that stand as statements: docstrings, and those below a field or a constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node


def arrows_of(files: Mapping[str, str], rooms: Callable[[str], str]) -> set[tuple[str, str]]:
    """Return which room imports which: (importing, imported). An import path in a string counts as an import.

    Args:
        files: Path -> source. Templates of a user's own package are left out.
        rooms: Says in which room a file stands.
    """
    paths = {_module(path): path for path in files}
    pairs = {
        (rooms(path), rooms(paths[imported]))
        for path, source in files.items()
        if "templates" not in PurePosixPath(path).parts
        for imported in imported_by(ast.parse(source), set(paths))
    }
    return {(room, other) for room, other in pairs if room != other}


def room_of(path: str) -> str:
    """Return the folder directly below the package in which a file stands, or the file's module if it stands in none."""
    return ".".join(_module(path).split(".")[:2])


def folder_of(path: str) -> str:
    """Return the folder in which a file stands. The `__init__.py` of a folder stands in this folder."""
    return ".".join(PurePosixPath(path).parent.parts)


def imported_by(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """Yield the modules of the package that a source imports, anywhere in it, or names in an import path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in submodules if name in modules)
            if node.module in modules and not all(name in modules for name in submodules):
                yield node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            yield from {node.value.partition(":")[0]} & modules


def rooms_of(files: Iterable[str], rooms: Callable[[str], str]) -> set[str]:
    """Return the rooms in which these files stand."""
    return set(map(rooms, files))


def _module(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
