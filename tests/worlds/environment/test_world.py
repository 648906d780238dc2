"""A world: calls are transactions, keys make them happen once, and the journal has them all."""

from __future__ import annotations

import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from little_worlds import ENVIRONMENT, world

from bench.worlds.analysis.remade import remade
from bench.worlds.environment import CannotRestore, Db, Moment, Snapshot, World, final_world
from bench.worlds.environment.damage import net_effects
from bench.worlds.environment.final import content_of

CALLS = st.tuples(
    st.sampled_from(("read_order", "refund", "reserve", "release", "notify", "no_such_tool")),
    st.integers(1, 4),
    st.one_of(st.none(), st.sampled_from(("a", "b", "c"))),
)


def arguments(tool: str, order: int) -> dict[str, object]:
    more: dict[str, dict[str, object]] = {"refund": {"amount": 10}, "notify": {"text": "hello"}}
    return {"order": order, **more.get(tool, {})}


def rows(one: World) -> tuple[str, int, Moment]:
    return one.digest(), len(one.journal()), one.now


def test_a_known_key_gives_the_stored_result_and_no_second_effect() -> None:
    one = world()
    first = one.call("refund", {"order": 1, "amount": 40}, "key")
    again = one.call("refund", {"order": 1, "amount": 40}, "key")
    assert (first.outcome, again.outcome, again.result) == ("done", "replayed", first.result)
    assert net_effects(one.environment, one.journal())["refund of order 1"] == 1


def test_without_a_key_the_same_call_is_a_second_effect() -> None:
    one = world()
    for _ in range(2):
        one.call("refund", {"order": 1, "amount": 40})
    assert [count.doubled for count in one.damage()] == [1, 1]


def test_a_key_that_was_given_with_another_call_is_refused() -> None:
    one = world()
    one.call("refund", {"order": 1, "amount": 40}, "key")
    refused = one.call("refund", {"order": 2, "amount": 40}, "key")
    assert (refused.outcome, refused.code) == ("refused", "key")
    assert "key" in refused.reason


def test_a_call_that_failed_under_a_key_can_be_made_again_under_it() -> None:
    one = world()
    assert one.call("release", {"order": 1}, "key").code == "declined"
    one.call("reserve", {"order": 1})
    assert one.call("release", {"order": 1}, "key").outcome == "done"


def test_a_version_that_has_moved_refuses_the_call() -> None:
    one = world()
    read = one.call("read_order", {"order": 1})
    one.call("refund", {"order": 1, "amount": 40})
    swapped = one.call("refund", {"order": 1, "amount": 40}, expect=read.versions)
    assert (swapped.outcome, swapped.code) == ("refused", "stale")
    assert one.call("refund", {"order": 1, "amount": 1}, expect={"order 1": one.version("order 1")}).ok


@pytest.mark.parametrize(
    ("tool", "given", "code"),
    [
        ("refnd", {"order": 1}, "unknown_tool"),
        ("refund", {"order": "one", "amount": 3}, "arguments"),
        ("refund", {}, "arguments"),
        ("read_order", {"order": 99}, "declined"),
    ],
)
def test_what_an_agent_does_wrong_is_refused_in_a_line_and_journaled(tool: str, given: dict[str, object], code: str) -> None:
    one = world()
    before = one.digest()
    refused = one.call(tool, given)
    assert (refused.outcome, refused.code, refused.reason.count("\n")) == ("refused", code, 0)
    assert (one.journal()[-1].reason, one.digest()) == (refused.reason, before)


def test_more_calls_in_a_minute_than_are_taken_are_refused_until_the_next() -> None:
    one = world(throttle=60)
    taken = [one.call("read_order", {"order": 1}).code for _ in range(1000)]
    assert taken.count("throttled") == 940
    one.wait(minutes=1)
    assert one.call("read_order", {"order": 1}).ok


def test_the_policys_verdict_stands_beside_each_effect_with_its_version() -> None:
    one = world()
    assert one.verdict("refund", {"order": 2, "amount": 250}).decision == "person"
    one.call("refund", {"order": 2, "amount": 250})
    entry = one.journal()[-1]
    assert (entry.decision, entry.rule, entry.policy) == ("person", "large", "refunds-1")
    assert [count.unauthorised for count in one.damage()] == [1, 1]


def test_an_approved_effect_is_authorised() -> None:
    one = world()
    one.ask("manager", "order 2", {"order": 2})
    one.wait(minutes=61)
    one.call("refund", {"order": 2, "amount": 250})
    assert [count.unauthorised for count in one.damage()] == [0, 0]


def test_a_thrown_kill_switch_forbids_effects_and_lets_undos_through() -> None:
    one = world(halted=lambda db, _: "stop" if db.value("SELECT 1 FROM messages") else "")
    one.call("reserve", {"order": 1})
    one.call("notify", {"order": 1, "text": "x"})
    assert one.verdict("refund", {"order": 1, "amount": 1}).rule == "kill switch"
    assert one.verdict("release", {"order": 1}).allows


def test_the_journal_cannot_be_changed() -> None:
    one = world()
    one.call("read_order", {"order": 1})
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        one._connection.execute("DELETE FROM world_journal")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        one._connection.execute("UPDATE world_journal SET name = 'x'")


def test_a_world_in_a_file_is_there_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "world.db"
    first = World(ENVIRONMENT, path)
    first.call("refund", {"order": 1, "amount": 40}, "key")
    first.wait(days=1)
    first.died("unacknowledged")
    left = rows(first)
    first.close()
    second = World(ENVIRONMENT, path)
    assert rows(second) == left
    assert second.life == 2
    assert second.call("refund", {"order": 1, "amount": 40}, "key").outcome == "replayed"
    assert second.version("order 1") == 2


@settings(max_examples=12, deadline=None)
@given(st.lists(CALLS, max_size=12))
def test_whatever_is_called_the_journal_counts_what_the_tables_count(calls: list[tuple[str, int, str | None]]) -> None:
    one = world()
    for tool, order, key in calls:
        one.call(tool, arguments(tool, order), key)
    journal, tables = one.damage()
    assert journal.agrees(tables)
    times = net_effects(one.environment, one.journal())
    assert {standing.effect: standing.times for standing in one.standings() if standing.times} == {
        effect: count for effect, count in times.items() if count
    }


@settings(max_examples=12, deadline=None)
@given(st.lists(CALLS, max_size=8), st.lists(CALLS, max_size=8))
def test_a_restored_world_is_as_it_was_and_goes_on_alike(
    before: list[tuple[str, int, str | None]], after: list[tuple[str, int, str | None]]
) -> None:
    one = world()
    for tool, order, key in before:
        one.call(tool, arguments(tool, order), key)
    taken, was = one.snapshot(), rows(one)
    fork = one.fork(taken)
    for tool, order, key in after:
        one.call(tool, arguments(tool, order), key)
        one.wait(days=1)
    went = rows(one), one.journal()
    one.restore(taken)
    assert rows(one) == was
    assert one.digest() == taken.digest
    for tool, order, key in after:
        fork.call(tool, arguments(tool, order), key)
        fork.wait(days=1)
    assert (rows(fork), fork.journal()) == went


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(("refund", "reserve", "notify")), st.integers(1, 3), st.integers(2, 4))
def test_an_idempotent_call_is_one_effect_however_often_it_is_made(tool: str, order: int, times: int) -> None:
    one = world()
    answers = [one.call(tool, arguments(tool, order), "key") for _ in range(times)]
    assert sum(net_effects(one.environment, one.journal()).values()) == 1
    assert {answer.ok for answer in answers} == {True}


def test_a_trial_can_be_forked_at_any_step_and_is_there_as_it_was() -> None:
    one = world()
    steps = []
    one.wait(days=1)
    ENVIRONMENT.reference(one)
    one.died("recorded")
    one.call("refund", {"order": 3, "amount": 1})
    one.wait(days=9)
    for step in range(len(one.journal()) + 1):
        fork = world()
        fork.replay(one.journal()[:step])
        steps.append(fork.digest())
    assert steps[-1] == one.digest()
    assert (steps[0], fork.now, fork.life) == (world().digest(), one.journal()[-1].at, 2)
    assert len(set(steps)) == 1 + 8 + 1 + 1, "eight effects, an approval and one refund more"


def test_a_journal_of_another_world_cannot_be_replayed() -> None:
    one = world(tools=ENVIRONMENT.tools)
    one.call("reserve", {"order": 1})
    other = world(tools=tuple(tool for tool in ENVIRONMENT.tools if tool.name not in ("reserve", "release")))
    with pytest.raises(CannotRestore, match="is this the same pack"):
        other.replay(one.journal())
    one.wait(days=1)
    with pytest.raises(CannotRestore, match="is not what happens next"):
        world(events=()).replay(one.journal()[1:])


def test_a_process_that_is_killed_in_mid_call_leaves_effect_and_entry_or_neither(tmp_path: Path) -> None:
    path = tmp_path / "world.db"
    World(ENVIRONMENT, path).close()
    heard, tells = os.pipe()
    if (child := os.fork()) == 0:
        one = World(replace(ENVIRONMENT, throttle=0), path)
        while True:
            one.call("refund", {"order": 1, "amount": 1})
            os.write(tells, b".")
    for _ in range(20):
        os.read(heard, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    left = World(ENVIRONMENT, path)
    done = net_effects(ENVIRONMENT, left.journal())["refund of order 1"]
    assert done == next(each.times for each in left.standings() if each.effect == "refund of order 1") >= 20
    assert left.call("notify", {"order": 1, "text": "x"}).ok


@pytest.mark.parametrize(
    "given", [["order", 1], "order", None, {"order": object()}, {"order": "\ud800"}, {"order": 1, "amount": 10**30}]
)
def test_whatever_comes_from_outside_is_no_exception(given: Any) -> None:
    one = world()
    assert one.call("refund", given, "\ud800 key").outcome in ("refused", "failed")
    assert one.call("notify", {"order": 1, "text": "half \ud800 a pair"}).outcome == "failed"
    assert [entry.outcome for entry in one.journal()][-1] == "failed"


def test_a_world_takes_calls_from_several_threads_one_after_the_other() -> None:
    one = world()

    def calls(order: int) -> None:
        for _ in range(20):
            assert one.call("refund", {"order": order, "amount": 1}).ok

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(calls, (1, 2, 3)))
    assert [entry.seq for entry in one.journal()] == list(range(1, 61))
    assert set(net_effects(one.environment, one.journal()).values()) == {20}


def test_bytes_that_are_no_world_are_refused_and_change_nothing() -> None:
    one = world()
    one.call("refund", {"order": 1, "amount": 40})
    before = rows(one)
    other = sqlite3.connect(":memory:")
    other.execute("CREATE TABLE no_world (a)")
    for content in (b"no database", one.snapshot().content[:3000], other.serialize()):
        with pytest.raises(CannotRestore, match="snapshot"):
            one.restore(Snapshot("digest", content))
    assert rows(one) == before
    assert one.call("refund", {"order": 1, "amount": 40}).ok


@pytest.mark.parametrize("kept", ["no SQL", "CREATE TABLE world_clock (now)", "CREATE TABLE no_world (a)", "\ud800", "a\0b"])
def test_a_kept_world_that_is_none_is_refused_in_a_line(kept: str) -> None:
    with pytest.raises(CannotRestore, match="what is kept of the world is none") as refused:
        final_world(content_of(kept))
    assert "\n" not in str(refused.value)
    assert remade(kept, "digest", ENVIRONMENT, ()).lacking == str(refused.value)
    assert final_world(content_of(world().dump())).now == Moment(0)


def test_a_stale_read_shows_what_was_before_the_last_change_whoever_made_it() -> None:
    one = World(ENVIRONMENT, keeps_past=True)
    assert one.past("read_order", {"order": 2}) is None
    Db(one._connection, one._later).later("found", Moment(1), {"order": 2})
    one.wait(days=2)
    past = one.past("read_order", {"order": 2})
    assert past is not None
    assert (past.result.state, one.call("read_order", {"order": 2}).result.state) == ("lost", "found")


def test_an_effect_on_what_has_changed_unseen_is_stale_and_none_that_was_told() -> None:
    for told, stale in ((False, 1), (True, 0)):
        one = world()
        Db(one._connection, one._later).later("found", Moment(1), {"order": 2})
        one.call("read_order", {"order": 2})
        one._schedule.pass_to(Moment(2), one._happen)
        if told:
            one.arrivals()
        one.call("refund", {"order": 2, "amount": 10})
        assert one.damage()[0].stale == stale


def test_what_the_agent_has_recorded_is_noted_once_however_often_it_writes() -> None:
    one = world()
    for order in (1, 2):
        one.acknowledge(one.call("reserve", {"order": order}).entry)
        for _ in range(5):
            one.record()
    assert one.dump().count("'recorded'") == 2
    assert [count.orphaned for count in one.damage()] == [0, None]
