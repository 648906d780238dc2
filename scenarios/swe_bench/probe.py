"""Run tests of a repository, given as texts, inside the sandbox. It imports only Python's own library.

pytest is not there. A small stand-in has `raises`, `approx`, `mark.parametrize`, `skip` and `fail`; fixtures it has none.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
import sys
import unittest
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

ROOTS = ("", "src/", "lib/")
"""Where packages lie in a repository."""


class Repository(Loader, MetaPathFinder):
    """Makes the modules of some files (path -> text) importable."""

    def __init__(self, files: dict[str, str]):
        self.files = files
        self.roots = list(ROOTS)
        self.found: dict[str, str] = {}

    def find_spec(self, name: str, *_: object) -> Any:
        for root in self.roots:
            at = root + name.replace(".", "/")
            for path, is_package in ((f"{at}/__init__.py", True), (f"{at}.py", False)):
                if path in self.files:
                    return self._spec(name, path, is_package)
        folders = [root + name.replace(".", "/") + "/" for root in self.roots]
        if any(path.startswith(folder) for folder in folders for path in self.files):
            return self._spec(name, "", True)
        return None

    def _spec(self, name: str, path: str, is_package: bool) -> Any:
        self.found[name] = path
        spec = spec_from_loader(name, self, origin=path or None, is_package=is_package)
        if spec is not None:
            spec.has_location = bool(path)
        return spec

    def exec_module(self, module: Any) -> None:
        path = self.found[module.__name__]
        exec(compile(self.files.get(path, ""), path or "namespace", "exec", dont_inherit=True), vars(module))


class Skipped(Exception):
    pass


class Raises:
    """A substitute of `with pytest.raises(Error, match="words") as info`."""

    def __init__(self, expected: Any, match: str | None = None):
        self.expected, self.match, self.value = expected, match, None

    def __enter__(self) -> Raises:
        return self

    def __exit__(self, kind: Any, error: Any, _: object) -> bool:
        if kind is None:
            raise AssertionError(f"did not raise {self.expected}")
        if not issubclass(kind, self.expected):
            return False
        self.value = error
        if self.match is not None and not re.search(self.match, str(error)):
            raise AssertionError(f"{self.match!r} does not match {str(error)!r}")
        return True


class Approx:
    def __init__(self, value: float, rel: float = 1e-6, abs: float = 1e-12):  # noqa: A002  pytest's name
        self.value, self.rel, self.abs = value, rel, abs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and math.isclose(other, self.value, rel_tol=self.rel, abs_tol=self.abs)

    def __hash__(self) -> int:
        return 0


class Mark:
    """A substitute of pytest's marks. All marks except `parametrize` and those that skip do nothing."""

    def __getattr__(self, name: str) -> Any:
        def mark(*given: Any, **_: object) -> Any:
            return given[0] if len(given) == 1 and callable(given[0]) else lambda test: _skipping(test, name)

        return mark

    def parametrize(self, names: Any, values: Any, **_: object) -> Any:
        wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

        def parametrized(test: Any) -> Any:
            rows = [value if len(wanted) > 1 else (value,) for value in values]
            cases = [({}, "")] if not hasattr(test, "cases") else test.cases
            test.cases = [
                ({**kept, **dict(zip(wanted, row, strict=True))}, "-".join(filter(None, [id_, _id(wanted, row, at)])))
                for kept, id_ in cases
                for at, row in enumerate(rows)
            ]
            return test

        return parametrized


def _skipping(test: Any, name: str) -> Any:
    if name == "skip":
        test.cases = []
    return test


def _id(names: list[str], row: Any, at: int) -> str:
    """Return the id of a case in pytest's form: simple values by themselves, others by their parameter and number."""
    plain = (str, int, float, bool, type(None))
    return "-".join(str(value) if isinstance(value, plain) else f"{name}{at}" for name, value in zip(names, row, strict=True))


def _stop(error: type[Exception]) -> Any:
    def stop(reason: str = "", **_: object) -> None:
        raise error(reason)

    return stop


def _pytest() -> ModuleType:
    module = ModuleType("pytest")
    parts = {"raises": Raises, "approx": Approx, "mark": Mark(), "skip": _stop(Skipped), "fail": _stop(AssertionError)}
    vars(module).update(parts)
    return module


def main(job: dict[str, Any]) -> dict[str, str]:
    """Return the result of each test of `job["tests"]` on `job["files"]`: "" if it passes, else why it fails."""
    repository = Repository(job["files"])
    sys.meta_path.insert(0, repository)
    sys.modules["pytest"] = _pytest()
    return {test: _failure(test, repository) for test in job["tests"]}


def _failure(test: str, repository: Repository) -> str:
    try:
        path, names, case = _place(test, repository.files)
        folder = path.rpartition("/")[0]
        repository.roots += [f"{folder}/"] if folder and f"{folder}/" not in repository.roots else []
        return _run(importlib.import_module(_module(path)), names, case)
    except Exception as error:
        return _words(error)


def _module(path: str) -> str:
    root = next((root for root in ROOTS[1:] if path.startswith(root)), "")
    return path.removeprefix(root).removesuffix(".py").replace("/", ".")


def _place(test: str, files: dict[str, str]) -> tuple[str, list[str], str]:
    """Return the file, the names within it, and the case, of `tests/test_a.py::TestB::test_c[1]` or `test_c
    (tests.test_a.TestB)`."""
    if "::" in test:
        path, *names = test.partition("[")[0].split("::")
        return path, names, test.partition("[")[2].removesuffix("]")
    told = re.fullmatch(r"(\w+) \(([\w.]+)\)", test)
    dotted = told[2].removesuffix(f".{told[1]}").split(".") if told else []
    for root in (root for root in ROOTS if told):
        path = root + "/".join(dotted[:-1]) + ".py"
        if told and path in files:
            return path, [dotted[-1], told[1]], ""
    raise LookupError("it is named neither as FILE::TEST nor as TEST (MODULE.CLASS)")


def _run(module: Any, names: list[str], case: str) -> str:
    owner = module
    for name in names[:-1]:
        owner = getattr(owner, name)
    if isinstance(owner, type) and issubclass(owner, unittest.TestCase):
        return _unittest(owner, names[-1])
    made = owner() if isinstance(owner, type) else owner
    test = getattr(made, names[-1])
    cases = getattr(test, "cases", [({}, "")])
    chosen = [given for given, id_ in cases if id_ == case]
    if not chosen:
        return f"there is no case [{case}] of it" if case else "it is skipped, or has cases and the name of none"
    lacking = [name for name in inspect.signature(test).parameters if name not in chosen[0]]
    if lacking:
        return f"it needs the fixture {lacking[0]}, and there are no fixtures here"
    getattr(made, "setup_method", lambda: None)()
    try:
        test(**chosen[0])
    finally:
        getattr(made, "teardown_method", lambda: None)()
    return ""


class Noted(unittest.TestResult):
    """Stores the first failure as one line."""

    words = ""

    def addFailure(self, _: Any, error: Any) -> None:  # noqa: N802  unittest's name
        self.words = self.words or _words(error[1])

    def addError(self, _: Any, error: Any) -> None:  # noqa: N802
        self.words = self.words or _words(error[1])

    def addSubTest(self, _: Any, __: Any, error: Any) -> None:  # noqa: N802
        self.words = self.words or (_words(error[1]) if error else "")


def _unittest(owner: Any, name: str) -> str:
    result = Noted()
    unittest.TestSuite([owner(name)]).run(result)
    return result.words or ("it is skipped" if result.skipped else "")


def _words(error: BaseException) -> str:
    """Return the exception, and the last line of the repository in its traceback."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} in {error.filename}, line {error.lineno}"
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.endswith(".py") and not code.co_filename.startswith("/"):
            place = f" in {code.co_filename}, line {trace.tb_lineno}"
        trace = trace.tb_next
    said = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{said}{place}"
