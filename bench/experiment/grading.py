"""Grades answers as they come, equal ones once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.digests import digest_of
from bench.errors import Unguarded
from bench.scenario import Answer, Grade, Scenario

Key = tuple[str, str, str]
"""Scenario and instance, the grader's digest, the answer's: a grade is a function of these."""


def key_of(scenario: Scenario, answer: Answer) -> Key:
    text = "\0".join(f"{name}\0{answer[name].model_dump_json()}" for name in scenario.task.answer_names)
    return scenario.key, scenario.graded_by, digest_of(text)


@dataclass
class Graders:
    """Grades answers in a thread of their own, equal answers once.

    stored    grades that are known before, such as those of a recording
    refusal   why nothing is graded anew whose grader runs a model's code; "" where it is
    """

    stored: Mapping[Key, Grade] = field(default_factory=dict)
    refusal: str = ""
    _known: dict[Key, Grade] = field(default_factory=dict)

    async def grade(self, scenario: Scenario, answer: Answer) -> Grade:
        """Raises Unguarded where the answer would have to be graded anew and is not to be, and whatever the grader raises."""
        key = key_of(scenario, answer)
        if (found := self.stored.get(key) or self._known.get(key)) is not None:
            return found
        if self.refusal and scenario.grader_runs_code:
            raise Unguarded(self.refusal)
        self._known[key] = await asyncio.to_thread(scenario.grade_answer, answer)
        return self._known[key]
