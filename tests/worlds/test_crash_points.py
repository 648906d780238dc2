"""Exactly once: what a crash at each of the four points of an effect does to an agent that gives keys and keeps a store, and to
one that does neither."""

from __future__ import annotations

from collections import Counter

import pytest
from clerks import bare, careful
from hypothesis import given, settings
from hypothesis import strategies as st
from little_worlds import ended, harm, lived

from bench.record.events import Called, Faulted
from bench.run.architectures.part import Architecture
from bench.run.experiment.trial import TrialResult

POINTS = ("before", "unacknowledged", "unrecorded", "recorded")
TOOLS = ("reserve", "refund", "release", "notify")
CRASHES = 1_000


def crashed(architecture: Architecture, point: str, tool: str, repetition: int = 1, **trigger: object) -> TrialResult:
    fault = {"point": "process", "effect": point, "tool": tool, **(trigger or {"attempts": [1]})}
    return lived(architecture, [fault], repetition=repetition)


def receipts(result: TrialResult) -> Counter[str]:
    return Counter(event.stage for event in result.record.events if isinstance(event, Faulted))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("point", POINTS)
def test_one_is_exactly_once_and_the_other_doubles_or_forgets(point: str, tool: str) -> None:
    kept, forgot = crashed(careful, point, tool), crashed(bare, point, tool)
    assert harm(kept) == {}
    assert {"doubled", "orphaned"} & harm(forgot).keys()
    for result in (kept, forgot):
        count = receipts(result)
        assert count["delivered"] == count["planned"] > 0


def test_a_death_in_mid_reply_strikes_the_reply_of_its_number_and_costs_it() -> None:
    fault = {"point": "process", "effect": "mid_stream", "attempts": [2]}
    kept, forgot = lived(careful, [fault]), lived(bare, [fault])
    for result in (kept, forgot):
        calls = [event for event in result.record.events if isinstance(event, Called)]
        assert [call.failure for call in calls][:3] == [None, "cut_off", None]
        assert (receipts(result)["planned"], receipts(result)["delivered"], ended(result).lives) == (1, 1, 2)
    assert (harm(kept), harm(forgot)["doubled"]) == ({}, 2)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(POINTS), st.sampled_from((*TOOLS, "*")), st.floats(0.1, 0.6)), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 3),
)
def test_wherever_it_dies_the_two_counts_agree_and_every_planned_death_is_accounted_for(
    faults: list[tuple[str, str, float]], keeps: bool, repetition: int
) -> None:
    plan = [{"point": "process", "effect": point, "tool": tool, "probability": chance} for point, tool, chance in faults]
    result = lived(careful if keeps else bare, plan, repetition=repetition)
    end, count = ended(result), receipts(result)
    assert all(end.recount[kind] in (None, end.damage[kind]) for kind in end.damage)
    assert count["planned"] == count["delivered"] + count["not_applicable"]
    assert end.lives - 1 == count["delivered"]
    if keeps and result.record.outcome == "solved":
        assert harm(result) == {}


@pytest.mark.endurance
@pytest.mark.parametrize("point", POINTS)
def test_a_thousand_crashes_at_each_point_leave_no_damage_where_there_are_keys_and_a_store(point: str) -> None:
    crashes, repetition = 0, 0
    while crashes < CRASHES:
        repetition += 1
        result = crashed(careful, point, "*", repetition, probability=0.5)
        assert (result.record.outcome, harm(result)) == ("solved", {})
        count = receipts(result)
        assert count["planned"] == count["delivered"] + count["not_applicable"]
        crashes += count["delivered"]
