"""What a scenario is: a task that models can see, and a grader that alone knows the truth.

A pack is a folder `scenarios/<pack>/` whose `scenario.py` defines `scenario(folder) -> Scenario`. See `bench.packs`
for how it is found, loaded and refused. Example of the smallest subtask:

    Subtask(name="triage", instructions="List the error lines of `app.log`.", reads=("app.log",), output=Triage)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

Json = Any
"""A value that came out of `json.loads`: nothing is known of it before it is verified."""


class Output(BaseModel):
    """The base of every subtask's output type. Unknown fields are ignored, strict types are not asked of a model."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@dataclass(frozen=True)
class Context:
    """What a check may look at beside the output it judges: all documents, and the outputs that the subtask reads."""

    documents: Mapping[str, str]
    outputs: Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """A validating subtask's word that an earlier subtask's output is wrong."""

    subtask: str
    reason: str


Check = Callable[[Any, Context], str | None]
"""A deterministic check beyond the schema: the reason to reject the output, in one line, or None."""


@dataclass(frozen=True)
class Subtask:
    """One narrowly scoped judgment.

    reads        names of documents and of earlier subtasks; nothing else is put into its prompt
    checks       run after the schema, and only where every subtask it reads has a valid output
    sufficient   why a valid output is too weak (empty, unsure), or None; asked by architectures that branch at runtime
    skip         given the outputs so far, the output to commit without asking a model, or None where it is needed
    finds        given its own output, the earlier subtask that it found wrong, or None
    checkpoint   static decomposition verifies here what it handed on unverified
    """

    name: str
    instructions: str
    reads: tuple[str, ...]
    output: type[Output]
    checks: tuple[Check, ...] = ()
    sufficient: Callable[[Any], str | None] | None = None
    skip: Callable[[Mapping[str, Any]], Output | None] | None = None
    finds: Callable[[Any], Finding | None] | None = None
    checkpoint: bool = False


@dataclass(frozen=True)
class Task:
    """All that an architecture, and through it a model, may see of a scenario.

    `role` opens every prompt as the system message. The subtasks stand in an order in which each reads earlier ones.
    """

    name: str
    role: str
    documents: Mapping[str, str]
    subtasks: tuple[Subtask, ...]

    def subtask(self, name: str) -> Subtask:
        return next(subtask for subtask in self.subtasks if subtask.name == name)

    @property
    def stages(self) -> tuple[tuple[Subtask, ...], ...]:
        """The subtasks cut after each checkpoint; the last subtask always is one."""
        stages: list[tuple[Subtask, ...]] = []
        stage: list[Subtask] = []
        for subtask in self.subtasks:
            stage.append(subtask)
            if subtask.checkpoint or subtask is self.subtasks[-1]:
                stages.append(tuple(stage))
                stage = []
        return tuple(stages)


@dataclass(frozen=True)
class Grade:
    """What the grader says of an answer.

    `score` is in [0, 1]; `parts` holds the partial scores it is made of, each in [0, 1]; `note` is one line that says why.
    """

    correct: bool
    score: float
    parts: Mapping[str, float]
    note: str = ""


Answer = Mapping[str, Any]
"""The graded answer, of one type for all architectures: a valid output for every subtask, keyed by its name."""


Grader = Callable[[Answer, Path], Grade]
"""(answer, the pack's truth folder) -> its grade: the only code that reads the truth."""

Baseline = Callable[[Mapping[str, str]], Mapping[str, Json]]
"""Documents -> subtask -> JSON: an answer made by keyword rules alone, without a model."""


@dataclass(frozen=True)
class WrongAnswer:
    """A plausible wrong answer: the reference with some outputs exchanged, which the grader must refuse."""

    name: str
    why: str
    outputs: Mapping[str, Json]


@dataclass(frozen=True)
class Scenario:
    """A pack, loaded in one variant; `name` is the pack's, followed by `:variant` where that is not its first.

    reference   subtask -> the JSON of an output that solves it
    wrong       answers that a careless grader would let pass
    secrets     texts that would give the answer away and so may stand in no document and no instruction
    digest      of every file of the pack
    graded      whether there is an answer to grade; else calls are only counted
    """

    name: str
    variant: str
    task: Task
    grade: Grader
    truth: Path
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    baseline: Baseline
    secrets: tuple[str, ...] = ()
    digest: str = ""
    graded: bool = True

    def grade_outputs(self, outputs: Mapping[str, Json]) -> Grade:
        """Grade an answer that is given as JSON by subtask. Raises ValidationError or KeyError where it is no answer."""
        answer = {one.name: one.output.model_validate(outputs[one.name]) for one in self.task.subtasks}
        return self.grade(answer, self.truth)

    @property
    def wrong_outputs(self) -> Mapping[str, tuple[Json, ...]]:
        """Plausible wrong outputs by subtask, from the wrong answers."""
        names = {name for wrong in self.wrong for name in wrong.outputs}
        return {name: tuple(wrong.outputs[name] for wrong in self.wrong if name in wrong.outputs) for name in names}
