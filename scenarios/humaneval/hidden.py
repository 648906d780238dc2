"""Run the hidden tests on an answer, in three runs of the sandbox, so that tests and answer never share a process.

1. The tests run on the reference solution, and what they call is noted: once a problem.
2. These calls are made of the answer. Its process knows no test, no solution and no expected value.
3. The tests run again, on the values that the answer returned, without any of its code.

So an answer can print, patch, exit, or compare equal to everything as it likes: what counts of it are plain values.
"""

from __future__ import annotations

from functools import lru_cache

from .problems import Problem
from .sandboxed import Failed, record, replay, run_answer


def failure_of(code: str, problem: Problem) -> Failed | None:
    """Return the failure of the hidden tests; None if they pass. Raises SandboxBroken if the tests cannot be run on the
    reference."""
    calls = _calls(problem)
    ran = run_answer(code, problem.given, problem.entry_point, calls)
    if isinstance(ran, Failed):
        return ran
    ended = replay(_tests(problem), calls, ran.returned)
    if isinstance(ended, Failed):
        return ended
    at = f"call {ended['calls']} of {len(calls)}"
    if ended["ended"] == "raised":
        return Failed("exception", f"{ran.raised or 'no value'}, {at}")
    return Failed("wrong value", at) if ended["ended"] == "wrong value" else None


@lru_cache(maxsize=256)
def _calls(problem: Problem) -> tuple[str, ...]:
    return record(_tests(problem), problem.reference)


def _tests(problem: Problem) -> dict[str, str]:
    return {"given": problem.given, "entry_point": problem.entry_point, "test": problem.test}
