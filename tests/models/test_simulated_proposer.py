"""The simulated proposer does a world's work by tool calls, and knows nothing but its conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from little_worlds import REFUNDS
from trips import PACK as TRIPS
from world_tools import carried_out, tools

from bench.environment import World, final_world
from bench.models.base import Message
from bench.models.simulated_proposer import DONE, Proposed, proposed
from bench.models.tool_calls import ToolCall
from bench.packs import load_pack
from bench.scenario import Scenario

RENEWALS = Path(__file__).parents[2] / "scenarios"
KINDS = [f"dev_{number:02}" for number in range(1, 11)]
"""Each kind of renewal once."""


def begin() -> list[Message]:
    return [Message("user", "Do the work.")]


def step(scenario: Scenario, messages: Sequence[Message], world: World) -> Proposed:
    assert scenario.environment
    return proposed(scenario.environment, scenario.task, messages, tools(world))


def act(messages: list[Message], next_: Proposed, world: World, told: Callable[[str], str] = lambda said: said) -> None:
    """Carry out what was proposed, and write it into the conversation."""
    calls = tuple(ToolCall(f"{len(messages)}.{n}", one.tool, json.dumps(one.arguments)) for n, one in enumerate(next_.calls))
    messages.append(Message("assistant", "", calls))
    for call in calls:
        said = carried_out(world, call.name, json.loads(call.arguments))
        messages.append(Message("tool", told(said), tool_call_id=call.id))


def worked(scenario: Scenario, world: World, messages: list[Message], **how: Any) -> int:
    """Go on to the end; how many replies it took."""
    for replies in range(1, 200):
        if not (next_ := step(scenario, messages, world)).calls:
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


def scenarios() -> list[Scenario]:
    renewals = [load_pack("contract_renewal:renewal_dev", [RENEWALS], instance) for instance in KINDS]
    return [REFUNDS, TRIPS, *renewals]


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda one: f"{one.name} {one.instance}")
def test_it_does_a_worlds_work_to_its_end_without_damage(scenario: Scenario) -> None:
    with closing(new_world(scenario)) as world:
        worked(scenario, world, begin())
        assert harm(world) == {}
        assert is_solved(scenario, world)
