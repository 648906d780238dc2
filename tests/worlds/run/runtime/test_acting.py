"""What an agent does in its world, in a trial: faults strike as planned, and each step is in the record."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from clerks import bare, careful
from little_worlds import ENVIRONMENT, ended, harm, lived
from trials import Fault

from bench.record.events import Called, Faulted
from bench.record.world_events import Arrived, PersonAsked, ProcessDied, Stored, ToolCalled, WorldBegan, WorldEnded
from bench.run.experiment.trial import TrialResult
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import EventKind, Moment, Scheduled, World, final_world
from bench.worlds.run.environment.final import content_of
from bench.worlds.run.environment.in_packs import restore

Work = Callable[[Workbench], Awaitable[None]]


def working(work: Work) -> Callable[[Task, Workbench], Any]:
    async def architecture(_: Task, workbench: Workbench) -> None:
        await work(workbench)

    return architecture


def of(result: TrialResult, kind: type[Any]) -> list[Any]:
    return [event for event in result.record.events if isinstance(event, kind)]


def stages(result: TrialResult) -> Counter[str]:
    return Counter(event.stage for event in of(result, Faulted))


def struck(effect: str, point: str = "tool", **more: Any) -> Fault:
    return {"point": point, "effect": effect, "attempts": [1], **more}


def test_without_a_fault_both_are_right_and_do_no_damage() -> None:
    for architecture in (bare, careful):
        result = lived(architecture)
        assert (result.record.outcome, harm(result), ended(result).lives) == ("solved", {}, 1)


@pytest.mark.parametrize("point", ["before", "unacknowledged", "unrecorded", "recorded"])
def test_at_each_crash_point_of_each_effect_keys_and_a_store_make_it_exactly_once(point: str) -> None:
    result = lived(careful, [struck(point, "process")])
    assert (result.record.outcome, harm(result)) == ("solved", {})
    assert (stages(result)["planned"], stages(result)["delivered"], ended(result).lives) == (8, 8, 9)


@pytest.mark.parametrize("point", ["before", "unacknowledged", "unrecorded", "recorded"])
def test_without_them_the_effects_before_a_crash_are_done_again(point: str) -> None:
    result = lived(bare, [struck(point, "process", tool="notify")])
    damage, recount = ended(result).damage, ended(result).recount
    assert damage["doubled"] == recount["doubled"] != 0
    assert damage["orphaned"] != 0
    assert result.record.outcome == "wrong"


def test_a_lost_receipt_leaves_an_orphan_and_a_second_try_without_a_key_doubles() -> None:
    async def insists(workbench: Workbench) -> None:
        while not (await workbench.world.act("refund", {"order": 1, "amount": 40})).ok:
            pass

    result = lived(working(insists), [struck("lost_ack", tool="refund")])
    first, second = of(result, ToolCalled)
    assert (first.outcome, first.reason, second.outcome, second.try_) == ("failed", "no answer came", "done", 2)
    assert (harm(result)["doubled"], harm(result)["orphaned"]) == (1, 1)


def test_an_error_leaves_the_world_as_it_was() -> None:
    async def tries(workbench: Workbench) -> None:
        assert (await workbench.world.act("refund", {"order": 1, "amount": 40})).code == "unavailable"

    result = lived(working(tries), [struck("error")])
    [call] = of(result, ToolCalled)
    assert (call.before, call.entry, stages(result)["detected"]) == (call.after, 0, 1)


def test_a_request_that_arrives_twice_happens_twice_unless_it_has_a_key() -> None:
    for key, doubled in ((None, 1), ("key", 0)):

        async def acts(workbench: Workbench, key: str | None = key) -> None:
            await workbench.world.act("refund", {"order": 1, "amount": 40}, key)

        result = lived(working(acts), [struck("duplicate")])
        assert (harm(result).get("doubled", 0), stages(result)["delivered"]) == (doubled, 1)


def test_a_slow_tool_takes_its_minutes_of_world_time() -> None:
    async def acts(workbench: Workbench) -> None:
        await workbench.world.act("read_order", {"order": 1})
        assert workbench.world.now == Moment(0, 45)

    assert stages(lived(working(acts), [struck("slow", minutes=45)]))["delivered"] == 1


def test_what_happens_while_a_slow_call_waits_is_news_to_the_agent_and_its_effect_is_stale() -> None:
    environment = replace(ENVIRONMENT, events=(Scheduled("turns up", "found", Moment(1), {"order": 2}),))

    async def acts(workbench: Workbench) -> None:
        await workbench.world.act("read_order", {"order": 2})
        await workbench.world.act("refund", {"order": 2, "amount": 20})

    slow = struck("slow", tool="refund", minutes=2 * 24 * 60)
    assert harm(lived(working(acts), [slow], environment)).get("stale") == 1
    assert "stale" not in harm(lived(working(acts), (), environment))


def test_a_stale_read_is_delivered_once_something_has_changed_and_what_is_based_on_it_is_stale() -> None:
    environment = replace(
        ENVIRONMENT, events=(Scheduled("turns up", "found", Moment(1), {"order": 2}),), kinds=ENVIRONMENT.kinds
    )

    async def trusts(workbench: Workbench) -> None:
        await workbench.world.wait(days=2)
        order = (await workbench.world.act("read_order", {"order": 2})).result
        assert order.state == "lost"
        await workbench.world.act("refund", {"order": 2, "amount": 10})

    result = lived(working(trusts), [struck("stale_read")], environment)
    assert (stages(result)["delivered"], harm(result)["stale"]) == (1, 1)


def test_what_a_call_cannot_carry_is_not_applicable() -> None:
    async def refused(workbench: Workbench) -> None:
        assert (await workbench.world.act("release", {"order": 1})).code == "declined"
        await workbench.world.act("read_order", {"order": 1})

    for fault in (struck("lost_ack"), struck("duplicate"), struck("unacknowledged", "process"), struck("stale_read")):
        assert stages(lived(working(refused), [fault])) == {"planned": 1, "not_applicable": 1}


@pytest.mark.parametrize(
    ("effect", "notices"),
    [
        ("late", [("a", 1, 1), ("b", 2, 0), ("a", 2, 1)]),
        ("doubled", [("a", 1, 0), ("a", 1, 0), ("b", 2, 0)]),
        ("reordered", [("b", 2, 0), ("a", 2, 0)]),
        ("missed", [("b", 2, 0)]),
    ],
)
def test_notices_come_late_twice_and_out_of_order(effect: str, notices: list[tuple[str, int, int]]) -> None:
    events = (Scheduled("a", "opened", Moment(1)), Scheduled("b", "other", Moment(2)))
    environment = replace(ENVIRONMENT, events=events, kinds=(EventKind("opened"), EventKind("other"), *ENVIRONMENT.kinds[1:]))

    async def waits(workbench: Workbench) -> None:
        read = 0
        while event := await workbench.world.next_event(read):
            read = event.number

    result = lived(
        working(waits), [struck(effect, "event", event="opened", minutes=1441 if effect == "late" else 0)], environment
    )
    expected = notices[1:] if effect == "late" else notices
    assert [(event.event, event.day, event.minute) for event in of(result, Arrived)] == expected
    assert stages(result)["delivered"] == 1


def test_what_a_second_writer_saved_makes_an_effect_stale_and_is_refused_where_a_version_is_expected() -> None:
    for expects in (False, True):

        async def writes(workbench: Workbench, expects: bool = expects) -> None:
            read = await workbench.world.act("read_order", {"order": 1})
            acted = await workbench.world.act("refund", {"order": 1, "amount": 40}, expect=read.versions if expects else None)
            assert acted.code == ("stale" if expects else "")

        result = lived(working(writes), [struck("second_writer")])
        assert (stages(result)["delivered"], harm(result).get("stale", 0)) == (1, int(not expects))
        kept = next(iter(of(result, WorldEnded))).kept
        journal = restore(result.texts[kept]).journal
        again = World(ENVIRONMENT)
        again.replay(journal)
        assert again.version("order 1") == (3 if not expects else 2)


def test_a_throttled_tool_does_nothing_says_when_it_takes_a_call_again_and_then_takes_it() -> None:
    async def waits(workbench: Workbench) -> None:
        world, call = workbench.world, {"order": 1, "amount": 40}
        refused = await world.act("refund", call)
        assert (refused.outcome, refused.code, refused.again) == ("refused", "throttled", world.now.after(minutes=30))
        await world.wait(until=refused.again)
        assert (await world.act("refund", call)).ok

    result = lived(working(waits), [struck("throttled", tool="refund", minutes=30)])
    assert (stages(result)["delivered"], stages(result)["detected"], harm(result).get("doubled", 0)) == (1, 1, 0)
    assert [event.outcome for event in of(result, ToolCalled)] == ["refused", "done"]


def test_a_fault_named_answer_strikes_what_a_person_says_and_a_fault_of_every_event_does_not() -> None:
    async def asks(workbench: Workbench) -> None:
        answers.append((await workbench.world.ask_person("manager", "order 1", {"order": 1}, days=1)).answer)

    answers: list[str] = []
    for named in ({"event": "answer"}, {"event": "*"}, {}):
        lived(working(asks), [struck("missed", "event", **named)])
    assert answers[0] == "late" and "late" not in answers[1:]


def test_no_notice_is_struck_once_the_agent_has_ended() -> None:
    async def leaves(workbench: Workbench) -> None:
        await workbench.world.next_event()

    result = lived(working(leaves), [struck("doubled", "event")])
    assert (stages(result)["planned"], stages(result)["delivered"], ended(result).day) == (1, 1, 10)


def test_draws_do_not_depend_on_the_architecture_nor_on_the_order_of_calls() -> None:
    def strikes(orders: tuple[int, ...], reads: bool) -> set[tuple[str, int]]:
        async def acts(workbench: Workbench) -> None:
            for order in orders:
                if reads:
                    await workbench.world.act("read_order", {"order": order})
                for _ in range(4):
                    await workbench.world.act("refund", {"order": order, "amount": 1})

        result = lived(working(acts), [{"point": "tool", "effect": "lost_ack", "probability": 0.5}])
        return {(event.effect, event.try_) for event in of(result, ToolCalled) if event.reason == "no answer came"}

    assert strikes((1, 2, 3), reads=False) == strikes((3, 1, 2), reads=True) != set()


def test_all_that_runs_of_a_dead_agent_dies_with_it_and_it_begins_anew() -> None:
    lives: list[int] = []

    async def twins(workbench: Workbench) -> None:
        lives.append(workbench.world.life)

        async def act_on(order: int) -> None:
            try:
                await workbench.world.act("refund", {"order": order, "amount": 1}, f"refund {order}")
                await workbench.world.act("notify", {"order": order, "text": "x"}, f"notify {order}")
            except Exception:
                pytest.fail("a death was handled")

        await asyncio.gather(*(act_on(order) for order in (1, 2, 3)), return_exceptions=workbench.world.life == 1)

    result = lived(working(twins), [struck("before", "process", tool="refund")])
    assert lives == [1, 2, 3, 4]
    assert (len(of(result, ProcessDied)), stages(result)["delivered"], harm(result)) == (3, 3, {})
    assert ended(result).recount["doubled"] == 0


def test_a_death_within_a_group_of_tasks_is_a_death() -> None:
    async def grouped(workbench: Workbench) -> None:
        async with asyncio.TaskGroup() as group:
            for order in (1, 2):
                group.create_task(workbench.world.act("refund", {"order": order, "amount": 1}, f"refund {order}"))

    result = lived(working(grouped), [struck("unacknowledged", "process", tool="refund")])
    assert (ended(result).lives, ended(result).damage["doubled"], stages(result)["delivered"]) == (3, 0, 2)


def test_one_that_always_dies_gives_up_and_is_recorded() -> None:
    async def acts(workbench: Workbench) -> None:
        await workbench.world.act("refund", {"order": 1, "amount": 1})

    result = lived(working(acts), [{"point": "process", "effect": "before", "attempts": "every"}])
    assert (result.record.outcome, "50 times" in result.record.reason) == ("gave_up", True)
    assert stages(result)["planned"] == stages(result)["delivered"] == 50
    assert ended(result).lives == 51


def test_one_that_calls_without_end_gives_up() -> None:
    async def asks(workbench: Workbench) -> None:
        while True:
            await workbench.world.wait(minutes=0)

    assert lived(working(asks)).record.outcome == "gave_up"


def test_a_bug_of_an_architecture_is_an_error_and_its_world_is_in_the_record() -> None:
    async def breaks(workbench: Workbench) -> None:
        await workbench.world.act("refund", {"order": 1, "amount": 1})
        raise KeyError("a bug")

    result = lived(working(breaks))
    assert (result.record.outcome, ended(result).damage["orphaned"]) == ("error", 0)


def test_the_record_has_every_step_and_digests_that_meet() -> None:
    result = lived(careful, [struck("unrecorded", "process", tool="refund")])
    calls, texts = of(result, ToolCalled), result.texts
    assert [of(result, kind) != [] for kind in (WorldBegan, Stored, PersonAsked, ProcessDied)] == [True] * 4
    assert of(result, WorldBegan)[0].digest == calls[0].before
    assert all(call.arguments in texts and (call.result is None or call.result in texts) for call in calls)
    assert all(call.before == call.after for call in calls if call.access == "read" or call.outcome != "done")
    assert ended(result).kept in texts
    assert {call.policy for call in calls if call.access != "read" and call.outcome == "done"} == {"refunds-1"}


def test_a_judgment_made_again_after_a_crash_is_a_rerun() -> None:
    result = lived(bare, [struck("before", "process")], max_attempts=1)
    calls, died = of(result, Called), [n for n, event in enumerate(result.record.events) if isinstance(event, ProcessDied)]
    again = [call for call in calls if call.cause == "rerun"]
    assert result.record.outcome == "wrong"
    assert len(again) == 8 + 4
    assert {call.caused_by for call in again} <= set(died)


def test_the_same_judgment_on_another_state_is_another_question() -> None:
    result = lived(bare)
    assert [(call.attempt, call.cause) for call in of(result, Called)] == [(1, "first")] * 3


def test_a_recorded_trial_can_be_forked_after_each_call_that_was_answered() -> None:
    result = lived(careful, [struck("unacknowledged", "process"), struck("doubled", "event")])
    journal = final_world(content_of(result.texts[ended(result).kept])).journal
    calls = [call for call in of(result, ToolCalled) if call.entry]
    for call in calls:
        fork = World(ENVIRONMENT, drawn_from=(7, "refunds", 1))
        fork.replay(journal[: call.entry])
        assert (fork.digest(), fork.life) == (call.after, call.life)
    assert len(calls) > 8


def test_what_an_agent_held_in_memory_is_gone_after_a_crash_and_what_it_stored_is_not() -> None:
    held: list[tuple[bool, object]] = []

    async def decides(task: Task, workbench: Workbench) -> None:
        decide = task.subtask("decide")
        held.append((workbench.done(decide), workbench.world.store.get("decided")))
        order = (await workbench.world.act("read_order", {"order": 1})).result
        proposal = await workbench.propose(decide, documents={"order": order})
        assert workbench.verify(proposal) is None
        workbench.commit(proposal)
        workbench.world.store.put("decided", workbench.world.life)
        await workbench.world.act("refund", {"order": 1, "amount": 40}, "key")

    lived(decides, [struck("before", "process")])
    assert held == [(False, None), (False, 1)]


def test_samples_of_a_judgment_are_asked_on_the_state_that_is_given() -> None:
    async def votes(task: Task, workbench: Workbench) -> None:
        state = (await workbench.world.act("read_order", {"order": 2})).result
        samples = await workbench.sample(task.subtask("decide"), count=3, documents={"order": state})
        assert [workbench.verify(sample) for sample in samples] == [None] * 3
        workbench.commit(samples[0])
        assert workbench.output(task.subtask("decide")).amount == 250  # type: ignore[union-attr]

    assert sorted(call.cause for call in of(lived(votes), Called)) == ["first", "sample", "sample"]


def test_a_document_that_nobody_declared_or_nobody_gave_is_refused() -> None:
    async def gives(task: Task, workbench: Workbench) -> None:
        with pytest.raises(ValueError, match="did you mean 'order'"):
            await workbench.propose(task.subtask("decide"), documents={"ordr": "x"})
        with pytest.raises(RuntimeError, match="'decide' reads 'order'; give it"):
            await workbench.propose(task.subtask("decide"))

    lived(gives)
