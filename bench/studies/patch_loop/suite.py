"""The tests of a case, run on a version of its files; each result with what it depended on.

A result is kept by the digest of the files, so that a version runs once, whichever arm comes to it and however often.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

from bench.codebase.record import ABSENT, Fact
from bench.codebase.units import Function, Module, digest, parse
from bench.sandbox import Limits, run_python
from bench.sandbox.cases import same
from bench.scenario import Json
from bench.studies.patch_loop import program

PROGRAM = Path(program.__file__).read_text(encoding="utf-8")
LIMITS = Limits(cpu_seconds=2)
FileTexts = Mapping[str, str]


@dataclass(frozen=True)
class CallTest:
    """A call and what it must return."""

    name: str
    call: str
    value: Json


@dataclass(frozen=True)
class FilesVersion:
    """The files at one moment, parsed."""

    files: FileTexts

    def __post_init__(self) -> None:
        modules = {path: parse(text.encode()) for path, text in self.files.items()}
        object.__setattr__(self, "modules", modules)

    modules: Mapping[str, Module] = field(init=False)

    def value(self, fact: Fact) -> str:
        """Return what a fact of this kind and name says at this version."""
        path, _, function = fact.name.partition("::")
        if fact.kind == "file":
            return digest(self.files[path])
        return self.modules[path].bodies.get(function, ABSENT) if fact.kind == "body" else self.modules[path].skeleton

    def fact(self, kind: str, name: str) -> Fact:
        """Return a fact as it is at this version."""
        return Fact(kind, name, self.value(Fact(kind, name, "")))

    def holds(self, facts: frozenset[Fact]) -> bool:
        """Tell whether all of these facts are so at this version."""
        return all(self.value(fact) == fact.value for fact in facts)


@dataclass(frozen=True)
class CallResult:
    """What a test's run came to.

    passed     whether the call returned what it must
    recorded   what the run relied on: the bodies that ran, and the skeletons of their modules and of what these import
    declared   the files that somebody would list for it: of the module that it calls, and of the modules that this imports
    """

    passed: bool
    recorded: frozenset[Fact]
    declared: frozenset[Fact]


class Suite:
    """The tests of a case.

    Attributes:
        tests: The tests, in the order in which they run.
        runs: How many versions ran in the sandbox.
    """

    def __init__(self, tests: Sequence[CallTest]):
        self.tests = tests
        self.runs = 0
        self._kept: dict[str, Mapping[str, CallResult]] = {}

    def results(self, files: FileTexts) -> Mapping[str, CallResult]:
        """Return the result of each test at a version, by the test's name."""
        key = digest(json.dumps(sorted(files.items())))
        if key not in self._kept:
            self.runs += 1
            self._kept[key] = self._ran(files)
        return self._kept[key]

    def _ran(self, files: FileTexts) -> Mapping[str, CallResult]:
        version, imports = FilesVersion(files), {path: imported_by(path, text, files) for path, text in files.items()}
        order = TopologicalSorter(imports).static_order()
        modules = [[_dotted(path), instrumented(path, files[path])] for path in order]
        job = {"modules": modules, "calls": [test.call for test in self.tests]}
        result = run_python({}, PROGRAM, job, LIMITS)
        seen = result.value if result.ok and isinstance(result.value, list) else [{"ran": []}] * len(self.tests)
        return {test.name: _result(test, run, version, imports) for test, run in zip(self.tests, seen, strict=True)}


def _result(test: CallTest, seen: Json, version: FilesVersion, imports: Mapping[str, frozenset[str]]) -> CallResult:
    """Where nothing ran, it may have been for anything: then the result depends on all files."""
    ran = [name for name in seen["ran"] if name.partition("::")[0] in version.files]
    used = _closure({name.partition("::")[0] for name in ran} or set(version.files), imports)
    called = {path for path in version.files if re.search(rf"\b{Path(path).stem}\.", test.call)}
    listed = called.union(*(imports[path] for path in called))
    recorded = {version.fact("body", name) for name in ran} | {version.fact("skeleton", path) for path in used}
    if not ran:
        recorded |= {version.fact("file", path) for path in version.files}
    passed = "value" in seen and same(seen["value"], json.loads(json.dumps(test.value)))
    return CallResult(passed, frozenset(recorded), frozenset(version.fact("file", path) for path in listed))


def _closure(paths: set[str], imports: Mapping[str, frozenset[str]]) -> set[str]:
    waiting, reached = list(paths), set(paths)
    while waiting:
        more = imports[waiting.pop()] - reached
        reached |= more
        waiting.extend(more)
    return reached


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def imported_by(path: str, text: str, files: FileTexts) -> frozenset[str]:
    """Return the files among these that a file's import statements name."""
    dotted = {_dotted(other): other for other in files if other != path}
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(filter(None, (_dotted(path).rpartition(".")[0], base)))
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return frozenset(dotted[name] for name in names if name in dotted)


def instrumented(path: str, text: str) -> str:
    """Return a module's text whose functions say that they ran."""
    module = parse(text.encode())
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, Function) and (unit := module.function_at(node.lineno)):
            node.body.insert(0, ast.parse(f"ran_({f'{path}::{unit.name}'!r})").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))
