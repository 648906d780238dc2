"""Run the functions of `probe.py` in the sandbox, and read their results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.common.errors import one_line
from bench.run.sandbox import Limits, SandboxBroken, SandboxResult, run_python
from bench.scenario import Json

from . import probe

LIMITS = Limits(wall_seconds=30.0, cpu_seconds=3)
"""CPU time ends a loop, after three seconds as in the package's own harness; the wall is far off, lest a busy machine make a
right answer wrong."""
PROBE = inspect.getsource(probe)
LONGEST = 200
"""Characters of an exception's words, and of a value's literal in words."""

Failure = Literal["syntax", "no function", "time limit", "exception", "wrong value"]


@dataclass(frozen=True)
class Failed:
    """Why code is wrong; `detail` is one line."""

    failure: Failure
    detail: str


@dataclass(frozen=True)
class Ran:
    """The result of calls. `returned` has a literal for each call up to the first that raised; `raised` is its exception, "" if
    none did."""

    returned: tuple[str, ...]
    raised: str = ""


def run_answer(code: str, given: str, entry_point: str, calls: Sequence[str]) -> Ran | Failed:
    """Load code after the prompt's part, and make calls of its function."""
    job = {"given": given, "code": code, "entry_point": entry_point, "calls": list(calls)}
    ran = _run("answer", job)
    if not ran.ok:
        return Failed("time limit" if ran.timed_out else "exception", ran.problem)
    return _read(ran.value, entry_point, len(calls))


def _read(said: Json, entry_point: str, most: int) -> Ran | Failed:
    """Parse the result. The answer's process may have written anything."""
    match said:
        case {"unloaded": str(why)}:
            is_syntax = why.startswith(("SyntaxError", "IndentationError", "TabError"))
            return Failed("syntax" if is_syntax else "exception", _said(why))
        case {"lacks": str()}:
            return Failed("no function", f"it defines no function {entry_point}")
        case {"returned": [*returned], "raised": str(raised)} if len(returned) <= most and {*map(type, returned)} <= {str}:
            return Ran(tuple(returned), _said(raised))
    return Failed("exception", "wrote a result that cannot be read")


def _said(words: str) -> str:
    """Return a message without memory addresses, which differ each time."""
    return one_line(re.sub(r"\b0x[0-9a-f]+", "0x...", words[: 8 * LONGEST]), LONGEST)


def record(tests: Mapping[str, str], reference: str) -> tuple[str, ...]:
    """Return the calls that the tests make of the reference solution. Raises SandboxBroken if the tests cannot be run."""
    ran = _run("record", {**tests, "reference": reference})
    if not ran.ok:
        raise SandboxBroken(f"the tests of {tests['entry_point']} cannot be run on the reference: {ran.problem}")
    return tuple(ran.value)


def replay(tests: Mapping[str, str], calls: Sequence[str], returned: Sequence[str]) -> Json | Failed:
    """Run the tests, which the reference passed, on the values that an answer returned for these calls."""
    ran = _run("replay", {**tests, "calls": list(calls), "returned": list(returned)})
    return ran.value if ran.ok else Failed("wrong value", f"the tests cannot be run on what it returned: {ran.problem}")


def are_equal(pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Return, for each pair of literals, whether they have equal values. The first of each is from an answer: if they cannot be
    compared within the limits, they are not equal."""
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    ran = _run("compare", [list(pair) for pair in differing]) if differing else SandboxResult(True, [])
    found = iter(ran.value if ran.ok else [False] * len(differing))
    return [one == other or next(found) for one, other in pairs]


def _run(function: Literal["record", "answer", "replay", "compare"], job: Json) -> SandboxResult:
    return run_python({"probe.py": PROBE}, f"from probe import {function} as main", job, LIMITS)
