"""World time: what is due happens in order, and notices reach the agent when they are told to."""

from __future__ import annotations

from collections.abc import Sequence

from little_worlds import ENVIRONMENT, world

from bench.worlds.run.environment import EventKind, Moment, Scheduled
from bench.worlds.run.environment.schedule import NoticeTime

THREE = (
    Scheduled("first", "opened", Moment(1)),
    Scheduled("second", "opened", Moment(2)),
    Scheduled("third", "opened", Moment(2)),
)


def names(arrivals: Sequence[object]) -> list[str]:
    return [arrival.name for arrival in arrivals]  # type: ignore[attr-defined]


def test_moments_know_days_before_the_first() -> None:
    start = Moment(-90)
    assert start.after(days=43, minutes=61) == Moment(-47, 61)
    assert str(Moment(-47, 61)) == "day -47, 01:01"
    assert Moment.of(Moment(-3, 5).total) == Moment(-3, 5)


def test_waiting_lets_all_happen_that_is_due_in_order() -> None:
    shop = world(events=THREE)
    assert names(shop.wait(days=1)) == ["first"]
    assert names(shop.wait(days=1)) == ["second", "third"]
    assert shop.now == Moment(2)


def test_waiting_for_the_next_event_moves_the_clock_to_it_and_no_further() -> None:
    shop = world(events=THREE)
    assert [shop.next_event(0).name, shop.now] == ["first", Moment(1)]  # type: ignore[union-attr]
    assert shop.next_event(1, until=Moment(1, 30)) is None
    assert shop.now == Moment(1, 30)
    assert [shop.next_event(after).name for after in (1, 2)] == ["second", "third"]  # type: ignore[union-attr]


def test_notices_are_a_log_that_no_reading_empties() -> None:
    shop = world(events=THREE)
    shop.wait(days=5)
    assert names(shop.arrivals()) == names(shop.arrivals()) == ["first", "second", "third"]
    assert names(shop.arrivals(after=2)) == ["third"]


def test_nothing_happens_behind_the_worlds_last_moment() -> None:
    shop = world(events=THREE, ends=Moment(1, 5))
    assert names(shop.wait(days=9)) == ["first"]
    assert shop.now == Moment(1, 5)
    assert shop.next_event(1) is None


def test_an_event_that_breaks_off_has_not_happened() -> None:
    def breaks(*_: object) -> None:
        raise KeyError("a bug of the pack")

    kinds = (*ENVIRONMENT.kinds[1:], EventKind("opened", breaks))
    shop = world(events=THREE, kinds=kinds)
    for _ in range(2):
        try:
            shop.wait(days=2)
        except KeyError:
            assert shop.now == Moment(0)
            assert shop.arrivals() == ()


def test_a_held_notice_comes_behind_what_is_due_then() -> None:
    shop = world(events=THREE)
    shop.set_notice_times(
        lambda event, following: (
            (NoticeTime(following, held=True),) if event.name == "first" and following else (NoticeTime(event.at),)
        )
    )
    assert names(shop.wait(days=3)) == ["second", "third", "first"]
