"""The states in which judgments are asked for: the states of the right course, and those after a wrong judgment."""

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

RISKS = ("low", "medium", "high")
ALIKE = ("no_discount", "short_term")
"""Slips that lead to no other kind of state than the others do: an offer whose terms are wrong stands."""


def states(case: Case, subtasks: Sequence[Subtask], environment: Environment) -> tuple[JudgmentState, ...]:
    """Return each state once, in the order in which the courses reach it."""
    found: dict[str, JudgmentState] = {}

    def noted(judge: Judge, subtask: str, documents: Mapping[str, str]) -> Json:
        shown = {name: json.loads(text) for name, text in documents.items()}
        found.setdefault(f"{subtask} {json.dumps(shown)}", JudgmentState(subtask, shown))
        return judge(subtask, documents)

    for judge in _judges(case):
        with closing(World(environment)) as world:
            Course(steps(case.customer), subtasks, partial(noted, judge))(world)
    return tuple(found.values())


def _judges(case: Case) -> Iterator[Judge]:
    """Yield the right judge, and judges with one mistake each."""
    yield right
    for name, (_, judgment, fields) in slips(case).items():
        if name not in ALIKE:
            yield partial(changed, judgment, fields)
    for risk in RISKS:
        if risk != case.risk:
            yield partial(changed, "risk", {"risk": risk})
