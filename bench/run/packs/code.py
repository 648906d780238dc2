"""Divide a pack's files, by their imports, into files that determine what is asked and files that only grade.

The *asked* files are those that `scenario.py` reaches by imports, without the files of the grader and the baseline. The
*grading* files are those that only the grader and the baseline reach. A grader's file is left out of the asked files only if
nothing but its grader is imported from it: `from .grader import grade`. Any other import from that file (a constant, a helper)
could serve a check, so the file is then an asked file. The file of a generator (`Scenario.made_by`) is left out in the same
way: the digests already cover all that it makes.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common.import_statements import statements_of
from bench.scenario import Scenario

ENTRY_FILE = "scenario.py"


@dataclass(frozen=True)
class PackCode:
    """The files of a pack. `grading` can contain a file from elsewhere, if the pack imports its grader."""

    asked: tuple[Path, ...]
    grading: tuple[Path, ...]


@dataclass(frozen=True)
class PackImport:
    """The import of a file of the pack. `names` are the imported names; empty for the module itself."""

    file: Path
    names: frozenset[str] = frozenset()


def code_of(
    folder: Path, scenario: Scenario, entry: str = ENTRY_FILE, divided: MutableMapping[Hashable, PackCode] | None = None
) -> PackCode:
    """Divide the pack's files into asked and grading files. `entry` defines the scenario's variant. `divided` keeps the result
    for the pack's other instances, of which most have the same grader, baseline and generator."""
    graders = _defining_files(scenario.grade, scenario.baseline)
    left_out = _defining_files(scenario.grade, scenario.baseline, *filter(None, [scenario.made_by]))

    divided = {} if divided is None else divided
    key = (entry, frozenset(graders), frozenset((path, frozenset(names)) for path, names in left_out.items()))
    if key not in divided:
        root = folder.resolve()
        asked = _reach([root / entry], root, left_out)
        grading = _reach(graders, root, {}, asked)
        divided[key] = PackCode(tuple(sorted(asked)), tuple(sorted(grading)))
    return divided[key]


def _defining_files(*functions: Callable[..., Any]) -> dict[Path, set[str]]:
    """Return the files that define these functions, each with the functions' names."""
    names: dict[Path, set[str]] = {}
    for function in functions:
        if file := defining_file(function):
            names.setdefault(file, set()).add(getattr(unwrap(function), "__name__", ""))
    return names


def unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside a partial or a decorator."""
    while isinstance(function, functools.partial):
        function = function.func
    inner: Callable[..., Any] = inspect.unwrap(function)
    return inner


def defining_file(function: Callable[..., Any]) -> Path | None:
    """Return the file that defines a function; None if the function is not written in Python."""
    inner = unwrap(function)
    try:
        return Path(inspect.getfile(inner if inspect.isroutine(inner) else type(inner))).resolve()
    except TypeError:
        return None


def _reach(start: Iterable[Path], root: Path, ignored: Mapping[Path, set[str]], without: Container[Path] = ()) -> set[Path]:
    """Return the files in `start` and the files that they import, directly or not, without the files in `without`. An import of
    only those names that `ignored` gives for a file is not followed."""
    reached, queue = set[Path](), list(start)
    while queue:
        path = queue.pop()
        if path in reached or path in without:
            continue
        reached.add(path)
        if path.is_relative_to(root):
            queue += [
                imported.file
                for imported in _imports(path, root)
                if not (imported.names and imported.names <= ignored.get(imported.file, frozenset()))
            ]
    return reached


def _imports(path: Path, root: Path) -> Iterator[PackImport]:
    """Yield the imports of the pack's files in a file, also those within its functions."""
    for statement in statements_of(path):
        names = [alias.name for alias in statement.names]
        if isinstance(statement, ast.Import):
            for name in names:
                yield from _absolute(name, (), root)
        elif statement.level == 0:
            yield from _absolute(statement.module or "", names, root)
        else:
            base = path.parents[statement.level - 1]
            yield from _modules(base, (statement.module or "").split("."), names, root)


def _absolute(module: str, names: Iterable[str], root: Path) -> Iterator[PackImport]:
    """Yield an import of a pack by its name, as in `from scenarios.my_pack.rules import RULES`."""
    parts = module.split(".")
    if root.name in parts:
        yield from _modules(root, parts[parts.index(root.name) + 1 :], names, root)


def _modules(base: Path, parts: Iterable[str], names: Iterable[str], root: Path) -> Iterator[PackImport]:
    """Yield the packages that contain a module, the module, and each imported name that is itself a module."""
    folder, imported_names = base, set(names)
    for part in filter(None, parts):
        yield from _file(folder, frozenset(), root, packages_only=True)
        folder /= part
    submodules = {
        name for name in imported_names if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()
    }
    yield from _file(folder, frozenset(imported_names - submodules), root)
    for name in sorted(submodules):
        yield from _file(folder / name, frozenset(), root)


def _file(module: Path, names: frozenset[str], root: Path, packages_only: bool = False) -> Iterator[PackImport]:
    """Yield the file of a module. The pack itself is a package whose file is `scenario.py`."""
    if module == root:
        yield PackImport(root / ENTRY_FILE, names)
    elif (module / "__init__.py").is_file():
        yield PackImport(module / "__init__.py", names)
    elif not packages_only and module.is_relative_to(root) and (file := module.with_name(f"{module.name}.py")).is_file():
        yield PackImport(file, names)
