"""Runs the functions of `probe.py` in the sandbox, and reads what comes out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.sandbox import Limits, run_python
from bench.scenario import Json

from . import probe

LIMITS = Limits(wall_seconds=30.0, cpu_seconds=3)
"""CPU time ends a loop, after three seconds as in the package's own harness; the wall is far off, lest a busy machine make a
right answer wrong."""
PROBE = inspect.getsource(probe)
LONGEST = 200
"""Characters of an exception's words."""

Failure = Literal["syntax", "no function", "time limit", "exception", "wrong value"]


@dataclass(frozen=True)
class Failed:
    """Why code does not do what it is to do; `detail` is one line."""

    failure: Failure
    detail: str


@dataclass(frozen=True)
class Ran:
    """`returned` has a literal for each call up to the first that raised; `raised` is its exception, "" where none did."""

    returned: tuple[str, ...]
    raised: str = ""


def run_answer(code: str, given: str, entry_point: str, calls: Sequence[str]) -> Ran | Failed:
    """Load code behind what its prompt gives, and make calls of its function."""
    files = {"probe.py": PROBE, "answer.py": f"{given}\n\n{code}"}
    ran = run_python(files, _program("answer"), {"entry_point": entry_point, "calls": list(calls)}, LIMITS)
    if not ran.ok:
        return Failed("time limit" if ran.out_of_time else "exception", ran.problem)
    return _read(ran.value, len(calls))


def _read(said: Json, most: int) -> Ran | Failed:
    """The answer's process may have said anything."""
    match said:
        case {"unloaded": str(why)}:
            return Failed(
                "syntax" if why.startswith(("SyntaxError", "IndentationError", "TabError")) else "exception", one_line(why)
            )
        case {"lacks": str(name)}:
            return Failed("no function", f"there is no function {name}")
        case {"returned": [*returned], "raised": str(raised)} if len(returned) <= most and {*map(type, returned)} <= {str}:
            return Ran(tuple(returned), one_line(raised))
    return Failed("exception", "wrote a result that cannot be read")


def one_line(words: str) -> str:
    """Without addresses, which differ each time."""
    return re.sub(r"\b0x[0-9a-f]+", "0x...", " ".join(words.split()))[:LONGEST]


def run_tests(function: Literal["record", "replay"], job: Json) -> Json:
    """Run what holds no untrusted code. Raises RuntimeError where it fails."""
    ran = run_python({"probe.py": PROBE}, _program(function), job, LIMITS)
    if not ran.ok:
        raise RuntimeError(f"the tests of {job['entry_point']} cannot be run: {ran.problem}")
    return ran.value


def _program(function: str) -> str:
    return f"from probe import {function} as main"
