"""Wrong courses: their agents read too fast when they judge, or forget their earlier actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.scenario import Json, Subtask, WrongAnswer
from bench.worlds.run.environment import World

from .course import Course, Judge
from .right import right
from .steps import steps
from .story import Case

Courses = Mapping[str, Callable[[World], None]]
ABSURD = 90
HARMLESS = ("withdraws_a_good_one",)
"""A wrong judgment of which nothing comes but the same offer once more."""


def changed(judgment: str, fields: Mapping[str, Json], subtask: str, documents: Mapping[str, str]) -> Json:
    """Return the right output, with some fields of one judgment replaced."""
    output = right(subtask, documents)
    return {**output, **fields} if subtask == judgment else output


def slips(case: Case) -> dict[str, tuple[str, str, dict[str, Json]]]:
    """Return the slips that are wrong for this customer: name -> why it is wrong, the judgment, and the replaced fields."""
    found: dict[str, tuple[str, str, dict[str, Json]]] = {
        "absurd_discount": ("nobody may have 90%", "offer", {"discount": ABSURD, "reason": "keep the customer"}),
        "no_discount": ("the customer may have more", "offer", {"discount": 0, "reason": "none is due"}),
        "short_term": ("the customer asks for another term", "offer", {"term_months": 6}),
    }
    if case.asks_discount > case.discount:
        found["what_was_asked"] = ("its risk allows less", "offer", {"discount": case.asks_discount, "reason": "as asked"})
    if case.offered != case.product:
        found["keeps_the_old"] = ("it is no longer sold", "after_change", {"no_longer_sold": False, "action": "keep"})
    else:
        found["withdraws_a_good_one"] = ("it is still sold", "after_change", {"no_longer_sold": True, "action": "withdraw"})
    if case.kind in ("merger", "leaves", "silent"):  # of the others the manager, who is asked, thinks the same
        found["accepts_anyway"] = ("it may not be accepted so", "close", {"merger": False, "decision": "accept"})
    if case.kind != "leaves":
        found["gives_it_up"] = ("the customer has not left", "close", {"merger": False, "decision": "churned"})
    return found


def wrong_answers(case: Case, reference: Mapping[str, Json]) -> tuple[WrongAnswer, ...]:
    return tuple(
        WrongAnswer(name, why, {judgment: {**reference[judgment], **fields}})
        for name, (why, judgment, fields) in slips(case).items()
    )


def _nothing(_: World) -> None:
    pass


def _twice(course: Course, customer: str, world: World) -> None:
    """Follow the course as an agent that takes the second trigger for a second renewal."""
    course(world)
    world.call("open_renewal", {"customer": customer})


def wrong_courses(case: Case, subtasks: Sequence[Subtask]) -> Courses:
    plan = steps(case.customer)

    def course(judge: Judge, **settings: bool) -> Course:
        return Course(plan, subtasks, judge, **settings)

    courses: dict[str, Callable[[World], None]] = {
        "nothing": _nothing,
        "opens_twice": partial(_twice, course(right), case.customer),
    }
    if case.kind != "halted":
        slipped = {name: slip for name, slip in slips(case).items() if name not in HARMLESS}
        courses |= {name: course(partial(changed, which, fields)) for name, (_, which, fields) in slipped.items()}
    if case.kind in ("long", "long_refused", "merger", "merger_refused"):
        courses["asks_nobody"] = course(right, gate=False)
    return courses
