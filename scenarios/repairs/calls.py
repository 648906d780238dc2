"""Imports a repository that is given as texts, and evaluates calls of it.

The generator imports this file. Checks and grader send its text into the sandbox, where nothing but Python's own library is, so
it imports nothing else. What a call must return never gets there: it is compared outside.
"""

from __future__ import annotations

import json
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from typing import Any

Files = dict[str, str]
"""Path -> text."""


class Repository(Loader, MetaPathFinder):
    """Makes the modules of some files importable while it is entered. What was imported before is put back."""

    def __init__(self, files: Files):
        self.files = files
        self.tops = {path.split("/")[0] for path in files}
        self.before: dict[str, Any] = {}

    def __enter__(self) -> Repository:
        self.before = self._taken_out()
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)
        self._taken_out()
        sys.modules.update(self.before)

    def _taken_out(self) -> dict[str, Any]:
        names = [name for name in sys.modules if name.split(".")[0] in self.tops]
        return {name: sys.modules.pop(name) for name in names}

    def find_spec(self, name: str, *_: object) -> Any:
        path = f"{name.replace('.', '/')}.py"
        return spec_from_loader(name, self, is_package=name in self.tops) if name in self.tops or path in self.files else None

    def exec_module(self, module: Any) -> None:
        path = f"{module.__name__.replace('.', '/')}.py"
        exec(compile(self.files.get(path, ""), path, "exec", dont_inherit=True), vars(module))


def seen(files: Files, calls: list[str]) -> list[dict[str, Any]]:
    """Of each call {"value": what it returned} or {"raised": why it did not}. It may name the modules of the files."""
    space: dict[str, Any] = {}
    with Repository(files):
        try:
            for path in files:
                package, _, module = path.removesuffix(".py").partition("/")
                exec(f"from {package} import {module}", space)
        except Exception as error:
            return [{"raised": _words(error)} for _ in calls]
        return [_called(call, space) for call in calls]


def main(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The same in JSON, for the sandbox."""
    return [_as_json(one) for one in seen(job["files"], job["calls"])]


def _called(call: str, space: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": eval(call, space)}
    except Exception as error:
        return {"raised": _words(error)}


def _as_json(one: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(one)))
    except (TypeError, ValueError, RecursionError):
        return {"raised": f"a result of type {type(one['value']).__name__}, which is no JSON value"}


def _words(error: BaseException) -> str:
    """The exception, and the last line of the repository on its way."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} in {error.filename}, line {error.lineno}"
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.endswith(".py") and not code.co_filename.startswith("/"):
            place = f" in {code.co_filename}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__}: {error}{place}"
