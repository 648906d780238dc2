"""Makes an instance of a problem: document, reference, wrong answers and truth, for all variants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from bench.scenario import Json, WrongAnswer

from .problems import problem

CODED = ("code", "final", "solution")
"""The subtasks whose output is the function."""


@dataclass(frozen=True)
class Instance:
    documents: Mapping[str, str]
    reference: Mapping[str, Json]
    wrong: Mapping[str, tuple[str, str]]
    truth: Json

    def wrong_in(self, subtasks: Collection[str]) -> tuple[WrongAnswer, ...]:
        """The wrong answers of a variant that has these subtasks."""
        names = [name for name in CODED if name in subtasks]
        return tuple(WrongAnswer(name, why, {one: {"code": code} for one in names}) for name, (why, code) in self.wrong.items())


def instance_of(instance: str) -> Instance:
    one = problem(instance)
    reference = {
        "plan": {"steps": ["Do what the docstring says."]},
        "review": {"is_right": True, "problem": ""},
        **{name: {"code": one.reference} for name in CODED},
    }
    wrong = {"returns_none": ("it has no body", f"{one.prompt}    return None\n".lstrip("\n"))}
    return Instance({"problem.py": one.prompt.strip("\n")}, reference, wrong, asdict(one))
