"""The tests of a case, run on a version of its files. Each result is kept with what it depended on.

Results are kept by the digest of the files, so a version runs once, whichever arm comes to it and however often.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from bench.common.bounds import Lookup, Many
from bench.run.sandbox import Limits, run_python
from bench.run.sandbox.cases import same
from bench.scenario import Json
from bench_code import units
from bench_code.record import ABSENT, Fact
from bench_code.units import digest

from . import program

SENT_ALONG = {"units.py": Path(units.__file__).read_text(encoding="utf-8")}
PROGRAM = Path(program.__file__).read_text(encoding="utf-8").replace(f"from {units.__name__} import", "from units import")
"""The program as the sandbox gets it, with the files that are sent along beside it."""
LIMITS = Limits(cpu_seconds=2)
FileTexts = Mapping[str, str]


@dataclass(frozen=True)
class CallTest:
    """A call and what it must return."""

    name: str
    call: str
    value: Json


class ModuleVersion(BaseModel):
    """A module's skeleton and the bodies of its functions, as digests."""

    model_config = ConfigDict(frozen=True)

    skeleton: str
    bodies: Lookup[str, str]


class _SuiteSeen(BaseModel):
    """The sandbox's output, which can be anything."""

    modules: Lookup[str, ModuleVersion]
    imports: Lookup[str, Many[str]]
    runs: Many[Lookup[str, Any]]


_SUITE_SEEN = TypeAdapter(_SuiteSeen)


@dataclass(frozen=True)
class FilesVersion:
    """The files at one moment, parsed."""

    files: FileTexts
    modules: Mapping[str, ModuleVersion]

    def value(self, fact: Fact) -> str:
        """Return the value of a fact of this kind and name at this version."""
        path, _, function = fact.name.partition("::")
        if fact.kind == "file":
            return digest(self.files[path])
        return self.modules[path].bodies.get(function, ABSENT) if fact.kind == "body" else self.modules[path].skeleton

    def fact(self, kind: str, name: str) -> Fact:
        """Return a fact as it is at this version."""
        return Fact(kind, name, self.value(Fact(kind, name, "")))

    def holds(self, facts: frozenset[Fact]) -> bool:
        """Return whether all these facts hold at this version."""
        return all(self.value(fact) == fact.value for fact in facts)


@dataclass(frozen=True)
class CallResult:
    """The result of a test's run.

    passed     whether the call returned what it must
    recorded   what the run relied on: the bodies that ran, and the skeletons of their modules and of the modules they import
    declared   the files that a person would list: of the module that it calls, and of the modules that this imports
    """

    passed: bool
    recorded: frozenset[Fact]
    declared: frozenset[Fact]


@dataclass(frozen=True)
class SuiteRun:
    """A version of the files, and the result of each test there, by the test's name."""

    version: FilesVersion
    results: Mapping[str, CallResult]

    @property
    def passes(self) -> bool:
        """Return whether all tests pass."""
        return all(result.passed for result in self.results.values())


class Suite:
    """The tests of a case.

    Attributes:
        tests: The tests, in the order in which they run.
        runs: How many versions ran in the sandbox.
    """

    def __init__(self, tests: Sequence[CallTest]):
        self.tests = tests
        self.runs = 0
        self._kept: dict[str, SuiteRun] = {}

    def run(self, files: FileTexts) -> SuiteRun:
        """Return the tests' results at a version."""
        key = digest(json.dumps(sorted(files.items())))
        if key not in self._kept:
            self.runs += 1
            self._kept[key] = self._ran(files)
        return self._kept[key]

    def _ran(self, files: FileTexts) -> SuiteRun:
        job = {"files": dict(files), "calls": [test.call for test in self.tests]}
        result = run_python(SENT_ALONG, PROGRAM, job, LIMITS)
        seen = _seen(result.value if result.ok else None, files, len(self.tests))
        version = FilesVersion(files, seen.modules)
        imports = {path: frozenset(seen.imports[path]) & frozenset(files) for path in files}
        results = {test.name: _result(test, run, version, imports) for test, run in zip(self.tests, seen.runs, strict=True)}
        return SuiteRun(version, results)


def _seen(value: Json, files: FileTexts, tests: int) -> _SuiteSeen:
    """Return the sandbox's report on these files. Without a valid report each file is one skeleton, and nothing ran."""
    try:
        seen = _SUITE_SEEN.validate_python(value)
        if set(seen.modules) == set(seen.imports) == set(files) and len(seen.runs) == tests:
            return seen
    except ValidationError:
        pass
    modules = {path: ModuleVersion(skeleton=digest(text), bodies={}) for path, text in files.items()}
    return _SuiteSeen(modules=modules, imports=dict.fromkeys(files, ()), runs=({"ran": []},) * tests)


def _result(test: CallTest, seen: Json, version: FilesVersion, imports: Mapping[str, frozenset[str]]) -> CallResult:
    """Return the result of a test. If nothing ran, the reason is unknown, so the result depends on all files."""
    listed = seen["ran"] if isinstance(seen.get("ran"), list) else []
    ran = [name for name in map(str, listed) if name.partition("::")[0] in version.files]
    used = _closure({name.partition("::")[0] for name in ran} or set(version.files), imports)
    called = {path for path in version.files if re.search(rf"\b{Path(path).stem}\.", test.call)}
    declared = called.union(*(imports[path] for path in called))
    recorded = {version.fact("body", name) for name in ran} | {version.fact("skeleton", path) for path in used}
    if not ran:
        recorded |= {version.fact("file", path) for path in version.files}
    passed = "value" in seen and same(seen["value"], json.loads(json.dumps(test.value)))
    return CallResult(passed, frozenset(recorded), frozenset(version.fact("file", path) for path in declared))


def _closure(paths: set[str], imports: Mapping[str, frozenset[str]]) -> set[str]:
    waiting, reached = list(paths), set(paths)
    while waiting:
        more = imports[waiting.pop()] - reached
        reached |= more
        waiting.extend(more)
    return reached
