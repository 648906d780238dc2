"""Runs tests on a repository in the sandbox, and says in a line what came of each."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bench.common.errors import one_line
from bench.run.sandbox import Limits, run_python
from bench.run.sandbox.cases import same
from bench.scenario import Json

from . import calls as program

LIMITS = Limits(wall_seconds=15.0, cpu_seconds=1)
"""CPU time ends a loop; the wall is far off, lest a busy machine make a right answer wrong."""
PROGRAM = Path(program.__file__).read_text(encoding="utf-8")
LONGEST = 600
"""Characters of a failure."""


@dataclass(frozen=True)
class ProgramTest:
    """A call, and what it must return."""

    name: str
    call: str
    value: Json

    def failure(self, seen: Json) -> str:
        """Why it fails, in a line; "" where it passes. What was seen comes out of the sandbox, and may be anything."""
        if not isinstance(seen, dict) or "value" not in seen:
            words = f"raised {seen.get('raised') if isinstance(seen, dict) else seen}"
        elif same(plain(seen["value"]), plain(self.value)):
            return ""
        else:
            words = f"returned {plain(seen['value'])!r}; it must return {plain(self.value)!r}"
        return one_line(f"{self.name}: {self.call} {words}", LONGEST)


def plain(value: Json) -> Json:
    """The value as JSON has it: a tuple is a list."""
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def written(text: str) -> tuple[ProgramTest, ...]:
    """The tests of a file in which each is `def test_NAME(): assert CALL == VALUE`."""
    found = []
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name, body=[ast.Assert(ast.Compare(call, [ast.Eq()], [value]))]):
                found.append(ProgramTest(name, ast.unparse(call), ast.literal_eval(value)))
    return tuple(found)


def failures(files: Mapping[str, str], tests: Sequence[ProgramTest]) -> list[str]:
    """Of each test why it fails, or "". Where the code ends its process before its time, each fails by that."""
    seen = _seen(tuple(files.items()), tuple(test.call for test in tests))
    if not isinstance(seen, list) or len(seen) != len(tests):
        return [one_line(f"{test.name}: {seen}", LONGEST) for test in tests]
    return [test.failure(one) for test, one in zip(tests, seen, strict=True)]


@lru_cache(maxsize=64)
def _seen(files: tuple[tuple[str, str], ...], calls: tuple[str, ...]) -> Json:
    """What each call returned, which nobody changes. Kept, since the same code is judged several times."""
    result = run_python({}, PROGRAM, {"files": dict(files), "calls": list(calls)}, LIMITS)
    if result.timed_out:
        return f"the code runs longer than {LIMITS.cpu_seconds} s"
    return result.value if result.ok else f"the code ends its process: {result.problem}"
