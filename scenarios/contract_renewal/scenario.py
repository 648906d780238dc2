"""Contract renewals, from 90 days before a contract ends to its last day: four judgments, and effects that cannot be undone."""

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
from .events import KINDS, PEOPLE, halted, scheduled
from .generate import renewal
from .grader import grade
from .judgments import NOTES, AfterChange, Close, Offer, Risk
from .limits import BEGINS, ENDS
from .policy import POLICY
from .right import SIGNALS, right
from .states import states
from .steps import steps
from .story import Case
from .tables import SCHEMA, rows
from .tools import TOOLS
from .wrong import wrong_courses

VARIANTS = ("renewal", "renewal_dev")
"""Whoever tunes a prompt or a draw looks at the second, whose instances no reference run takes."""
FRESH_INSTANCES, DEVELOPMENT_INSTANCES = 40, 20
GIVEN = (*SIGNALS, "renewal", "standing_offer", "catalogue", "reply")


def instances(folder: PackFolder) -> tuple[str, ...]:
    word, count = ("dev", DEVELOPMENT_INSTANCES) if folder.variant == "renewal_dev" else ("case", FRESH_INSTANCES)
    return tuple(f"{word}_{number:02}" for number in range(1, count + 1))


def subtasks(folder: PackFolder) -> tuple[Subtask, ...]:
    outputs: dict[str, tuple[tuple[str, ...], type[Output]]] = {
        "risk": (SIGNALS, Risk),
        "offer": (("policy.md", "renewal"), Offer),
        "after_change": (("standing_offer", "catalogue"), AfterChange),
        "close": (("standing_offer", "reply"), Close),
    }
    return tuple(
        Subtask(name, folder.prompt(name), reads, output, checks=RULES[name]) for name, (reads, output) in outputs.items()
    )


def scenario(folder: PackFolder, instance: str) -> Scenario:
    made, asked = renewal(instance), subtasks(folder)
    return folder.scenario(
        asked,
        grade=grade,
        baseline=baseline,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=renewal,
        environment=environment(made.case, asked, folder.prompt("work")),
    )


def environment(case: Case, asked: Sequence[Subtask], work: str = "") -> Environment:
    procedure = steps(case.customer)
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
        halted=halted,
        throttle=60,
        begins=BEGINS,
        ends=ENDS,
        procedure=procedure,
        work=work,
    )
