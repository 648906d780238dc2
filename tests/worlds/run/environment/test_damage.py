"""Damage: each kind by the course that does it, counted from the journal, and the same from the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from little_worlds import ENVIRONMENT, world

from bench.worlds.run.environment import Moment, World

ALL = ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale", "late")


def right(shop: World) -> None:
    ENVIRONMENT.reference(shop)


def doubled(shop: World) -> None:
    right(shop)
    shop.call("refund", {"order": 1, "amount": 40})


def unauthorised(shop: World) -> None:
    for number, amount in ((1, 40), (2, 250)):
        shop.call("refund", {"order": number, "amount": amount})
        shop.call("notify", {"order": number, "text": "x"})


def uncompensated(shop: World) -> None:
    right(shop)
    shop.call("reserve", {"order": 3})


def late(shop: World) -> None:
    shop.wait(days=8)
    right(shop)


def undone_twice(shop: World) -> None:
    right(shop)
    shop._connection.execute("INSERT INTO reservations VALUES (1, 1)")
    shop.call("release", {"order": 1})
    shop._connection.execute("INSERT INTO reservations VALUES (1, -1)")


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
    shop = world(tools=tuple(refund if tool.name == "refund" else tool for tool in ENVIRONMENT.tools))
    course(shop)
    for entry in shop.journal():
        shop.acknowledge(entry.seq)
    shop.record()
    journal, tables = shop.damage()
    assert {kind: count for kind, count in asdict(journal).items() if count} == damage
    assert journal.agrees(tables)
    assert journal.total == sum(damage.values())


def test_an_effect_is_orphaned_unless_the_agent_recorded_that_it_happened() -> None:
    shop = world()
    done = shop.call("refund", {"order": 1, "amount": 40}, "key")
    assert shop.damage()[0].orphaned == 1
    shop.acknowledge(done.entry)
    shop.note_crash("unrecorded")
    shop.record()
    assert shop.damage()[0].orphaned == 1, "what a dead process had been told is lost"


@pytest.mark.parametrize("how", ["the same call under its key", "a read of what it changed"])
def test_an_orphan_is_found_again_by(how: str) -> None:
    shop = world()
    shop.call("refund", {"order": 1, "amount": 40}, "key")
    shop.note_crash("unacknowledged")
    read = how.startswith("a read")
    answer = shop.call("read_order", {"order": 1}) if read else shop.call("refund", {"order": 1, "amount": 40}, "key")
    shop.acknowledge(answer.entry)
    shop.record()
    assert shop.damage()[0].orphaned == 0


def test_a_read_of_something_else_finds_no_orphan() -> None:
    shop = world()
    shop.call("refund", {"order": 1, "amount": 40})
    shop.acknowledge(shop.call("read_order", {"order": 2}).entry)
    shop.record()
    assert shop.damage()[0].orphaned == 1
