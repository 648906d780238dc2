"""Courses that go wrong: each judges as somebody who reads too fast, or acts as somebody who keeps nothing in mind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from bench.scenario import Json, Subtask, WrongAnswer
from bench.worlds.run.environment import ProcedureStep, World

from .case import Case
from .course import Course, Judge
from .right import NONE, right
from .steps import steps

Courses = Mapping[str, Callable[[World], None]]
ABSURD = 500
HARMLESS = ("never_recovers",)
"""A wrong judgment of which nothing comes but a later look."""
REFUSED = ("absurd_scale", "restarts_it")
"""What the gate, or the lead, refuses, so that the owner is paged: where that is right, nothing comes of it either."""


def changed(judgment: str, fields: Mapping[str, Json], subtask: str, documents: Mapping[str, str]) -> Json:
    """The right output, with some fields of one judgment exchanged."""
    output = right(subtask, documents)
    return {**output, **fields} if subtask == judgment else output


def slips(case: Case) -> dict[str, tuple[str, str, dict[str, Json]]]:
    """Name -> why it is wrong, the judgment, the fields that are exchanged. Those alone that are wrong for this incident."""
    if case.kind == "noise":
        return {
            "cries_wolf": ("less than 2% fail", "triage", {"severity": "critical"}),
            "takes_it_for_real": ("less than 2% fail", "triage", {"severity": "minor"}),
            "calls_it_resolved": ("nothing was wrong", "closing", {"outcome": "resolved"}),
            "wants_a_postmortem": ("nothing was wrong", "closing", {"postmortem": True}),
        }
    return {**_misread(case), **_mistaken(case)}


def _misread(case: Case) -> dict[str, tuple[str, str, dict[str, Json]]]:
    """Of severity, service and cause."""
    found: dict[str, tuple[str, str, dict[str, Json]]] = {
        "calls_it_noise": (f"{case.error_pct}% fail", "triage", {"severity": "noise"}),
        "another_cause": (f"it is {case.cause}", "cause", _other_cause(case)),
    }
    if case.severity != "critical":
        found["cries_wolf"] = ("it is not critical", "triage", {"severity": "critical"})
    if case.suspect != case.entry:
        found["blames_the_alert"] = ("another service is at fault", "suspect", {"service": case.entry})
    return found


def _other_cause(case: Case) -> dict[str, Json]:
    other = "disk_full" if case.cause == "cert_expired" else "cert_expired"
    return {"cause": other, "node": NONE}


def _mistaken(case: Case) -> dict[str, tuple[str, str, dict[str, Json]]]:
    """Of what is done, of whether it helped, and of the note."""
    right_tool, target = case.remedy.tool, case.suspect
    found: dict[str, tuple[str, str, dict[str, Json]]] = {
        "absurd_scale": ("nobody may have so many replicas", "action", {"action": "scale", "target": target, "amount": ABSURD}),
    }
    if not case.handed_over:
        found["never_recovers"] = ("it has recovered", "recovered", {"recovered": False})
    if right_tool != "restart":
        found["restarts_it"] = (
            "a restart repairs nothing here",
            "action",
            {"action": "restart", "target": target, "amount": 0},
        )
    if case.kind == "redeployed":
        found["rolls_back_the_repair"] = (
            "a colleague has repaired it",
            "action",
            {"action": "roll_back", "target": target, "amount": 0},
        )
    elif right_tool:
        found["waits"] = ("it does not pass by itself", "action", {"action": "wait", "target": NONE, "amount": 0})
    if case.postmortem:
        found["no_postmortem"] = ("it is wanted", "closing", {"postmortem": False})
    return found


def wrong_answers(case: Case, reference: Mapping[str, Json]) -> tuple[WrongAnswer, ...]:
    return tuple(
        WrongAnswer(name, why, {judgment: {**reference[judgment], **fields}})
        for name, (why, judgment, fields) in slips(case).items()
    )


def _nothing(_: World) -> None:
    pass


def _twice(course: Course, incident: str, world: World) -> None:
    """Whoever takes the second alert for a second incident."""
    course(world)
    world.call("open_incident", {"incident": incident})


def _wakes_twice(course: Course, incident: str, who: str, world: World) -> None:
    course(world)
    world.call("page", {"incident": incident, "who": who})


def wrong_courses(case: Case, subtasks: Sequence[Subtask]) -> Courses:
    plan = steps(case)

    def course(judge: Judge, plan: Sequence[ProcedureStep] = plan, gate: bool = True) -> Course:
        return Course(plan, subtasks, judge, gate)

    courses: dict[str, Callable[[World], None]] = {
        "nothing": _nothing,
        "opens_twice": partial(_twice, course(right), case.incident),
    }
    if case.kind == "frozen":
        return courses | {"ignores_the_freeze": course(right, [_deaf(step) for step in plan if step.name != "stop"], False)}
    harmless = (*HARMLESS, *(REFUSED if case.is_for_owner else ()))
    slipped = {name: slip for name, slip in slips(case).items() if name not in harmless}
    courses |= {name: course(partial(changed, which, fields)) for name, (_, which, fields) in slipped.items()}
    if case.needs_lead:
        courses["asks_nobody"] = course(right, gate=False)
    if case.severity == "critical":
        courses["wakes_twice"] = partial(_wakes_twice, course(right), case.incident, "lead")
    if case.remedy.tool == "reboot":
        courses["leaves_it_drained"] = course(right, [_idle(step) if step.name == "undrain" else step for step in plan])
    return courses


def _idle(step: ProcedureStep) -> ProcedureStep:
    return replace(step, needed=lambda _: False)


def _deaf(step: ProcedureStep) -> ProcedureStep:
    """The same, by somebody who does not hear of the freeze."""
    needed = step.needed
    return replace(step, needed=lambda facts: needed(replace(facts, events={"alert": facts.events.get("alert", {})})))
