"""Runs in the sandbox: parses and imports a repository that is given as texts, and reports what each call returned and ran.

It imports Python's standard library, and `bench_code.units`, which does the same and is sent along. So a model's code is
never parsed or run outside the sandbox.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from bench_code.units import Function, Module, parse


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Return what a version of some files is, and the results of its calls.

    Args:
        job: The `files`, text by path, and the `calls`, which name the modules of the files.

    Returns:
        `modules`: path -> its skeleton and the bodies of its functions; `imports`: path -> the files that it imports; `runs`:
        for each call its `value` (absent if it raised) and the functions that `ran`.
    """
    files: dict[str, str] = job["files"]
    modules = {path: parse(text.encode()) for path, text in files.items()}
    imports = {path: imported_by(path, text, files) for path, text in files.items()}
    versions = {path: {"skeleton": module.skeleton, "bodies": module.bodies} for path, module in modules.items()}
    runs = _runs(files, modules, job["calls"])
    return {"modules": versions, "imports": {path: sorted(paths) for path, paths in imports.items()}, "runs": runs}


class _FilesImporter(Loader, MetaPathFinder):
    """Imports the files as Python imports modules. Each of their functions reports to `ran` when it runs."""

    def __init__(self, files: Mapping[str, str], modules: Mapping[str, Module], ran: list[str]):
        self.files, self.modules, self.ran = files, modules, ran
        self.packages = {str(parent) for path in files for parent in PurePosixPath(path).parents} - {"."}

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        path = name.replace(".", "/")
        known = path in self.packages or f"{path}.py" in self.files
        return spec_from_loader(name, self, is_package=path in self.packages) if known else None

    def exec_module(self, module: ModuleType) -> None:
        path = f"{module.__name__.replace('.', '/')}.py"
        if path in self.files:
            vars(module)["ran_"] = self.ran.append
            code = _instrumented(path, self.files[path], self.modules[path])
            exec(compile(code, path, "exec", dont_inherit=True), vars(module))


def _runs(files: Mapping[str, str], modules: Mapping[str, Module], calls: list[str]) -> list[dict[str, Any]]:
    """Return the result of each call. A module that cannot be imported fails the calls that name it, and its importers'
    calls."""
    ran: list[str] = []
    space: dict[str, Any] = {}
    sys.meta_path.insert(0, _FilesImporter(files, modules, ran))
    for path in files:
        dotted = _dotted(path)
        try:
            space[dotted.rpartition(".")[2]] = import_module(dotted)
        except Exception:
            continue
    return [_called(call, space, ran) for call in calls]


def _called(call: str, space: dict[str, Any], ran: list[str]) -> dict[str, Any]:
    ran.clear()
    try:
        value = json.loads(json.dumps(eval(call, space)))
    except Exception:
        return {"ran": sorted(set(ran))}
    return {"value": value, "ran": sorted(set(ran))}


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def imported_by(path: str, text: str, files: Mapping[str, str]) -> set[str]:
    """Return the given files that a file's import statements name. Empty if it cannot be parsed."""
    dotted = {_dotted(other): other for other in files if other != path}
    names: set[str] = set()
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(filter(None, (_dotted(path).rpartition(".")[0], base)))
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return {dotted[name] for name in names if name in dotted}


def _instrumented(path: str, text: str, module: Module) -> str:
    """Return a module's text whose functions report that they ran."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, Function) and (unit := module.function_at(node.lineno)):
            node.body.insert(0, ast.parse(f"ran_({f'{path}::{unit.name}'!r})").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))
