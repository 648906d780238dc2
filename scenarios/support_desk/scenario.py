"""A support desk: a customer who talks back, changes their mind, asks for more or goes silent, and effects that stay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.run.packs import PackFolder
from bench.scenario import Output, Scenario, Subtask
from bench.worlds.run.environment import Environment

from .audit import audit
from .baseline import baseline
from .checks import RULES
from .course import Course
from .events import KINDS, PEOPLE, scheduled
from .generate import desk
from .grader import grade
from .judgments import NOTES, Answered, AsideDecision, ClosingNote, Decision, Wanted
from .limits import LENGTH, THROTTLE
from .policy import POLICY
from .right import right
from .states import states
from .steps import steps
from .story import Case
from .tables import SCHEMA, rows
from .tools import TOOLS
from .wrong import wrong_courses

VARIANTS = ("desk", "desk_dev")
"""Whoever tunes a prompt or a draw looks at the second, whose instances no reference run takes."""
INSTANCES = 20
"""Of each variant."""
GIVEN = ("conversation", "orders", "ticket", "stock", "aside")


def instances(folder: PackFolder) -> tuple[str, ...]:
    """Return the names of the instances of a variant."""
    word = "dev" if folder.variant == "desk_dev" else "case"
    return tuple(f"{word}_{number:02}" for number in range(1, INSTANCES + 1))


def subtasks(folder: PackFolder) -> tuple[Subtask, ...]:
    """Return the five judgments."""
    outputs: dict[str, tuple[tuple[str, ...], type[Output]]] = {
        "request": (("conversation", "orders"), Wanted),
        "decision": (("terms.md", "ticket", "orders", "stock"), Decision),
        "answer": (("conversation",), Answered),
        "second": (("aside", "orders"), AsideDecision),
        "closing": (("ticket", "conversation"), ClosingNote),
    }
    return tuple(
        Subtask(name, folder.prompt(name), reads, output, checks=RULES[name]) for name, (reads, output) in outputs.items()
    )


def scenario(folder: PackFolder, instance: str) -> Scenario:
    """Return one instance."""
    made, asked = desk(instance), subtasks(folder)
    return folder.scenario(
        asked,
        grade=grade,
        baseline=baseline,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=desk,
        environment=environment(made.case, asked, folder.prompt("work")),
    )


def environment(case: Case, asked: Sequence[Subtask], work: str = "") -> Environment:
    """Return the world of one conversation."""
    procedure = steps(case)
    return Environment(
        schema=SCHEMA,
        rows=rows(case),
        tools=TOOLS,
        audit=audit,
        reference=Course(procedure, asked, right),
        wrong=wrong_courses(case, asked),
        given=GIVEN,
        right=right,
        states=partial(states, case, asked),
        notes=NOTES,
        events=scheduled(case),
        kinds=KINDS,
        people=PEOPLE,
        policy=POLICY,
        throttle=THROTTLE,
        begins=case.moment(0),
        ends=case.moment(LENGTH),
        procedure=procedure,
        work=work,
    )
