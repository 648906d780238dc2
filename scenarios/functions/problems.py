"""The problems, in one file for each level: the shown parts, the hidden tests, and the solutions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from bench.scenario import Json, WrongAnswer

from .written import cases_of

FOLDER = Path(__file__).parent / "problems"


@dataclass(frozen=True)
class Problem:
    """The texts of a problem, from its file. `wrong` maps names to {"why", "code"}."""

    signature: str
    specification: str
    examples: str
    tests: str
    solution: str
    wrong: Mapping[str, Mapping[str, str]]

    @property
    def documents(self) -> dict[str, str]:
        return {"specification.md": f"{self.signature}\n\n{self.specification.strip()}", "examples.txt": self.examples.strip()}

    @property
    def truth(self) -> dict[str, Json]:
        hidden = cases_of(self.tests)
        return {"function": hidden.function, "tests": [[list(case.arguments), case.expected] for case in hidden.cases]}

    @cached_property
    def reference(self) -> dict[str, Json]:
        """Return the reference outputs. The plan consists of the specification's own sentences."""
        sentences = re.split(r"(?<=\.)\s+", " ".join(self.specification.split()))
        return {"plan": {"steps": sentences}, "code": {"code": self.solution}}

    @property
    def wrong_answers(self) -> tuple[WrongAnswer, ...]:
        return tuple(WrongAnswer(name, one["why"], {"code": {"code": one["code"]}}) for name, one in self.wrong.items())


@cache
def problems(level: str) -> Mapping[str, Problem]:
    """Return the problems of a level by name, in the order of their file."""
    with (FOLDER / f"{level}.toml").open("rb") as file:
        return {name: _problem(fields) for name, fields in tomllib.load(file).items()}


def _problem(fields: Mapping[str, Any]) -> Problem:
    texts = {name: fields[name] for name in ("signature", "specification", "examples", "tests")}
    return Problem(**texts, solution=fields["reference"], wrong=fields["wrong"])
