"""Which reply an output fault strikes, what its receipt says, and what is said of the reply as it was before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from agents import (
    BAD,
    PLAN,
    Agent,
    best_of_three,
    checked_by_itself,
    in_process,
    once,
    over_the_endpoint,
    plan_then_answer,
    say,
    three_turns,
)
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from scripted_model import Line
from trials import CELLS, TINY, Fault, conducted, events, needs_json, scripted, stages

from bench.common.errors import CutOff, RateLimited
from bench.record import ledger
from bench.record.events import Called, Faulted, Judged
from bench.run.endpoint.server import serve_session
from bench.run.experiment.trial import TrialResult
from bench.run.trial.call import BackOff
from bench.run.trial.workbench import Workbench
from bench.scenario import Json, Task
from tests.suite.test_conformance import LAWFUL, assert_failures_cause_retries, assert_lineage_is_closed

ALL = "gather+total+review"
GOOD = {name: json.dumps(output) for name, output in TINY.reference.items()}
TOO_LOW = {"total": 5, "unit": "apples"}
"""Fits its schema, and is less than one delivery alone."""
Worked = Callable[..., TrialResult]


def struck(effect: str = "missing_field", subtask: str = "total", point: str = "output", **trigger: Any) -> Fault:
    return {"point": point, "effect": effect, "subtask": subtask, **(trigger or {"attempts": [1]})}


@pytest.fixture(params=[in_process, over_the_endpoint])
def worked(request: pytest.FixtureRequest) -> Worked:
    def trial(agent: Agent, faults: Sequence[Fault], script: Mapping[str, Sequence[Line]] | None = None) -> TrialResult:
        return conducted(request.param(agent), script, faults, server=serve_session)

    return trial


def undamaged(result: TrialResult) -> list[tuple[str, str, int | None]]:
    """(subtask, `accepted` or the reason, fault) of each verdict on an undamaged reply."""
    return [
        (judged.subtask, judged.reason or "accepted", judged.fault)
        for judged in events(result, Judged)
        if judged.view == "undamaged"
    ]


def delivered_to(result: TrialResult) -> list[int | None]:
    """Which of the calls for `total`, from 1, carried each delivered fault."""
    calls = [call.call for call in events(result, Called) if call.subtasks == ("total",)]
    return [1 + calls.index(event.call or 0) for event in events(result, Faulted) if event.stage == "delivered"]


# -- was it to be rejected anyway? ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["monolithic", "static", "runtime_structured"])
def test_a_good_reply_that_was_struck_would_have_been_accepted(architecture: str) -> None:
    result, _ = scripted(architecture, faults=[struck()])
    assert undamaged(result) == [("total", "accepted", 1)]
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}


@pytest.mark.parametrize("architecture", ["monolithic", "static", "runtime_structured"])
def test_a_struck_reply_that_was_bad_before_would_have_been_rejected_anyway(architecture: str) -> None:
    script: dict[str, list[Line]] = {"total": [TOO_LOW], ALL: [{**TINY.reference, "total": TOO_LOW}]}
    result, _ = scripted(architecture, script, [struck()])
    assert undamaged(result) == [("total", "check", 1)]


def test_the_verdicts_on_a_reply_say_of_which_kind_its_violations_are() -> None:
    result, _ = scripted("runtime_structured", {"total": [TOO_LOW]}, [struck()])
    kinds = [(event.view, event.accepted, event.violation) for event in events(result, Judged) if event.subtask == "total"]
    assert kinds == [("undamaged", False, "content"), ("told", False, "missing_field"), ("told", True, None)]


def test_a_joint_reply_is_taken_or_rejected_as_a_whole_also_as_it_was_before_its_faults() -> None:
    """What struck its good parts was masked by the bad one: the whole reply would have been rejected anyway."""
    bad, _ = scripted("monolithic", {ALL: [{**TINY.reference, "total": TOO_LOW}]}, [struck(subtask="*")])
    parts = ("gather", "total", "review")
    assert {(name, reason) for name, reason, _ in undamaged(bad)} == {(name, "check") for name in parts}
    good, _ = scripted("monolithic", faults=[struck(subtask="*")])
    assert {(name, reason) for name, reason, _ in undamaged(good)} == {
        (name, "accepted") for name in ("gather", "total", "review")
    }


def test_an_undamaged_reply_is_judged_where_the_struck_one_is_for_static_at_its_checkpoint() -> None:
    result, _ = scripted("static", faults=[struck()])
    order = [(type(event).__name__, event.subtasks[0]) for event in events(result, Called)]
    kinds = [(judged.subtask, judged.view) for judged in events(result, Judged)]
    assert kinds[:3] == [("gather", "told"), ("total", "undamaged"), ("total", "told")]
    every = list(result.record.events)
    review = next(number for number, event in enumerate(every) if isinstance(event, Called) and event.subtasks == ("review",))
    verdict = next(number for number, event in enumerate(every) if isinstance(event, Judged) and event.view == "undamaged")
    assert verdict > review, order


def test_a_fault_that_nobody_detects_was_effective_all_the_same() -> None:
    result, _ = scripted("runtime_structured", faults=[struck("wrong_value", "gather")])
    assert undamaged(result) == [("gather", "accepted", 1)]
    assert stages(result)[1][-1] in ("undetected", "recovered")


def test_a_finding_made_from_a_damaged_output_does_not_count_against_the_undamaged_one() -> None:
    review = {"approved": False, "problems": ["12 + 30 is 42"]}
    result, _ = scripted("static", {"review": [review]}, [struck("wrong_value")])
    shown = [(judged.subtask, judged.reason) for judged in events(result, Judged) if judged.view == "told"]
    assert ("total", "found_wrong") in shown
    assert undamaged(result) == [("total", "accepted", 1)]


def test_a_finding_in_the_same_undamaged_reply_counts() -> None:
    review = {"approved": False, "problems": ["12 + 30 is 42"]}
    result, _ = scripted("monolithic", {ALL: [{**TINY.reference, "review": review}]}, [struck()])
    assert undamaged(result) == [("total", "found_wrong", 1)]


@pytest.mark.parametrize(("reply", "verdict"), [(None, "accepted"), (TOO_LOW, "check")])
def test_a_served_reply_has_its_undamaged_verdict(reply: Json, verdict: str, worked: Worked) -> None:
    result = worked(once, [struck()], {"total": [reply]})
    assert undamaged(result) == [("total", verdict, 1)]
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}


def test_a_joint_reply_handed_over_in_parts_is_read_undamaged() -> None:
    async def architecture(task: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(*task.subtasks) as session:
            reply = json.loads((await session.answer(task.subtasks, session.messages())).text)
            for subtask in task.subtasks:
                workbench.commit_unverified(session.proposal(json.dumps(reply[subtask.name]), subtask))
            workbench.checkpoint(task.subtasks)

    result = conducted(architecture, faults=[struck()], server=serve_session)
    assert undamaged(result) == [("total", "accepted", 1)]


def test_faults_at_other_points_and_those_that_were_not_applicable_have_no_undamaged_verdict() -> None:
    for fault in (struck("empty", point="input"), struck("missing_field", point="state")):
        result, _ = scripted("runtime_structured", faults=[fault])
        assert undamaged(result) == []
    result, _ = scripted("runtime_structured", {"total": ["no JSON"]}, [struck()])
    assert undamaged(result) == []


# -- which reply ------------------------------------------------------------------------------------------------------------


def test_a_fault_strikes_the_answer_and_not_the_plan_before_it(worked: Worked) -> None:
    result = worked(plan_then_answer, [struck()], {name: [PLAN, None] * 2 for name in GOOD})
    assert delivered_to(result) == [2]
    assert undamaged(result) == [("total", "accepted", 1)]
    assert result.record.outcome == "solved"


@pytest.mark.parametrize("effect", ["missing_field", "truncated", "refusal", "empty", "wrong_value"])
def test_a_fault_strikes_the_answer_and_not_the_draft_in_the_same_reply(effect: str, worked: Worked) -> None:
    draft = f"<think>At first: {json.dumps(TOO_LOW)}.</think>"
    result = worked(once, [struck(effect)], {"total": [draft + GOOD["total"]]})
    assert undamaged(result) == [("total", "accepted", 1)]
    call = next(event for event in events(result, Called) if event.subtasks == ("total",))
    replies = [result.texts[text] for text in (call.reply, call.delivered) if text]
    assert replies[0] == draft + GOOD["total"] and replies[1] != replies[0] and replies[1].startswith(draft)
    assert result.record.outcome == "solved" or effect == "wrong_value"


def test_a_fault_strikes_the_first_of_several_outputs_of_an_attempt(worked: Worked) -> None:
    result = worked(three_turns, [struck("wrong_value")])
    assert delivered_to(result) == [1]


def test_chosen_attempts_are_struck_in_their_first_sample_only_and_a_probability_in_all(worked: Worked) -> None:
    assert delivered_to(worked(best_of_three, [struck("wrong_value")])) == [1]
    everywhere = worked(best_of_three, [struck("wrong_value", probability=1.0)])
    assert delivered_to(everywhere)[:3] == [1, 2, 3]


def test_where_no_reply_reads_as_the_output_the_fault_was_not_applicable(worked: Worked) -> None:
    result = worked(once, [struck()], {"total": [PLAN]})
    assert stages(result) == {1: ["planned", "not_applicable"]}
    assert result.record.outcome == "solved"


def test_samples_of_agents_that_plan_are_each_struck_once() -> None:
    """The first agent is done while the second one still plans: what waits for the second one's answer goes on waiting."""

    async def architecture(task: Task, workbench: Workbench) -> None:
        async def by(messages: Any, line: Any) -> str:
            reply = await line(messages)
            while reply.text == PLAN:
                messages = [*messages, say("Go on.")]
                reply = await line(messages)
            return str(reply.text)

        for subtask in task.subtasks:
            for proposal in await workbench.sample(subtask, count=2, by=by):
                workbench.verify(proposal)
            workbench.commit_unverified(proposal)

    faults = [struck("wrong_value", "total", probability=1.0)]
    result = conducted(architecture, {"total": [PLAN, PLAN, None, PLAN]}, faults)
    assert sorted(stages(result).values())[0][:2] == ["planned", "delivered"]
    assert len(stages(result)) == 2
    assert all("not_applicable" not in way for way in stages(result).values())


# -- receipts ---------------------------------------------------------------------------------------------------------------

DRAFTS = (f"<think>{GOOD['total']}</think>{BAD}", f"<think>{GOOD['total']}")
OTHER = (BAD, PLAN, *DRAFTS, "", '{"total": 4', "I'm sorry, no.", RateLimited("429"), CutOff("broke", partial="ha"))
REPLIES = (None, None, None, *OTHER)
PLANS = st.lists(
    st.tuples(st.sampled_from(CELLS), st.sampled_from(["*", *GOOD]), st.sampled_from([(1,), (1, 2), None])).map(
        lambda row: {
            "effect": row[0][0],
            "point": row[0][1],
            "subtask": row[1],
            **({"attempts": list(row[2])} if row[2] else {"probability": 0.5}),
        }
    ),
    min_size=1,
    max_size=4,
)
SCRIPTS = st.fixed_dictionaries({name: st.lists(st.sampled_from(REPLIES), max_size=6) for name in (*GOOD, ALL)})
BUSY: list[Fault] = [{"effect": "rate_limit", "point": "call", "subtask": "*", "attempts": [1]}] * 4
WORK = [*(in_process(agent) for agent in (once, three_turns, plan_then_answer, checked_by_itself, best_of_three))]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=150)
@given(PLANS, SCRIPTS, st.sampled_from([*WORK, "monolithic", "static", "runtime_structured"]), st.integers(0, 9))
@example(BUSY, {name: [RateLimited("429")] * 2 for name in (*GOOD, ALL)}, "static", 0)
def test_whatever_happens_the_receipts_and_the_ledger_add_up(
    faults: list[Fault], script: dict[str, list[Line]], work: Any, seed: int
) -> None:
    assume(not any(refused(fault) for fault in faults))
    if isinstance(work, str):
        result, _ = scripted(work, script, faults, seed=seed)
    else:
        result = conducted(work, script, faults, seed=seed)
    assert result.record.outcome != "error" or used_up(result), result.record.reason
    assert {tuple(way) for way in stages(result).values()} <= LAWFUL | {("planned", "not_applicable")}
    assert ledger.imbalance(ledger.book(result.record.events), result.record.tokens) is None
    assert_failures_cause_retries(result)
    assert_lineage_is_closed(result)
    assert_each_struck_reply_is_judged_undamaged_once(result)


def used_up(result: TrialResult) -> bool:
    """Whether injected and real failures together have used up a call's tries: such a trial ends in the endpoint's error."""
    last = events(result, Called)[-1]
    return last.try_ == BackOff().tries and last.failure is not None


def refused(fault: Fault) -> bool:
    """Whether a config refuses this fault: `gather` reads documents alone."""
    return fault["point"] == "input" and needs_json(fault["effect"], "input") and fault["subtask"] == "gather"


def assert_each_struck_reply_is_judged_undamaged_once(result: TrialResult) -> None:
    """Where its struck form had a verdict. An agent's plan has one with the answer that it led to."""
    judged = {(call, event.subtask) for event in events(result, Judged) if event.view != "undamaged" for call in event.calls}
    numbers = [event.fault for event in events(result, Judged) if event.view == "undamaged"]
    expected = [
        event.fault
        for event in events(result, Faulted)
        if event.point == "output" and event.stage == "delivered" and (event.call, event.subtask) in judged
    ]
    assert sorted(number for number in numbers if number) == sorted(expected)
