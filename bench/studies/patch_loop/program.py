"""Runs in the sandbox: parses and imports a repository that is given as texts, and says of each call what it returned and ran.

It imports Python's own library, and `bench.codebase.units`, which does the same and is sent along. So nobody parses or runs
code of a model outside.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from types import ModuleType
from typing import Any

from bench.codebase.units import Function, Module, parse


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Say what a version of some files is, and what came of its calls.

    Args:
        job: The `files`, text by path, and the `calls`, which name the modules of the files.

    Returns:
        `modules`: of each file its skeleton and the bodies of its functions; `imports`: the files that it imports; `runs`: of
        each call its `value`, or none where it raised, and the functions that `ran`.
    """
    files: dict[str, str] = job["files"]
    modules = {path: parse(text.encode()) for path, text in files.items()}
    imports = {path: imported_by(path, text, files) for path, text in files.items()}
    versions = {path: {"skeleton": module.skeleton, "bodies": module.bodies} for path, module in modules.items()}
    runs = _runs(files, modules, imports, job["calls"])
    return {"modules": versions, "imports": {path: sorted(paths) for path, paths in imports.items()}, "runs": runs}


def _runs(
    files: Mapping[str, str], modules: Mapping[str, Module], imports: Mapping[str, set[str]], calls: list[str]
) -> list[dict[str, Any]]:
    ran: list[str] = []
    space: dict[str, Any] = {}
    try:
        for path in TopologicalSorter(imports).static_order():
            dotted = _dotted(path)
            package, _, name = dotted.rpartition(".")
            parent = sys.modules.setdefault(package, ModuleType(package))
            module = sys.modules[dotted] = space[name] = ModuleType(dotted)
            vars(module)["ran_"] = ran.append
            setattr(parent, name, module)
            exec(compile(_instrumented(path, files[path], modules[path]), dotted, "exec", dont_inherit=True), vars(module))
    except (Exception, CycleError):
        return [{"ran": []} for _ in calls]
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
    """Return the files among these that a file's import statements name; none where it cannot be parsed."""
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
    """A module's text whose functions say that they ran."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, Function) and (unit := module.function_at(node.lineno)):
            node.body.insert(0, ast.parse(f"ran_({f'{path}::{unit.name}'!r})").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))
