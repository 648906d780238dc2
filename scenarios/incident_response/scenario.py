"""Acting on an incident, from the alert to the closing note in two hours: six judgments, effects that cannot be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.run.packs import PackFolder
from bench.scenario import Output, Scenario, Subtask
from bench.worlds.run.environment import Environment

from .audit import audit
from .baseline import baseline
from .case import Case
from .checks import RULES
from .course import Course
from .events import KINDS, PEOPLE, halted, scheduled
from .generate import response
from .grader import grade
from .judgments import NOTES, Chosen, ClosingNote, Diagnosis, Recovered, Suspect, Triage
from .limits import LENGTH
from .policy import POLICY
from .right import right
from .states import states
from .steps import steps
from .tables import SCHEMA, rows
from .tools import TOOLS
from .wrong import wrong_courses

VARIANTS = ("response", "response_dev")
"""Whoever tunes a prompt or a draw looks at the second, whose instances no reference run takes."""
FRESH_INSTANCES, DEVELOPMENT_INSTANCES = 48, 24
GIVEN = ("alert", "metrics", "overview", "log", "changes", "incident", "deployment", "capacity")


def instances(folder: PackFolder) -> tuple[str, ...]:
    word, count = ("dev", DEVELOPMENT_INSTANCES) if folder.variant == "response_dev" else ("case", FRESH_INSTANCES)
    return tuple(f"{word}_{number:02}" for number in range(1, count + 1))


def subtasks(folder: PackFolder) -> tuple[Subtask, ...]:
    outputs: dict[str, tuple[tuple[str, ...], type[Output]]] = {
        "triage": (("alert", "metrics"), Triage),
        "suspect": (("overview",), Suspect),
        "cause": (("log", "changes"), Diagnosis),
        "action": (("runbook.md", "incident", "deployment", "capacity"), Chosen),
        "recovered": (("metrics",), Recovered),
        "closing": (("incident", "metrics"), ClosingNote),
    }
    return tuple(
        Subtask(name, folder.prompt(name), reads, output, checks=RULES[name]) for name, (reads, output) in outputs.items()
    )


def scenario(folder: PackFolder, instance: str) -> Scenario:
    made, asked = response(instance), subtasks(folder)
    return folder.scenario(
        asked,
        grade=grade,
        baseline=baseline,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=response,
        environment=environment(made.case, asked, folder.prompt("work")),
    )


def environment(case: Case, asked: Sequence[Subtask], work: str = "") -> Environment:
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
        halted=halted,
        throttle=30,
        begins=case.moment(0),
        ends=case.moment(LENGTH),
        procedure=procedure,
        work=work,
    )
