"""A fault strikes what it is meant for and nothing beside it; where the text cannot carry it, its receipt says so."""

from __future__ import annotations

import json

import pytest
from trials import TINY, Fault, events, scripted, stages

from bench.common.registry import LoadedParts
from bench.record.events import Called, Faulted
from bench.run.trial.effects import EFFECTS, TextEffect

ALL = "gather+total+review"


def fault(point: str, effect: str, subtask: str = "*") -> Fault:
    return {"point": point, "effect": effect, "subtask": subtask, "attempts": [1]}


def test_a_fault_in_one_part_leaves_the_other_parts_of_the_reply_alone() -> None:
    result, _ = scripted("monolithic", faults=[fault("output", "missing_field", "total")])
    delivered = json.loads(result.texts[str(events(result, Called)[0].delivered)])
    assert {name for name in delivered if delivered[name] != TINY.reference[name]} == {"total"}


def test_a_reply_that_is_broken_already_cannot_carry_a_fault_in_a_field() -> None:
    for architecture, subtasks in (("monolithic", ALL), ("static", "total"), ("runtime_structured", "total")):
        result, _ = scripted(architecture, {subtasks: ["no JSON"]}, [fault("output", "missing_field", "total")])
        assert result.record.outcome == "solved"
        assert stages(result) == {1: ["planned", "not_applicable"]}, architecture
        assert all(call.delivered is None for call in events(result, Called))


def test_subtasks_that_share_a_call_share_its_struck_input() -> None:
    result, model = scripted("monolithic", faults=[fault("input", "stale")])
    named = [event.subtask for event in events(result, Faulted) if event.stage == "delivered"]
    half = "".join(TINY.task.documents["notes.txt"].splitlines(keepends=True)[:1])
    assert "gather" in named
    assert f"# Input: notes.txt\n{half}\n" in model.requests[0].messages[1].content


def test_what_is_made_within_a_call_is_no_input_of_it() -> None:
    result, _ = scripted("monolithic", faults=[fault("input", "missing_field", "total")])
    assert stages(result) == {}


def test_a_struck_input_is_read_by_one_attempt_and_the_state_keeps_the_right_one() -> None:
    result, model = scripted("runtime_structured", {"total": ["no"]}, [fault("input", "empty", "total")])
    first, again = (request.messages[1].content for request in model.requests[1:3])
    assert "# Input: gather\n\n" in first
    assert f"# Input: gather\n{json.dumps(TINY.reference['gather'])}\n" in again
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}


def test_a_fault_in_the_state_is_read_by_all_that_follow() -> None:
    result, model = scripted("runtime_structured", faults=[fault("state", "wrong_value", "gather")])
    struck = next(event for event in events(result, Faulted) if event.stage == "delivered")
    assert struck.detail == "state gather"
    wrong = json.dumps(TINY.wrong_outputs["gather"][0])
    assert all(wrong in request.messages[1].content for request in model.requests[1:])


@pytest.mark.parametrize("architecture", ["static", "runtime_structured"])
def test_a_strike_after_which_the_reply_reads_the_same_is_not_applicable(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JSON object is found in the list, so the fault changes nothing."""
    listed = TextEffect("listed", lambda target, _: f"[{target.text}]", points=("output",), needs_json=True, breaks_form=True)
    loaded = LoadedParts({**EFFECTS.by_key, ("listed", "output"): listed}, [*EFFECTS, listed], [])
    monkeypatch.setitem(EFFECTS.__dict__, "_parts", loaded)
    result, _ = scripted(architecture, faults=[fault("output", "listed", "total")])
    assert stages(result) == {1: ["planned", "not_applicable"]}
    assert all(call.delivered is None for call in events(result, Called))
    assert events(result, Faulted)[-1].detail.endswith("reads the same")
