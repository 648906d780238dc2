"""Make an instance of a problem for all variants: document, reference, wrong answers and truth."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from bench.scenario import Json, WrongAnswer

from .mutants import chosen, mutated
from .problems import problem

CODED = ("code", "final", "solution")
"""The subtasks whose output is the function."""


@dataclass(frozen=True)
class Instance:
    documents: Mapping[str, str]
    reference: Mapping[str, Json]
    wrong: Mapping[str, tuple[str, str]]  # name -> code, why it is wrong
    truth: Json

    def wrong_in(self, subtasks: Collection[str]) -> tuple[WrongAnswer, ...]:
        """Return the wrong answers of a variant with these subtasks."""
        names = [name for name in CODED if name in subtasks]
        return tuple(WrongAnswer(name, why, {one: {"code": code} for one in names}) for name, (code, why) in self.wrong.items())


def instance_of(instance: str) -> Instance:
    one = problem(instance)
    reference = {
        "plan": {"steps": ["Do what the docstring says."]},
        "review": {"is_right": True, "problem": ""},
        **{name: {"code": one.reference} for name in CODED},
    }
    wrong = {kind: mutated(one.reference, place) for kind, place in chosen()[instance].items()}
    if not wrong:
        wrong["returns_none"] = (f"{one.prompt}    return None\n".lstrip("\n"), "it has no body")
    return Instance({"problem.py": one.prompt.strip("\n")}, reference, wrong, asdict(one))
