"""The types of a scenario: a task that models can see, and a grader, which is the only code that knows the truth.

A pack is a folder `scenarios/<pack>/` whose `scenario.py` defines `scenario(folder) -> Scenario`, or, for many tasks of one
kind, `instances(folder)` and `scenario(folder, instance)`. `bench.run.packs` says how a pack is found, loaded and refused. A
pack imports everything from here; `bench.task` defines what its task is made of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

from bench.common.errors import one_line
from bench.record.grade import MAX_PARTS, Grade
from bench.task import (
    CODE,
    LARGEST_OUTPUT,
    MAX_LINES,
    Check,
    Code,
    Context,
    Document,
    Finding,
    Inputs,
    Json,
    NotRead,
    Output,
    Subtask,
    Task,
    as_document,
    schema_of,
)

__all__ = [
    "CODE",
    "LARGEST_OUTPUT",
    "LONGEST_NOTE",
    "MAX_LINES",
    "MAX_PARTS",
    "Answer",
    "Baseline",
    "Call",
    "Check",
    "Code",
    "Context",
    "Document",
    "Finding",
    "Grade",
    "Grader",
    "Inputs",
    "Json",
    "NotRead",
    "Output",
    "Scenario",
    "Subtask",
    "Task",
    "TaskEnvironment",
    "WrongAnswer",
    "as_document",
    "scenario_key",
    "schema_of",
]

LONGEST_NOTE = 2000
"""The most characters of a check's or a grader's text that are stored. The text may repeat what hostile code returned."""


class AnswerOutputs(Inputs):
    """The graded outputs, by subtask. A missing subtask raises NotRead."""

    lacks, has = "the answer has no output", "it has"


Answer = Mapping[str, Any]
"""The graded answer, of one type for all architectures: subtask -> its valid output, for each of `Task.answer_names`."""


Grader = Callable[[Any, Any], Grade]
"""(answer, truth) -> its grade. It is the only code that reads the truth: the Path of the pack's truth folder, unless the pack
gives a JSON value. In a pack with a world the answer is the `FinalWorld`, never what the agent says."""

Baseline = Callable[[Mapping[str, str]], Mapping[str, Json]]
"""Documents -> subtask -> JSON: an answer made by keyword rules without a model; empty if they find none."""


@dataclass(frozen=True)
class WrongAnswer:
    """A plausible wrong answer, which the grader must refuse: the reference with some outputs exchanged.

    name      the name of its file
    why       what is wrong with it, in one line
    outputs   subtask -> the JSON that replaces the reference's output
    """

    name: str
    why: str
    outputs: Mapping[str, Json]


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    tool        the tool's name
    arguments   its arguments, as JSON by name
    """

    tool: str
    arguments: Mapping[str, Any]


class TaskEnvironment(Protocol):
    """The environment of a pack's task besides its documents, for instance a world that tools act on.

    A kind of environment has a type with these attributes, and registers the functions that run it
    (`bench.run.packs.environments`).

    part    the name of the kind's entry
    given   names of documents that are given with each call
    right   (subtask, documents) -> the right output in that state, as JSON; None if the pack does not say
    """

    part: ClassVar[str]

    @property
    def given(self) -> tuple[str, ...]:
        """The names of documents that are given with each call."""

    @property
    def right(self) -> Callable[[str, Mapping[str, str]], Json] | None:
        """The function that answers for a simulated model; None if the pack does not say."""


@dataclass(frozen=True)
class Scenario:
    """One instance of a pack, loaded in one variant.

    name        the pack's name, followed by `:variant` if that is not the first; all instances share it
    instance    the instance's name; "" if the pack has only one
    truth       what only the grader reads: the Path of a folder, or a JSON value
    reference   subtask -> the JSON of an output that solves it
    wrong       answers that a careless grader would accept
    secrets     texts that would give the answer away, so no document and no instruction may contain them
    asked       digest of all that is asked: texts, schemas, and the pack's code except what only grades
    graded_by   digest of what grades: the truth, and the code that only the grader and the baseline reach
    made_by     the function that made documents, reference, wrong answers and truth, if code did. The digests hold what it
                makes, so an edit that makes the same voids no run. It returns values, and no functions
    environment   the task's environment, an `Environment` such as a world that tools act on; None if it has none
    graded      whether there is an answer to grade; otherwise calls are only counted
    checks_run_code, grader_runs_code   whether these run an answer's code, in the sandbox
    checks_use_sandbox   whether a check can wait for the sandbox, to run code or to parse it
    """

    name: str
    variant: str
    task: Task
    grade: Grader
    truth: Any
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    baseline: Baseline
    secrets: tuple[str, ...] = ()
    instance: str = ""
    asked: str = ""
    graded_by: str = ""
    made_by: Callable[..., Any] | None = None
    graded: bool = True
    checks_use_sandbox: bool = False
    checks_run_code: bool = False
    grader_runs_code: bool = False
    environment: Any = None

    @property
    def key(self) -> str:
        """The key that distinguishes this instance in a run."""
        return scenario_key(self.name, self.instance)

    @cached_property
    def reference_digest(self) -> str:
        """The digest of the reference and the wrong outputs.

        A simulated model answers with them, and `wrong_value` draws from them.
        """
        text = json.dumps([self.reference, [wrong.outputs for wrong in self.wrong]])
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def grade_answer(self, answer: Answer) -> Grade:
        """Grade an answer. The grader gets the outputs named by `Task.answer_names` and no others.

        Args:
            answer: Valid outputs by subtask.

        Returns:
            The grade.

        Raises:
            KeyError: An output is missing.
            TypeError: The grader returned no Grade. Whatever the grader raises is raised as well.
        """
        return self._grade(self._answer({name: answer[name] for name in self.task.answer_names}))

    def grade_world(self, world: Any) -> Grade:
        """Grade the final state of the task's environment.

        Args:
            world: The state that the pack's grader is given, a `FinalWorld`.

        Returns:
            The grade.

        Raises:
            TypeError: The grader returned no Grade. Whatever the grader raises is raised as well.
        """
        return self._grade(world)

    def _grade(self, answer: Any) -> Grade:
        """Call the grader, and return its grade with a note of one line. Raises TypeError if it returns no Grade."""
        grade = self.grade(answer, self.truth)
        if not isinstance(grade, Grade):
            raise TypeError(f"the grader returned {type(grade).__name__}; it must return a bench.scenario.Grade")
        return replace(grade, note=one_line(grade.note, LONGEST_NOTE))

    def grade_outputs(self, outputs: Mapping[str, Json]) -> Grade:
        """Grade an answer given as JSON.

        Args:
            outputs: JSON by subtask.

        Returns:
            The grade.

        Raises:
            ValidationError: An output does not fit its schema.
            KeyError: An output is missing.
        """
        return self.grade_answer(self.answer_of(outputs))

    def answer_of(self, outputs: Mapping[str, Json]) -> Answer:
        """Return the answer made from JSON by subtask.

        Args:
            outputs: JSON by subtask.

        Returns:
            Valid outputs by subtask.

        Raises:
            ValidationError: An output does not fit its schema.
            KeyError: An output is missing.
        """
        names = self.task.answer_names
        return self._answer({name: self.task.subtask(name).output.model_validate(outputs[name]) for name in names})

    def _answer(self, outputs: Mapping[str, Any]) -> Answer:
        """Return outputs as the answer that a grader gets."""
        return AnswerOutputs(outputs)

    @cached_property
    def wrong_outputs(self) -> Mapping[str, tuple[Json, ...]]:
        """The wrong outputs of each subtask, collected from all wrong answers."""
        names = {name for wrong in self.wrong for name in wrong.outputs}
        return {name: tuple(wrong.outputs[name] for wrong in self.wrong if name in wrong.outputs) for name in names}


def scenario_key(name: str, instance: str) -> str:
    """Return the key of an instance.

    Args:
        name: The pack's name, with its variant.
        instance: The instance's name; "" if the pack has only one.

    Returns:
        `pack`, or `pack/instance` if the pack has several.
    """
    return f"{name}/{instance}" if instance else name
