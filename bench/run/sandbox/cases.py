"""Run an untrusted function on cases, and return the outcome of each.

    run_cases("def double(x): return x + x", "double", [Case((2,), 4), Case((3,), 6)])

Only code and arguments enter the sandbox: results are compared outside. Arguments and results are JSON values, so a tuple
becomes a list. The code is also compiled in the sandbox, since compiling can take unlimited time and memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from bench.common.errors import one_line
from bench.run.sandbox.parent import Limits, run_python
from bench.scenario import LARGEST_OUTPUT, Json

CaseKind = Literal["right", "wrong value", "exception", "time limit", "no function", "syntax"]

LIMITS = Limits(wall_seconds=15.0, cpu_seconds=1)
"""The CPU time ends an endless loop. The wall time is long, so that a busy machine does not make a right answer wrong."""
MAX_VALUE_CHARS = 160
"""Characters of a call or a value that a message shows."""
MAX_MESSAGE_CHARS = 600
"""Characters of the message about a case."""

PROGRAM = """
import json, sys

def main(job):
    try:
        code = compile(job["code"], "solution.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"kind": "syntax", "words": f"line {error.lineno}: {error.msg}"}
    except (ValueError, RecursionError, MemoryError) as error:
        return {"kind": "syntax", "words": type(error).__name__}
    solution = sys.modules["solution"] = type(sys)("solution")
    try:
        exec(code, vars(solution))
    except Exception as error:
        return {"kind": "exception", "words": words(error)}
    function = getattr(solution, job["function"], None)
    if not callable(function):
        return {"kind": "no function", "words": ""}
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
    """The arguments of a call, by position, and the result that it must return: JSON values."""

    arguments: tuple[Json, ...]
    expected: Json


@dataclass(frozen=True)
class CaseOutcome:
    """The outcome of one case. `words` says in one line what is wrong; "" if nothing is wrong."""

    kind: CaseKind
    words: str = ""


def run_cases(code: str, function: str, cases: Sequence[Case]) -> list[CaseOutcome]:
    """Return the outcome of each case. All cases run in one process: if it ends early, all cases have that outcome."""
    if not cases:
        return []
    calls = json.dumps([case.arguments for case in cases])
    result = _result_of_code(code, function, calls)
    if isinstance(result, dict):
        result = _outcome_without_calls(result, function)
    if isinstance(result, CaseOutcome):
        return [result] * len(cases)
    if not isinstance(result, list) or len(result) != len(cases):
        return [CaseOutcome("exception", "the code puts another program in the place of the one that calls it")] * len(cases)
    return [_outcome(function, case, returned) for case, returned in zip(cases, result, strict=True)]


@lru_cache(maxsize=64)
def _result_of_code(code: str, function: str, calls: str) -> CaseOutcome | Json:
    """Return the program's result, or why there is none. The result is cached, since the same code is judged several times.
    Callers must not change it."""
    if len(code) > LARGEST_OUTPUT:
        return _syntax_outcome(f"it has {len(code):,} characters, and may have {LARGEST_OUTPUT:,}")
    job = {"code": code, "function": function, "calls": json.loads(calls)}
    result = run_python({"solution.py": code}, PROGRAM, job, LIMITS)
    if result.timed_out:
        return CaseOutcome("time limit", f"the code runs longer than {LIMITS.cpu_seconds} s")
    return result.value if result.ok else CaseOutcome("exception", _line(f"the code ends its process: {result.problem}"))


def _outcome_without_calls(report: dict[str, Any], function: str) -> CaseOutcome:
    """Return the outcome of all cases if no call was made. `report` comes from the sandbox, so it can be anything."""
    words = str(report.get("words"))
    match report.get("kind"):
        case "syntax":
            return _syntax_outcome(words)
        case "no function":
            return CaseOutcome("no function", f"the code defines no function {function}")
    return CaseOutcome("exception", _line(f"the code fails before it is called: {words}"))


def _syntax_outcome(words: str) -> CaseOutcome:
    """Return the outcome of code that is no valid Python."""
    return CaseOutcome("syntax", _line(f"the code is no valid Python: {words}"))


def _outcome(function: str, case: Case, returned: Json) -> CaseOutcome:
    """Return the outcome of one case from the value or the exception of its call."""
    call = _cut(f"{function}({', '.join(map(repr, case.arguments))})")
    if not isinstance(returned, dict) or "value" not in returned:
        message = returned.get("raised") if isinstance(returned, dict) else returned
        return CaseOutcome("exception", _line(f"{call} raised {_cut(str(message))}"))
    if same(returned["value"], case.expected):
        return CaseOutcome("right")
    return CaseOutcome(
        "wrong value", _line(f"{call} returned {_cut(repr(returned['value']))}; it must return {case.expected!r}")
    )


def same(first: Json, other: Json) -> bool:
    """Return whether two JSON values are equal. 1 and 1.0 are equal, True and 1 are not. Numbers are equal despite rounding
    errors."""
    if isinstance(first, bool) or isinstance(other, bool):
        return first is other
    if isinstance(first, dict) and isinstance(other, dict):
        return first.keys() == other.keys() and all(same(first[key], other[key]) for key in first)
    if isinstance(first, list) and isinstance(other, list):
        return len(first) == len(other) and all(map(same, first, other))
    if isinstance(first, int | float) and isinstance(other, int | float):
        return _is_close(first, other) if float in (type(first), type(other)) else first == other
    return type(first) is type(other) and bool(first == other)


def _is_close(first: float, other: float) -> bool:
    """Return whether two numbers, of which one is a float, are equal but for rounding errors."""
    try:
        return math.isclose(first, other, rel_tol=1e-9, abs_tol=1e-9)
    except OverflowError:  # an integer larger than any float
        return False


def _cut(text: str) -> str:
    """Return the first MAX_VALUE_CHARS of a text."""
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}..."


def _line(text: str) -> str:
    return one_line(text, MAX_MESSAGE_CHARS)
