"""Test cases as text: in each line one call and its expected result.

parse_duration("1h30m") == 5400
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from bench.run.sandbox.cases import Case


@dataclass(frozen=True)
class Cases:
    """Calls of one function."""

    function: str
    cases: tuple[Case, ...]


def cases_of(text: str) -> Cases:
    """Parse test cases, one call in each line. Raises ValueError for a line that is no call, and for calls of different
    functions."""
    calls = [_call(line) for line in text.splitlines() if line.strip()]
    names = sorted({name for name, _ in calls})
    if len(names) != 1:
        raise ValueError(f"the cases must call one function, and call {', '.join(names) or 'none'}")
    return Cases(names[0], tuple(case for _, case in calls))


def _call(line: str) -> tuple[str, Case]:
    """Parse one line. Only literals are evaluated; nothing is run."""
    match ast.parse(line.strip(), mode="eval").body:
        case ast.Compare(ast.Call(ast.Name(name), arguments, []), [ast.Eq()], [expected]):
            return name, Case(tuple(map(ast.literal_eval, arguments)), ast.literal_eval(expected))
    raise ValueError(f"'{line.strip()}' is no case; write CALL == VALUE, all literals")
