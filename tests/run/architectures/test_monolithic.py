"""Monolithic: one call, verified at the end; a rejection means the whole call again, with the same prompt, by a fresh agent."""

from __future__ import annotations

import json

from trials import TINY, calls, events, scripted, stages, verdicts

from bench.record.events import Called, Committed

ALL = "gather+total+review"
BROKEN = {**TINY.reference, "total": {"unit": "apples"}}


def test_a_good_reply_is_one_call_and_one_commit_of_each_part() -> None:
    result, _ = scripted("monolithic")
    assert result.record.outcome == "solved"
    assert calls(result) == [(ALL, 1, "first")]
    assert [(commit.subtask, commit.calls, commit.verified) for commit in events(result, Committed)] == [
        ("gather", (1,), True),
        ("total", (1,), True),
        ("review", (1,), True),
    ]


def test_a_rejected_part_means_the_whole_call_again_with_the_same_prompt() -> None:
    result, model = scripted("monolithic", {ALL: [BROKEN]}, repair="reason+reply")
    assert result.record.outcome == "solved"
    assert calls(result) == [(ALL, 1, "first"), (ALL, 2, "retry")]
    assert model.requests[0].messages == model.requests[1].messages
    assert model.requests[0].seed != model.requests[1].seed
    assert verdicts(result)[:3] == [("gather", "accepted"), ("total", "schema"), ("review", "accepted")]


def test_a_call_is_exposed_to_the_fault_of_each_subtask_in_its_part() -> None:
    fault = {"point": "output", "effect": "missing_field", "subtask": "*", "attempts": [1]}
    result, _ = scripted("monolithic", faults=[fault])
    delivered = json.loads(result.texts[str(events(result, Called)[0].delivered)])
    assert all(delivered[name] != TINY.reference[name] for name in TINY.reference)
    assert stages(result) == {number: ["planned", "delivered", "detected", "recovered"] for number in (1, 2, 3)}


def test_a_finding_of_the_validating_part_rejects_the_reply() -> None:
    doubted = {**TINY.reference, "review": {"approved": False, "problems": ["recount"]}}
    result, _ = scripted("monolithic", {ALL: [doubted]})
    assert calls(result) == [(ALL, 1, "first"), (ALL, 2, "retry")]


def test_weakness_is_not_asked_about() -> None:
    unsure = {**TINY.reference, "gather": {**TINY.reference["gather"], "confidence": 0.1}}
    result, _ = scripted("monolithic", {ALL: [unsure]})
    assert len(calls(result)) == 1


def test_it_gives_up_after_the_attempts_are_used_up() -> None:
    result, _ = scripted("monolithic", {ALL: ["no", "no", "no", "no"]})
    assert (result.record.outcome, len(calls(result))) == ("gave_up", 3)
    assert result.record.reason == "gather + total + review: no accepted output in 3 attempts"
