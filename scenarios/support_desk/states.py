"""The states in which judgments are asked: those of the right course, and those to which a judgment that errs leads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

from bench.scenario import Json, Subtask
from bench.worlds.run.environment import Environment, JudgmentState, World

from .course import Course, Judge
from .right import right
from .steps import steps
from .story import Case
from .wrong import changed, slips


def states(case: Case, subtasks: Sequence[Subtask], environment: Environment) -> tuple[JudgmentState, ...]:
    """Return each once, in the order in which the courses come to it."""
    asked: dict[str, JudgmentState] = {}

    def noted(judge: Judge, subtask: str, documents: Mapping[str, str]) -> Json:
        shown = {name: json.loads(text) for name, text in documents.items()}
        asked.setdefault(f"{subtask} {json.dumps(shown)}", JudgmentState(subtask, shown))
        return judge(subtask, documents)

    for judge in _judges(case):
        with closing(World(environment)) as world:
            Course(steps(case), subtasks, partial(noted, judge))(world)
    return tuple(asked.values())


def _judges(case: Case) -> Iterator[Judge]:
    """The right one, and those that err in one thing."""
    yield right
    for _, judgment, fields in slips(case).values():
        yield partial(changed, judgment, fields)
