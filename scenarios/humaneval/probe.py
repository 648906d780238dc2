"""The functions that run in the sandbox. A call is the text of an expression; a value is returned as the text of a Python
literal.

record   runs the tests on the reference solution, and notes what they call
answer   makes such calls of an answer's function: the only one that runs untrusted code, and it knows no test
replay   runs the tests on what the answer returned
compare  says which values are those that are expected
"""

from __future__ import annotations

import ast
import copy
import random
import sys
import types
from collections.abc import Callable
from typing import Any

ATOMS: tuple[type[Any], ...] = (bool, int, float, complex, str, bytes)
SEED = 0


class Raised(Exception):
    """The answer's code raised an exception at this call."""


def record(job: dict[str, str]) -> list[str]:
    solve, calls = _space(job["reference"])[job["entry_point"]], list[str]()

    def recorder(*values: Any) -> Any:
        calls.append(_call(job["entry_point"], values))
        return solve(*copy.deepcopy(values))

    _check(job, recorder)
    return calls


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Return the result of each call, up to the first that raised; or why the code could not be loaded."""
    try:
        space = _module(job["given"], job["code"])
    except BaseException as error:  # SystemExit too
        return {"unloaded": _said(error)}
    if not callable(space.get(job["entry_point"])):
        return {"lacks": job["entry_point"]}
    returned = list[str]()
    for call in job["calls"]:
        random.seed(SEED)
        try:
            returned.append(repr(_plain(eval(call, space))))
        except BaseException as error:
            return {"returned": returned, "raised": _said(error)}
    return {"returned": returned, "raised": ""}


def _module(given: str, code: str) -> dict[str, Any]:
    """Return the names of a module in which code follows the prompt's part, with line numbers of its own."""
    module = sys.modules["answer"] = types.ModuleType("answer")
    exec(given, vars(module))
    exec(compile(code, "answer.py", "exec"), vars(module))
    return vars(module)


def replay(job: dict[str, Any]) -> dict[str, Any]:
    """Return how many calls the tests made, and how they ended: "passed", "raised" (the answer's code did) or "wrong value".

    A test that fails may make another call than it did, to say what was wrong.
    """
    returned, made = job["returned"], 0

    def replayer(*values: Any) -> Any:
        nonlocal made
        assert job["calls"][made] == _call(job["entry_point"], values)
        made += 1
        if made > len(returned):
            raise Raised
        return _value(returned[made - 1])

    try:
        _check(job, replayer)
    except Raised:
        return {"ended": "raised", "calls": made}
    except Exception:  # a value of another type makes a test fail in any way
        return {"ended": "wrong value", "calls": made}
    return {"ended": "passed", "calls": made}


def compare(pairs: list[list[str]]) -> list[bool]:
    """Return whether the two literals of each pair have equal values. A text that is no literal equals nothing."""
    values = [[_value(literal) for literal in pair] for pair in pairs]
    return [one is not ... and bool(one == other) for one, other in values]


def _space(source: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "tests"}
    exec(source, space)
    return space


def _check(job: dict[str, Any], candidate: Callable[..., Any]) -> None:
    """Run the tests. Some tests use names from the prompt, and some call the function by its own name."""
    space = {**_space(job["given"]), job["entry_point"]: candidate}
    exec(job["test"], space)
    random.seed(SEED)
    space["check"](candidate)


def _call(name: str, values: tuple[Any, ...]) -> str:
    return f"{name}({', '.join(map(repr, values))})"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _plain(value: Any) -> Any:
    """Return the value in types that have a literal. Other values become `...`, which no test expects."""
    if isinstance(value, list | tuple | set):
        base = next(kind for kind in (list, tuple, set) if isinstance(value, kind))
        return base(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value if value is None else next((kind(value) for kind in ATOMS if isinstance(value, kind)), ...)


def _value(literal: str) -> Any:
    try:
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ...
