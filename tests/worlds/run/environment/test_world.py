"""A world: calls are transactions, keys make them happen once, and the journal has them all."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from little_worlds import ENVIRONMENT, world

from bench.rerun.remade import remake
from bench.worlds.run.environment import CannotRestore, Db, JournalEntry, Moment, Scheduled, Snapshot, Tool, World, final_world
from bench.worlds.run.environment.damage import net_effects
from bench.worlds.run.environment.final import content_of

CALLS = st.tuples(
    st.sampled_from(("read_order", "refund", "reserve", "release", "notify", "no_such_tool")),
    st.integers(1, 4),
    st.one_of(st.none(), st.sampled_from(("a", "b", "c"))),
)


def arguments(tool: str, order: int) -> dict[str, object]:
    more: dict[str, dict[str, object]] = {"refund": {"amount": 10}, "notify": {"text": "hello"}}
    return {"order": order, **more.get(tool, {})}


def rows(shop: World) -> tuple[str, int, Moment]:
    return shop.digest(), len(shop.journal()), shop.now


def test_a_known_key_gives_the_stored_result_and_no_second_effect() -> None:
    shop = world()
    first = shop.call("refund", {"order": 1, "amount": 40}, "key")
    again = shop.call("refund", {"order": 1, "amount": 40}, "key")
    assert (first.outcome, again.outcome, again.result) == ("done", "replayed", first.result)
    assert net_effects(shop.environment, shop.journal())["refund of order 1"] == 1


def test_without_a_key_the_same_call_is_a_second_effect() -> None:
    shop = world()
    for _ in range(2):
        shop.call("refund", {"order": 1, "amount": 40})
    assert [count.doubled for count in shop.damage()] == [1, 1]


def test_a_key_that_was_given_with_another_call_is_refused() -> None:
    shop = world()
    shop.call("refund", {"order": 1, "amount": 40}, "key")
    refused = shop.call("refund", {"order": 2, "amount": 40}, "key")
    assert (refused.outcome, refused.code) == ("refused", "key")
    assert "key" in refused.reason


def test_a_call_that_failed_under_a_key_can_be_made_again_under_it() -> None:
    shop = world()
    assert shop.call("release", {"order": 1}, "key").code == "declined"
    shop.call("reserve", {"order": 1})
    assert shop.call("release", {"order": 1}, "key").outcome == "done"


def test_a_version_that_has_moved_refuses_the_call() -> None:
    shop = world()
    read = shop.call("read_order", {"order": 1})
    shop.call("refund", {"order": 1, "amount": 40})
    swapped = shop.call("refund", {"order": 1, "amount": 40}, expect=read.versions)
    assert (swapped.outcome, swapped.code) == ("refused", "stale")
    assert shop.call("refund", {"order": 1, "amount": 1}, expect={"order 1": shop.version("order 1")}).ok


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
    shop = world()
    before = shop.digest()
    refused = shop.call(tool, given)
    assert (refused.outcome, refused.code, refused.reason.count("\n")) == ("refused", code, 0)
    assert (shop.journal()[-1].reason, shop.digest()) == (refused.reason, before)


def test_more_calls_in_a_minute_than_are_taken_are_refused_until_the_next() -> None:
    shop = world(throttle=60)
    taken = [shop.call("read_order", {"order": 1}).code for _ in range(1000)]
    assert taken.count("throttled") == 940
    shop.wait(minutes=1)
    assert shop.call("read_order", {"order": 1}).ok


def test_the_policys_verdict_stands_beside_each_effect_with_its_version() -> None:
    shop = world()
    assert shop.verdict("refund", {"order": 2, "amount": 250}).decision == "person"
    shop.call("refund", {"order": 2, "amount": 250})
    entry = shop.journal()[-1]
    assert (entry.decision, entry.rule, entry.policy) == ("person", "large", "refunds-1")
    assert [count.unauthorised for count in shop.damage()] == [1, 1]


def test_an_approved_effect_is_authorised() -> None:
    shop = world()
    shop.ask("manager", "order 2", {"order": 2})
    shop.wait(minutes=61)
    shop.call("refund", {"order": 2, "amount": 250})
    assert [count.unauthorised for count in shop.damage()] == [0, 0]


def test_a_thrown_kill_switch_forbids_effects_and_lets_undos_through() -> None:
    shop = world(halted=lambda db, _: "stop" if db.value("SELECT 1 FROM messages") else "")
    shop.call("reserve", {"order": 1})
    shop.call("notify", {"order": 1, "text": "x"})
    assert shop.verdict("refund", {"order": 1, "amount": 1}).rule == "kill switch"
    assert shop.verdict("release", {"order": 1}).allows


def test_the_journal_cannot_be_changed() -> None:
    shop = world()
    shop.call("read_order", {"order": 1})
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        shop._connection.execute("DELETE FROM world_journal")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        shop._connection.execute("UPDATE world_journal SET name = 'x'")


def test_a_world_in_a_file_is_there_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "world.db"
    first = World(ENVIRONMENT, path)
    first.call("refund", {"order": 1, "amount": 40}, "key")
    first.wait(days=1)
    first.note_crash("unacknowledged")
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
    shop = world()
    for tool, order, key in calls:
        shop.call(tool, arguments(tool, order), key)
    journal, tables = shop.damage()
    assert journal.agrees(tables)
    times = net_effects(shop.environment, shop.journal())
    assert {standing.effect: standing.times for standing in shop.standings() if standing.times} == {
        effect: count for effect, count in times.items() if count
    }


@settings(max_examples=12, deadline=None)
@given(st.lists(CALLS, max_size=8), st.lists(CALLS, max_size=8))
def test_a_restored_world_is_as_it_was_and_goes_on_alike(
    before: list[tuple[str, int, str | None]], after: list[tuple[str, int, str | None]]
) -> None:
    shop = world()
    for tool, order, key in before:
        shop.call(tool, arguments(tool, order), key)
    taken, was = shop.snapshot(), rows(shop)
    fork = shop.fork(taken)
    for tool, order, key in after:
        shop.call(tool, arguments(tool, order), key)
        shop.wait(days=1)
    went = rows(shop), shop.journal()
    shop.restore(taken)
    assert rows(shop) == was
    assert shop.digest() == taken.digest
    for tool, order, key in after:
        fork.call(tool, arguments(tool, order), key)
        fork.wait(days=1)
    assert (rows(fork), fork.journal()) == went


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(("refund", "reserve", "notify")), st.integers(1, 3), st.integers(2, 4))
def test_an_idempotent_call_is_one_effect_however_often_it_is_made(tool: str, order: int, times: int) -> None:
    shop = world()
    answers = [shop.call(tool, arguments(tool, order), "key") for _ in range(times)]
    assert sum(net_effects(shop.environment, shop.journal()).values()) == 1
    assert {answer.ok for answer in answers} == {True}


def test_a_trial_can_be_forked_at_any_step_and_is_there_as_it_was() -> None:
    shop = world()
    steps = []
    shop.wait(days=1)
    ENVIRONMENT.reference(shop)
    shop.note_crash("recorded")
    shop.call("refund", {"order": 3, "amount": 1})
    shop.wait(days=9)
    for step in range(len(shop.journal()) + 1):
        fork = world()
        fork.replay(shop.journal()[:step])
        steps.append(fork.digest())
    assert steps[-1] == shop.digest()
    assert (steps[0], fork.now, fork.life) == (world().digest(), shop.journal()[-1].at, 2)
    assert len(set(steps)) == 1 + 8 + 1 + 1, "eight effects, an approval and one refund more"


def test_what_happens_while_a_call_takes_its_time_happens_in_a_replay_as_well_and_belongs_to_its_own_entry() -> None:
    tools = (*(replace(tool, minutes=5) for tool in ENVIRONMENT.tools),)
    events = (Scheduled("late order", "opened", Moment(0, 3), {"orders": [1]}),)
    shop = world(tools=tools, events=events)
    for order in (1, 2):
        shop.call("refund", {"order": order, "amount": 1})
    assert [entry.what for entry in shop.journal()] == ["call", "event", "call"]
    again = remake(shop.dump(), shop.digest(), shop.environment, ("world",))
    assert (again.lacking, set(again.changes)) == ("", {1, 3})
    forks = [forked_at(tools, events, shop.journal()[:step]) for step in range(4)]
    assert [fork.now for fork in forks] == [Moment(0, 0), Moment(0, 3), Moment(0, 3), Moment(0, 10)]
    forks[1].wait(minutes=2)
    assert [entry.what for entry in forks[1].journal()] == ["call", "event"]


def forked_at(tools: Sequence[Tool], events: Sequence[Scheduled], entries: Sequence[JournalEntry]) -> World:
    fork = world(tools=tools, events=events)
    fork.replay(entries)
    return fork


def test_a_journal_of_another_world_cannot_be_replayed() -> None:
    shop = world(tools=ENVIRONMENT.tools)
    shop.call("reserve", {"order": 1})
    other = world(tools=tuple(tool for tool in ENVIRONMENT.tools if tool.name not in ("reserve", "release")))
    with pytest.raises(CannotRestore, match="is this the same pack"):
        other.replay(shop.journal())
    shop.wait(days=1)
    with pytest.raises(CannotRestore, match="is not what happens next"):
        world(events=()).replay(shop.journal()[1:])


def test_a_process_that_is_killed_in_mid_call_leaves_effect_and_entry_or_neither(tmp_path: Path) -> None:
    path = tmp_path / "world.db"
    World(ENVIRONMENT, path).close()
    heard, tells = os.pipe()
    if (child := os.fork()) == 0:
        shop = World(replace(ENVIRONMENT, throttle=0), path)
        while True:
            shop.call("refund", {"order": 1, "amount": 1})
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
    shop = world()
    assert shop.call("refund", given, "\ud800 key").outcome in ("refused", "failed")
    assert shop.call("notify", {"order": 1, "text": "half \ud800 a pair"}).outcome == "failed"
    assert [entry.outcome for entry in shop.journal()][-1] == "failed"


def test_a_world_takes_calls_from_several_threads_one_after_the_other() -> None:
    shop = world()

    def calls(order: int) -> None:
        for _ in range(20):
            assert shop.call("refund", {"order": order, "amount": 1}).ok

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(calls, (1, 2, 3)))
    assert [entry.seq for entry in shop.journal()] == list(range(1, 61))
    assert set(net_effects(shop.environment, shop.journal()).values()) == {20}


def test_bytes_that_are_no_world_are_refused_and_change_nothing() -> None:
    shop = world()
    shop.call("refund", {"order": 1, "amount": 40})
    before = rows(shop)
    other = sqlite3.connect(":memory:")
    other.execute("CREATE TABLE no_world (a)")
    for content in (b"no database", shop.snapshot().content[:3000], other.serialize()):
        with pytest.raises(CannotRestore, match="snapshot"):
            shop.restore(Snapshot("digest", content))
    assert rows(shop) == before
    assert shop.call("refund", {"order": 1, "amount": 40}).ok


@pytest.mark.parametrize("kept", ["no SQL", "CREATE TABLE world_clock (now)", "CREATE TABLE no_world (a)", "\ud800", "a\0b"])
def test_a_kept_world_that_is_none_is_refused_in_a_line(kept: str) -> None:
    with pytest.raises(CannotRestore, match="what is kept of the world cannot be read") as refused:
        final_world(content_of(kept))
    assert "\n" not in str(refused.value)
    assert remake(kept, "digest", ENVIRONMENT, ()).lacking == str(refused.value)
    assert final_world(content_of(world().dump())).now == Moment(0)


def test_a_stale_read_shows_what_was_before_the_last_change_whoever_made_it() -> None:
    shop = World(ENVIRONMENT, keeps_past=True)
    assert shop.past("read_order", {"order": 2}) is None
    Db(shop._connection, shop._later).later("found", Moment(1), {"order": 2})
    shop.wait(days=2)
    past = shop.past("read_order", {"order": 2})
    assert past is not None
    assert (past.result.state, shop.call("read_order", {"order": 2}).result.state) == ("lost", "found")


def test_an_effect_on_what_has_changed_unseen_is_stale_and_none_that_was_told() -> None:
    for is_told, stale in ((False, 1), (True, 0)):
        shop = world()
        Db(shop._connection, shop._later).later("found", Moment(1), {"order": 2})
        shop.call("read_order", {"order": 2})
        shop._schedule.pass_to(Moment(2), shop._happen)
        if is_told:
            shop.arrivals()
        shop.call("refund", {"order": 2, "amount": 10})
        assert shop.damage()[0].stale == stale


def test_what_the_agent_has_recorded_is_noted_once_however_often_it_writes() -> None:
    shop = world()
    for order in (1, 2):
        shop.acknowledge(shop.call("reserve", {"order": order}).entry)
        for _ in range(5):
            shop.record()
    assert shop.dump().count("'recorded'") == 2
    assert [count.orphaned for count in shop.damage()] == [0, None]
