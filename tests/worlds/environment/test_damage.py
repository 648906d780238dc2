"""Damage: each kind by the course that does it, counted from the journal, and the same from the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from little_worlds import ENVIRONMENT, world

from bench.worlds.environment import Moment, World

ALL = ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale", "late")


def right(one: World) -> None:
    ENVIRONMENT.reference(one)


def doubled(one: World) -> None:
    right(one)
    one.call("refund", {"order": 1, "amount": 40})


def unauthorised(one: World) -> None:
    for number, amount in ((1, 40), (2, 250)):
        one.call("refund", {"order": number, "amount": amount})
        one.call("notify", {"order": number, "text": "x"})


def uncompensated(one: World) -> None:
    right(one)
    one.call("reserve", {"order": 3})


def late(one: World) -> None:
    one.wait(days=8)
    right(one)


def undone_twice(one: World) -> None:
    right(one)
    one._connection.execute("INSERT INTO reservations VALUES (1, 1)")
    one.call("release", {"order": 1})
    one._connection.execute("INSERT INTO reservations VALUES (1, -1)")


def nothing(_: World) -> None:
    pass


COURSES: list[tuple[Callable[[World], None], dict[str, int]]] = [
    (right, {}),
    (doubled, {"doubled": 1}),
    (unauthorised, {"unauthorised": 1}),
    (uncompensated, {"uncompensated": 1}),
    (late, {"late": 2}),
    (undone_twice, {"doubled": 1}),
    (nothing, {"lost": 4}),
]


@pytest.mark.parametrize(("course", "damage"), COURSES, ids=lambda value: getattr(value, "__name__", ""))
def test_each_kind_is_counted_for_the_course_that_does_it(course: Callable[[World], None], damage: dict[str, int]) -> None:
    refund = replace(ENVIRONMENT.by_name["refund"], due=lambda *_: Moment(7))
    one = world(tools=tuple(refund if tool.name == "refund" else tool for tool in ENVIRONMENT.tools))
    course(one)
    for entry in one.journal():
        one.acknowledge(entry.seq)
    one.record()
    journal, tables = one.damage()
    assert {kind: count for kind, count in asdict(journal).items() if count} == damage
    assert journal.agrees(tables)
    assert journal.total == sum(damage.values())


def test_an_effect_is_orphaned_unless_the_agent_recorded_that_it_happened() -> None:
    one = world()
    done = one.call("refund", {"order": 1, "amount": 40}, "key")
    assert one.damage()[0].orphaned == 1
    one.acknowledge(done.entry)
    one.died("unrecorded")
    one.record()
    assert one.damage()[0].orphaned == 1, "what a dead process had been told is lost"


@pytest.mark.parametrize("how", ["the same call under its key", "a read of what it changed"])
def test_an_orphan_is_found_again_by(how: str) -> None:
    one = world()
    one.call("refund", {"order": 1, "amount": 40}, "key")
    one.died("unacknowledged")
    read = how.startswith("a read")
    told = one.call("read_order", {"order": 1}) if read else one.call("refund", {"order": 1, "amount": 40}, "key")
    one.acknowledge(told.entry)
    one.record()
    assert one.damage()[0].orphaned == 0


def test_a_read_of_something_else_finds_no_orphan() -> None:
    one = world()
    one.call("refund", {"order": 1, "amount": 40})
    one.acknowledge(one.call("read_order", {"order": 2}).entry)
    one.record()
    assert one.damage()[0].orphaned == 1
