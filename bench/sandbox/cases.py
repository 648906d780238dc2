"""Run a function that nobody trusts on cases, and say what came of each.

    run_cases("def double(x): return x + x", "double", [Case((2,), 4), Case((3,), 6)])

Only code and arguments enter the sandbox: what should come of them is compared outside. Arguments and results are JSON values,
so that a tuple is a list.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from bench.sandbox.parent import Limits, run_python
from bench.scenario import LARGEST_OUTPUT, Json

Kind = Literal["right", "wrong value", "exception", "time limit", "no function", "syntax"]

LIMITS = Limits(wall_seconds=15.0, cpu_seconds=1)
"""CPU time ends a loop; the wall is far off, lest a busy machine make a right answer wrong."""
LONGEST = 160
"""Characters of a call or a value, in words."""

PROGRAM = """
import json

def main(job):
    try:
        import solution
    except Exception as error:
        return {"kind": "exception", "words": "the code fails before it is called: " + words(error)}
    function = getattr(solution, job["function"], None)
    if not callable(function):
        return {"kind": "no function", "words": "the code defines no function " + job["function"]}
    return [called(function, arguments) for arguments in job["calls"]]

def called(function, arguments):
    try:
        value = function(*arguments)
    except Exception as error:
        return {"raised": words(error)}
    try:
        return {"value": json.loads(json.dumps(value))}
    except (TypeError, ValueError, RecursionError):
        return {"raised": "a result of type " + type(value).__name__ + ", which is no JSON value"}

def words(error):
    return type(error).__name__ + ": " + str(error)
"""


@dataclass(frozen=True)
class Case:
    """Arguments of a call, by position, and what it must return: JSON values."""

    arguments: tuple[Json, ...]
    expected: Json


@dataclass(frozen=True)
class Outcome:
    """What came of one case; `words` say in one line what is wrong with it, and are empty where nothing is."""

    kind: Kind
    words: str = ""


def run_cases(code: str, function: str, cases: Sequence[Case]) -> list[Outcome]:
    """One outcome for each case. All run in one process: where it ends before its time, each has the outcome of that."""
    if not cases:
        return []
    calls = json.dumps([case.arguments for case in cases])
    ran = _ran(code, function, calls)
    if isinstance(ran, Outcome):
        return [ran] * len(cases)
    seen = json.loads(ran)
    if isinstance(seen, dict):
        return [_of_all(seen)] * len(cases)
    if not isinstance(seen, list) or len(seen) != len(cases):
        return [Outcome("exception", "the code puts another program in the place of the one that calls it")] * len(cases)
    return [_outcome(function, case, one) for case, one in zip(cases, seen, strict=True)]


@lru_cache(maxsize=1024)
def _ran(code: str, function: str, calls: str) -> Outcome | str:
    """What the program returned, as JSON, or why it did not. Kept, since the same code is judged several times."""
    if problem := unparsable(code):
        return Outcome("syntax", _line(f"the code is no valid Python: {problem}"))
    job = {"function": function, "calls": json.loads(calls)}
    result = run_python({"solution.py": code}, PROGRAM, job, LIMITS)
    if result.timed_out:
        return Outcome("time limit", f"the code runs longer than {LIMITS.cpu_seconds} s")
    return (
        json.dumps(result.value) if result.ok else Outcome("exception", _line(f"the code ends its process: {result.problem}"))
    )


def unparsable(code: str) -> str:
    """Why a text is no Python; empty where it is. Nothing of it is run, and what no output can hold is not looked at."""
    if len(code) > LARGEST_OUTPUT:
        return f"it has {len(code):,} characters, and may have {LARGEST_OUTPUT:,}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a doubtful escape in a model's code is not our warning
        try:
            compile(code, "solution.py", "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"line {error.lineno}: {error.msg}"
        except (ValueError, RecursionError, MemoryError) as error:
            return type(error).__name__
    return ""


def _of_all(seen: dict[str, Any]) -> Outcome:
    """The program's own word on why nothing was called. It comes out of the sandbox, and may be anything."""
    kind: Kind = "no function" if seen.get("kind") == "no function" else "exception"
    return Outcome(kind, _line(str(seen.get("words"))))


def _outcome(function: str, case: Case, seen: Json) -> Outcome:
    call = _cut(f"{function}({', '.join(map(repr, case.arguments))})")
    if not isinstance(seen, dict) or "value" not in seen:
        said = seen.get("raised") if isinstance(seen, dict) else seen
        return Outcome("exception", _line(f"{call} raised {_cut(str(said))}"))
    if same(seen["value"], case.expected):
        return Outcome("right")
    return Outcome("wrong value", _line(f"{call} returned {_cut(repr(seen['value']))}; it must return {case.expected!r}"))


def same(one: Json, other: Json) -> bool:
    """Equality of two JSON values in which 1 and 1.0 are the same, and True and 1 are not. A rounding error is forgiven."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) if float in (type(one), type(other)) else one == other
    return type(one) is type(other) and bool(one == other)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _line(text: str) -> str:
    return " ".join(text.split())
