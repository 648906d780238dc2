"""Courses that go wrong: each judges as somebody who reads too fast, or acts as somebody who keeps nothing in mind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.scenario import Json, Subtask, WrongAnswer
from bench.worlds.run.environment import World

from .course import Course
from .right import right
from .steps import steps
from .story import Case
from .wordings import NONE

Slips = dict[str, tuple[str, str, dict[str, Json]]]
"""Name -> why it is wrong, the judgment, the fields that are exchanged."""
ABSURD = 9_000
REFUSED = ("absurd_amount", "refunds_anyway", "takes_silence_for_yes")
"""What the gate refuses: made into courses that ask no gate."""


def changed(judgment: str, fields: Mapping[str, Json], subtask: str, documents: Mapping[str, str]) -> Json:
    """Return the right output, with some fields of one judgment exchanged."""
    output = right(subtask, documents)
    return {**output, **fields} if subtask == judgment else output


def slips(case: Case) -> Slips:
    """Return the slips that are wrong for this conversation."""
    refund = {"action": "refund", "amount": case.about.price, "size": NONE}
    wrong: Slips = {
        "another_order": ("it is about another order", "request", {"order": case.orders[2].order}),
        "absurd_amount": ("the price is less", "decision", {**refund, "amount": ABSURD}),
    }
    if case.first != case.wants:
        wrong["keeps_the_first_wish"] = ("the customer has changed its mind", "request", {"intent": case.first, "size": NONE})
    if case.action == "refuse":
        wrong["refunds_anyway"] = ("the terms do not allow it", "decision", refund)
    else:
        wrong["refuses_it"] = ("the terms allow it", "decision", {"action": "refuse", "amount": 0, "size": NONE})
    if case.action != "refuse" and not case.agrees:
        wrong["takes_silence_for_yes"] = ("the customer has not agreed", "answer", {"answer": "yes"})
    if case.settled:
        wrong["takes_yes_for_no"] = ("the customer has agreed", "answer", {"answer": "no"})
    if case.aside_is_due:
        wrong["drops_the_second"] = ("it can be met", "second", {"action": "refuse"})
    outcome = "refused" if case.settled else "resolved"
    wrong["closes_it_wrongly"] = ("it ended otherwise", "closing", {"outcome": outcome})
    return wrong


def wrong_answers(case: Case, reference: Mapping[str, Json]) -> tuple[WrongAnswer, ...]:
    """Return the reference with the fields of each slip."""
    return tuple(
        WrongAnswer(name, why, {judgment: {**reference[judgment], **fields}})
        for name, (why, judgment, fields) in slips(case).items()
    )


def _nothing(_: World) -> None:
    pass


def _and_then(course: Course, tool: str, arguments: Mapping[str, Json], world: World) -> None:
    """Take a right course, and do a thing once more."""
    course(world)
    world.call(tool, arguments)


def wrong_courses(case: Case, subtasks: Sequence[Subtask]) -> Mapping[str, Callable[[World], None]]:
    """Return the courses that must be graded wrong."""
    plan = steps(case)
    straight = Course(plan, subtasks, right)
    courses: dict[str, Callable[[World], None]] = {
        "nothing": _nothing,
        "opens_twice": partial(_and_then, straight, "open_ticket", {"ticket": case.ticket}),
        "offers_twice": partial(_and_then, straight, "reply", {"ticket": case.ticket, "turn": 2, "says": "refuse"}),
    }
    for name, (_, judgment, fields) in slips(case).items():
        courses[name] = Course(plan, subtasks, partial(changed, judgment, fields), gate=name not in REFUSED)
    if case.needs_lead:
        courses["asks_nobody"] = Course(plan, subtasks, right, gate=False)
    return courses
