"""Each event of a world names the call of the model, the step and the version of the plan that it came from."""

from __future__ import annotations

import pytest
from trials import Fault
from trips import REMEDIED, Trip, environment, worked

from bench.record.events import Called
from bench.record.world_events import ProcessDied, Stepped, Stored, ToolCalled
from bench.run.experiment.trial import TrialResult
from bench.worlds.run.environment.procedure import judgments_behind
from bench.worlds.run.patterns.plan_and_replan import PLANS

TRIPS = [Trip(1, 300), Trip(2, 300)]
DIES: Fault = {"point": "process", "effect": "unacknowledged", "tool": "pay", "attempts": [1]}
STEPS = environment(TRIPS[:1]).procedure


def calls_for(result: TrialResult, judgment: str) -> list[int]:
    return [event.call for event in result.record.events if isinstance(event, Called) and judgment in event.subtasks]


@pytest.mark.parametrize("pattern", ["state_machine", "scatter_gather_saga", "plan_and_replan"])
def test_an_effect_names_its_step_and_the_call_for_the_judgment_that_the_step_stands_on(pattern: str) -> None:
    result = worked(pattern, trips=TRIPS[:1])
    effects = [event for event in result.record.events if isinstance(event, ToolCalled) and event.access != "read"]
    assert {effect.step for effect in effects} <= {step.name for step in STEPS}
    for effect in effects:
        [judgment] = judgments_behind(STEPS)[effect.step]
        assert effect.request == calls_for(result, judgment)[-1]


def test_a_plan_s_version_stands_in_the_events_that_follow_it() -> None:
    events = worked("plan_and_replan", trips=[Trip(1, 300, hotel="full")]).record.events
    versions = 0
    for event in events:
        if isinstance(event, Stored) and event.name == PLANS:
            versions += 1
        if isinstance(event, Stored | Stepped | ToolCalled):
            assert event.plan_version == versions
    assert versions > 1
    assert not any(getattr(event, "plan_version", 0) for event in worked("state_machine").record.events)


def test_after_a_death_an_effect_still_names_the_first_lifes_call() -> None:
    events = worked("state_machine", REMEDIED, faults=[DIES]).record.events
    [death] = [number for number, event in enumerate(events) if isinstance(event, ProcessDied)]
    died = events[death]
    assert isinstance(died, ProcessDied) and died.step
    following = next(event for event in events[death + 1 :] if isinstance(event, Stepped | ToolCalled | Stored))
    assert following.step == (following.step if isinstance(following, Stepped) else "")
    paid = [event for event in events if isinstance(event, ToolCalled) and event.tool == "pay"]
    assert len({(event.step, event.request) for event in paid}) == 1
