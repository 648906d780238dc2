"""Whatever a pack's code does comes to a result: no trial is lost by it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from little_worlds import Nothing, with_tool, world

from bench.worlds.run.environment import Acted, Db, Moment, Policy, PolicyVerdict, Tool, World
from bench.worlds.run.environment.limits import DidNotEnd


def called(run: Callable[[Db, Any, Moment], Any], kind: Any = "final", **changes: Any) -> tuple[Acted, World]:
    """What comes of a call of a tool that does this, and its world."""
    tool = Tool("odd", kind, Nothing, Nothing, run, lambda _: "odd thing", undo="release" if kind == "compensable" else "")
    shop = with_tool(tool, **changes)
    return shop.call("odd", {}), shop


def writes(db: Db, *_: Any) -> Nothing:
    db.write("INSERT INTO messages VALUES (1, 'x')")
    return Nothing()


def raises(db: Db, *_: Any) -> Nothing:
    writes(db)
    raise KeyError("a bug of the pack")


def wrong_type(db: Db, *_: Any) -> Any:
    writes(db)
    return {"a": "dict"}


def spins(db: Db, *_: Any) -> Nothing:
    writes(db)
    while True:
        pass


class Held:
    """What a weak reference can refer to."""


def finalizes(db: Db, *_: Any) -> Nothing:
    writes(db)
    end = time.monotonic() + 0.1

    def wait(_: object) -> None:  # Python swallows what is raised here
        while time.monotonic() < end:
            pass

    held = Held()
    reference = weakref.ref(held, wait)
    del held
    while reference() is None and time.monotonic() < end + 5:
        pass
    return Nothing()


def leaves(*_: Any) -> Nothing:
    raise SystemExit


def sleeps(*_: Any) -> Nothing:
    with suppress(Exception):  # not even this holds it
        time.sleep(60)
    return Nothing()


def asks_on(db: Db, *_: Any) -> Nothing:
    db.value("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    return Nothing()


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (raises, "broke"),
        (leaves, "broke"),
        (wrong_type, "wrong_type"),
        (spins, "hung"),
        (sleeps, "hung"),
        (asks_on, "hung"),
    ],
)
def test_a_tool_that_breaks_fails_in_a_line_and_nothing_of_it_stays(run: Callable[..., Any], code: str) -> None:
    acted, shop = called(run, patience=0.05)
    assert (acted.outcome, acted.code) == ("failed", code)
    assert "'odd'" in acted.reason
    assert shop.environment.audit is not None
    assert shop._connection.execute("SELECT count(*) FROM messages").fetchone()[0] == 0
    assert shop.call("read_order", {"order": 1}).ok


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_tool_whose_alarm_python_swallows_in_a_finalizer_is_ended_by_a_later_one() -> None:
    acted, _ = called(finalizes, patience=0.05)
    assert (acted.outcome, acted.code) == ("failed", "hung")


def test_a_tool_that_is_declared_read_and_writes_is_refused_and_its_writing_taken_back() -> None:
    acted, shop = called(writes, "read")
    assert (acted.outcome, acted.code) == ("refused", "wrote")
    assert "compensable or final" in acted.reason
    assert shop._connection.execute("SELECT count(*) FROM messages").fetchone()[0] == 0


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO world_known VALUES (1, 'recorded')",
        "DELETE FROM world_pending",
        "DROP TABLE orders",
        "CREATE TABLE mine (a)",
        "PRAGMA query_only = 1",
        "ATTACH ':memory:' AS other",
        "COMMIT",
    ],
)
def test_a_packs_code_changes_rows_of_its_own_tables_and_nothing_else(sql: str) -> None:
    def run(db: Db, *_: Any) -> Nothing:
        db.write(sql)
        return Nothing()

    acted, shop = called(run)
    assert (acted.outcome, acted.code) == ("failed", "broke")
    assert shop.call("refund", {"order": 1, "amount": 1}).ok


def test_only_a_tool_that_writes_lets_something_happen_later() -> None:
    def run(db: Db, _: Any, now: Moment) -> Nothing:
        db.later("reply", now.after(days=1), {})
        return Nothing()

    assert called(run, "read")[0].code == "broke"
    acted, shop = called(run)
    assert acted.ok
    assert [arrival.kind for arrival in shop.wait(days=1)] == ["opened", "reply"]


def test_an_event_of_an_unknown_kind_is_the_tools_fault() -> None:
    def run(db: Db, _: Any, now: Moment) -> Nothing:
        db.later("relpy", now, {})
        return Nothing()

    assert "did you mean 'reply'" in called(run)[0].reason


def test_a_policy_that_does_not_end_raises_what_a_trial_can_hold() -> None:
    def spins_on(*_: Any) -> PolicyVerdict:
        while True:
            pass

    shop = world(policy=Policy("1", spins_on), patience=0.05)
    with pytest.raises(DidNotEnd, match="no end within"):
        shop.call("refund", {"order": 1, "amount": 1})


def test_a_call_takes_its_minutes_of_world_time() -> None:
    shop = with_tool(Tool("walk", "final", Nothing, Nothing, lambda *_: Nothing(), lambda _: "walk", minutes=30))
    shop.call("walk", {})
    assert shop.now == Moment(0, 30)
