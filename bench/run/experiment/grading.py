"""Grade answers when their trials end. Equal answers are graded once.

A grader is a pack's code, and an answer can make it fail. If the grader raises an exception on an answer, the answer is wrong,
with a note. If the grader also raises on the pack's reference, that is an error of the pack.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.common.digests import digest_of
from bench.common.errors import Unguarded, one_line
from bench.record.places import place_of
from bench.run.packs.environments import of_packs
from bench.run.sandbox import SandboxBroken
from bench.scenario import Answer, Grade, Scenario

MAX_MESSAGE_CHARS = 200
"""Characters of an exception's message that a grade's note quotes."""
GradeKey = tuple[str, str, str]
"""What a grade depends on: (scenario and instance, the grader's digest, the answer's digest)."""


def key_of(scenario: Scenario, answer: Answer) -> GradeKey:
    """Return the key of an answer's grade."""
    text = "\0".join(f"{name}\0{answer[name].model_dump_json()}" for name in scenario.task.answer_names)
    return scenario.key, scenario.graded_by, digest_of(text)


def grade_of(scenario: Scenario, answer: Any) -> Grade:
    """Return the grade of an answer, or of a world at the end of its trial.

    Raises the grader's exception if it also fails on the reference, and SandboxBroken if the sandbox cannot run here.
    """
    try:
        return scenario.grade_world(answer) if scenario.environment else scenario.grade_answer(answer)
    except SandboxBroken:
        raise
    except Exception as error:
        if not _grades_its_reference(scenario):
            raise
        message = one_line(f"{type(error).__name__}: {error}", MAX_MESSAGE_CHARS)
        return Grade(False, 0.0, {}, f"the grader fails on this answer ({place_of(error)}): {message}")


def _grades_its_reference(scenario: Scenario) -> bool:
    """Return whether the grader runs without an exception on the pack's right answer."""
    try:
        if scenario.environment is None:
            scenario.grade_outputs(scenario.reference)
        else:
            scenario.grade_world(of_packs(scenario.environment).right_end(scenario.environment))
    except Exception:
        return False
    return True


@dataclass
class Graders:
    """Grades answers in a thread, and equal answers only once.

    stored    grades that are already known, such as a recording's
    refusal   why graders that run a model's code may not grade here; "" if they may
    """

    stored: Mapping[GradeKey, Grade] = field(default_factory=dict)
    refusal: str = ""
    _grades: dict[GradeKey, Grade] = field(default_factory=dict)

    async def grade(self, scenario: Scenario, answer: Any) -> Grade:
        """Grade an answer, or the content of a world at the end of its trial.

        Raises Unguarded if the answer has no stored grade and may not be graded here, and what `grade_of` raises.
        """
        if scenario.environment:
            content_to_grade = of_packs(scenario.environment).content_to_grade
            return await asyncio.to_thread(lambda: grade_of(scenario, content_to_grade(answer)))
        key = key_of(scenario, answer)
        if (grade := self.stored.get(key) or self._grades.get(key)) is not None:
            return grade
        if self.refusal and scenario.grader_runs_code:
            raise Unguarded(self.refusal)
        self._grades[key] = await asyncio.to_thread(grade_of, scenario, answer)
        return self._grades[key]
