"""The states in which judgments are asked: those of the right course, those to which a judgment that errs leads, and those that
somebody comes to who asks nobody, or who begins anew at each alert."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import get_args

from bench.scenario import Json, Subtask
from bench.worlds.run.environment import Environment, JudgmentState, World

from .case import Case
from .course import Course, Judge
from .forms import Severity
from .judgments import Action
from .right import NONE, right
from .steps import steps
from .wordings import CAUSES
from .wrong import changed

APART: tuple[Action, ...] = ("roll_back", "restart", "page_owner", "wait")
"""One action of each kind that a closing note goes by: a version is taken back, something else is done, somebody is paged,
nothing."""
EVERY = ("triage", "suspect", "cause", "action", "recovered", "closing")


def states(case: Case, subtasks: Sequence[Subtask], environment: Environment) -> tuple[JudgmentState, ...]:
    """Each once, in the order in which the courses come to it."""
    found: dict[str, JudgmentState] = {}

    def noted(judge: Judge, leads_to: Sequence[str], subtask: str, documents: Mapping[str, str]) -> Json:
        shown = {name: json.loads(text) for name, text in documents.items()}
        if subtask in leads_to:
            found.setdefault(f"{subtask} {json.dumps(shown)}", JudgmentState(subtask, shown))
        return judge(subtask, documents)

    plan = steps(case)
    courses = [Course(plan, subtasks, partial(noted, judge, leads_to)) for judge, leads_to in _judges(case)]
    careless = (Course(plan, subtasks, partial(noted, right, EVERY), gate=False, anew=kind) for kind in ("", "alert"))
    for course in (*courses, *careless):
        with closing(World(environment)) as world:
            course(world)
    return tuple(found.values())


def _judges(case: Case) -> Iterator[tuple[Judge, Sequence[str]]]:
    """The right one, and those that err in one thing; each with the judgments that it leads to states of another kind of."""
    yield right, EVERY
    for severity in get_args(Severity):
        yield partial(changed, "triage", {"severity": severity}), ("closing",)
    for service in case.services:
        yield partial(changed, "suspect", {"service": service.name}), ("cause",)
    for cause in CAUSES:
        yield partial(changed, "cause", {"cause": cause, "node": NONE}), ("action",)
    for action in APART:
        target = case.suspect if action in ("roll_back", "restart") else NONE
        yield partial(changed, "action", {"action": action, "target": target, "amount": 0}), ("recovered", "closing")
    for recovered in (True, False):
        yield partial(changed, "recovered", {"recovered": recovered}), ("recovered", "closing")
