"""The simulated proposer does a world's work by tool calls, and knows nothing but its conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from little_worlds import REFUNDS
from trips import PACK as TRIPS
from world_tools import carried_out, tools

from bench.common.digests import case_of
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.packs import load_pack
from bench.scenario import Json, Scenario, as_document
from bench.worlds.run.environment import JudgmentState, World, final_world
from bench.worlds.run.simulated.course import Judge
from bench.worlds.run.simulated.proposer import DONE, Proposed, next_calls

RENEWALS = Path(__file__).parents[4] / "scenarios"
KINDS = [f"dev_{number:02}" for number in (2, 4, 6, 7)]
"""Renewals of four kinds."""
DEPLOYS = "case_01"
"""An incident in which a colleague deploys while the agent reads: who hears of it only later acts on what is stale."""


def begin() -> list[Message]:
    return [Message("user", "Do the work.")]


def step(scenario: Scenario, messages: Sequence[Message], world: World, judge: Judge | None = None) -> Proposed:
    assert scenario.environment
    return next_calls(scenario.environment, scenario.task, messages, tools(world), judge=judge)


def act(messages: list[Message], next_: Proposed, world: World, written: Callable[[str], str] = lambda each: each) -> None:
    """Carry out what was proposed, and write it into the conversation."""
    calls = tuple(ToolCall(f"{len(messages)}.{n}", call.tool, json.dumps(call.arguments)) for n, call in enumerate(next_.calls))
    messages.append(Message("assistant", "", calls))
    for call in calls:
        text = carried_out(world, call.name, json.loads(call.arguments))
        messages.append(Message("tool", written(text), tool_call_id=call.id))


def worked(scenario: Scenario, world: World, messages: list[Message], judge: Judge | None = None, **how: Any) -> int:
    """Go on to the end; how many replies it took."""
    for replies in range(1, 200):
        if not (next_ := step(scenario, messages, world, judge)).calls:
            assert next_.text == DONE
            return replies
        act(messages, next_, world, **how)
    raise AssertionError("it never ends")


def harm(world: World) -> dict[str, int]:
    world.record()
    world.end()
    damage, _ = world.damage()
    return {kind: count for kind, count in vars(damage).items() if count}


def is_solved(scenario: Scenario, world: World) -> bool:
    return scenario.grade_world(final_world(world.snapshot().content)).correct


def new_world(scenario: Scenario) -> World:
    assert scenario.environment
    return World(scenario.environment)


@cache
def scenarios() -> list[Scenario]:
    renewals = [load_pack("contract_renewal:renewal_dev", [RENEWALS], instance) for instance in KINDS]
    conversations = [load_pack("support_desk", [RENEWALS], instance) for instance in ("case_02", "case_04", "case_06")]
    return [REFUNDS, TRIPS, *renewals, load_pack("incident_response", [RENEWALS], DEPLOYS), *conversations]


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: f"{scenario.name} {scenario.instance}")
def test_it_does_a_worlds_work_to_its_end_without_damage(scenario: Scenario) -> None:
    with closing(new_world(scenario)) as world:
        worked(scenario, world, begin())
        assert harm(world) == {}
        assert is_solved(scenario, world)


def test_a_conversation_that_is_kept_goes_on_where_it_was() -> None:
    with closing(new_world(REFUNDS)) as world:
        messages = begin()
        for _ in range(6):
            act(messages, step(REFUNDS, messages, world), world)
        world.note_crash("recorded")
        worked(REFUNDS, world, list(messages))
        assert harm(world).get("doubled") is None


def test_a_conversation_that_is_lost_begins_anew_and_does_again_what_was_done() -> None:
    with closing(new_world(REFUNDS)) as world:
        messages = begin()
        first = step(REFUNDS, messages, world)
        for _ in range(6):
            act(messages, step(REFUNDS, messages, world), world)
        world.note_crash("recorded")
        assert step(REFUNDS, begin(), world) == first
        worked(REFUNDS, world, begin())
        assert harm(world)["doubled"] > 0


def test_it_proposes_the_same_to_the_same_messages() -> None:
    with closing(new_world(TRIPS)) as world:
        messages = begin()
        for _ in range(5):
            act(messages, step(TRIPS, messages, world), world)
        assert step(TRIPS, messages, world) == step(TRIPS, messages, world)


def without_wrapping(words: str) -> str:
    body = json.loads(words)
    return json.dumps(body.get("result", body))


def as_part(words: str) -> str:
    return json.dumps([{"type": "text", "text": words}])


def as_python(words: str) -> str:
    return repr(json.loads(words))


@pytest.mark.parametrize("written", [without_wrapping, as_part, as_python])
def test_it_reads_a_result_however_a_framework_writes_it(written: Callable[[str], str]) -> None:
    with closing(new_world(TRIPS)) as world:
        worked(TRIPS, world, begin(), written=written)
        assert is_solved(TRIPS, world)


def test_a_call_that_failed_is_made_again_after_a_while() -> None:
    spoilt = iter(["The connection was closed.", '{"error": {"code": "unavailable", "message": "not now"}}', "Error"])

    def in_other_words(words: str) -> str:
        return next(spoilt, words) if '"order"' in words else words

    with closing(new_world(REFUNDS)) as world:
        worked(REFUNDS, world, begin(), written=in_other_words)
        assert is_solved(REFUNDS, world)
    assert next(spoilt, None) is None


def test_it_calls_a_tool_by_the_name_that_it_is_offered_under() -> None:
    assert REFUNDS.environment
    names = ["world__read_order", "mcp.wait", "next_event", "misread_order"]
    offered = [{"type": "function", "function": {"name": name}} for name in names]
    first = next_calls(REFUNDS.environment, REFUNDS.task, begin(), offered)
    assert [call.tool for call in first.calls] == ["mcp.wait"]


def test_without_the_tool_that_is_next_it_says_so() -> None:
    assert REFUNDS.environment
    assert next_calls(REFUNDS.environment, REFUNDS.task, begin(), []) == Proposed(
        text="I cannot go on: there is no tool 'wait'."
    )


def test_calls_that_may_be_made_together_are_unless_they_must_not() -> None:
    def most(together: bool) -> int:
        scenario = load_pack("contract_renewal:renewal_dev", [RENEWALS], KINDS[0])
        assert scenario.environment
        with closing(new_world(scenario)) as world:
            messages, sizes = begin(), list[int]()
            while (next_ := next_calls(scenario.environment, scenario.task, messages, tools(world), together)).calls:
                sizes.append(len(next_.calls))
                act(messages, next_, world)
            assert is_solved(scenario, world)
        return max(sizes)

    assert (most(True), most(False)) == (2, 1)


def judging(scenario: Scenario, wrong: dict[str, Json | str], shown_in: set[tuple[str, str]] | None = None) -> Judge:
    """Right but for the judgments in `wrong`; `shown_in` gathers what was judged, and in which states."""
    assert scenario.environment
    right = scenario.environment.right
    assert right

    def judge(subtask: str, shown: Mapping[str, str]) -> Json | str:
        if shown_in is not None:
            shown_in.add((subtask, case_of(shown)))
        values = wrong.get(subtask, {})
        return values if isinstance(values, str) else {**right(subtask, {**scenario.task.documents, **shown}), **values}

    return judge


def documents(state: JudgmentState) -> dict[str, str]:
    return {name: as_document(value) for name, value in state.documents.items()}


def with_states() -> list[Scenario]:
    return [scenario for scenario in scenarios() if scenario.environment and scenario.environment.states]


@pytest.mark.parametrize("scenario", with_states(), ids=lambda each: f"{each.name} {each.instance}")
def test_it_judges_in_the_states_that_a_bank_of_replies_is_asked_in(scenario: Scenario) -> None:
    assert scenario.environment and scenario.environment.states
    shown_in = set[tuple[str, str]]()
    with closing(new_world(scenario)) as world:
        worked(scenario, world, begin(), judging(scenario, {}, shown_in))
    asked = {(state.subtask, case_of(documents(state))) for state in scenario.environment.states(scenario.environment)}
    assert shown_in and shown_in <= asked


def test_one_who_judges_wrongly_does_what_it_judged_and_a_person_is_still_asked() -> None:
    scenario = load_pack("contract_renewal:renewal_dev", [RENEWALS], KINDS[0])
    with closing(new_world(scenario)) as world:
        worked(scenario, world, begin(), judging(scenario, {"offer": {"discount": 95}}))
        assert harm(world)["unauthorised"] > 0
        assert not is_solved(scenario, world)


@pytest.mark.parametrize("judgment", ["risk", "offer", "close"])
def test_a_judgment_that_is_none_leaves_its_step_out_and_the_rest_goes_on(judgment: str) -> None:
    """What needs what was never judged is left out in its turn; what two steps fall back on is done once."""
    scenario = load_pack("contract_renewal:renewal_dev", [RENEWALS], KINDS[0])
    with closing(new_world(scenario)) as world:
        worked(scenario, world, begin(), judging(scenario, {judgment: "I could not say."}))
        assert "doubled" not in harm(world)
        assert not is_solved(scenario, world)
