"""Runtime-structured: verified before it is committed, asked again alone, and branching on what the outputs say."""

from __future__ import annotations

import pytest
from trials import ROOTS, TINY, calls, events, scripted, stages, verdicts

from bench.record.events import Committed
from bench.record.ledger import book
from bench.run.packs import load_pack
from bench.scenario import Json

FIRST = [("gather", 1, "first"), ("total", 1, "first"), ("review", 1, "first")]


def test_each_output_is_verified_before_it_is_committed() -> None:
    result, _ = scripted("runtime_structured")
    assert (result.record.outcome, calls(result)) == ("solved", FIRST)
    assert all(commit.verified for commit in events(result, Committed))


def test_a_rejected_subtask_is_asked_again_alone_and_nobody_reads_what_was_rejected() -> None:
    result, model = scripted("runtime_structured", {"total": ["about forty"]})
    assert result.record.outcome == "solved"
    assert calls(result) == [FIRST[0], FIRST[1], ("total", 2, "retry"), FIRST[2]]
    assert "about forty" not in model.requests[3].messages[1].content


@pytest.mark.parametrize(("repair", "reason", "reply"), [("none", 0, 0), ("reason", 1, 0), ("reason+reply", 1, 1)])
def test_the_repair_prompt_is_a_setting(repair: str, reason: int, reply: int) -> None:
    _, model = scripted("runtime_structured", {"total": ['{"unit": "crates"}']}, repair=repair)
    first, again = (request.messages[1].content for request in model.requests[1:3])
    assert again.startswith(first)
    assert (again == first) is (repair == "none")
    assert again.count("total: Field required") == reason
    assert again.count('{"unit": "crates"}') == reply


def test_what_is_too_weak_is_asked_again_with_the_reason() -> None:
    unsure = {**TINY.reference["gather"], "confidence": 0.1}
    result, model = scripted("runtime_structured", {"gather": [unsure]})
    assert calls(result) == [FIRST[0], ("gather", 2, "retry"), *FIRST[1:]]
    assert "confidence 0.1 is below 0.6" in model.requests[1].messages[1].content
    assert verdicts(result)[0] == ("gather", "insufficient")


def test_what_is_not_needed_is_not_asked() -> None:
    result, _ = scripted("runtime_structured", {"gather": [{"deliveries": [], "confidence": 1.0}]})
    assert calls(result) == [FIRST[0], FIRST[2]]
    assert result.record.outcome == "wrong"


def test_a_finding_reopens_the_subtask_and_what_stands_on_it_but_not_what_it_stands_on() -> None:
    script = {"total": [{"total": 43, "unit": "apples"}], "review": [{"approved": False, "problems": ["12 + 30 is 42"]}]}
    result, model = scripted("runtime_structured", script, repair="reason+reply")
    assert result.record.outcome == "solved"
    assert calls(result) == [*FIRST, ("total", 2, "retry"), ("review", 2, "rerun")]
    asked = model.requests[3].messages[1].content
    assert "12 + 30 is 42" in asked
    assert '{"total": 43, "unit": "apples"}' in asked
    assert [entry.account for entry in book(result.record.events)] == [
        "in_answer",
        "rejected",
        "superseded",
        "in_answer",
        "in_answer",
    ]


def test_a_wrong_value_that_validation_finds_has_been_seen() -> None:
    fault = {"point": "output", "effect": "wrong_value", "subtask": "total", "attempts": [1]}
    script = {"review": [{"approved": False, "problems": ["recount"]}]}
    result, _ = scripted("runtime_structured", script, [fault])
    assert result.record.outcome == "solved"
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}


def test_a_wrong_value_that_nobody_finds_passes_unnoticed() -> None:
    fault = {"point": "output", "effect": "wrong_value", "subtask": "total", "attempts": [1]}
    result, _ = scripted("runtime_structured", faults=[fault])
    assert result.record.outcome == "wrong"
    assert stages(result) == {1: ["planned", "delivered", "undetected"]}


def test_a_fault_in_what_was_thrown_away_is_recovered_from_though_nobody_saw_it() -> None:
    fault = {"point": "input", "effect": "stale", "subtask": "review", "attempts": [1]}
    result, _ = scripted("runtime_structured", {"review": [{"approved": False, "problems": []}]}, [fault])
    assert calls(result)[-1] == ("review", 2, "rerun")
    assert stages(result) == {1: ["planned", "delivered", "recovered"]}


def test_validation_that_is_never_content_ends_in_giving_up() -> None:
    result, _ = scripted("runtime_structured", {"review": [{"approved": False, "problems": []}] * 9})
    assert result.record.outcome == "gave_up"
    assert result.record.reason == "total: no accepted output in 3 attempts"


def test_the_debugging_pack_fixes_alone_what_validation_refused() -> None:
    verdicts_ = [{"bug": 1, "fixed": True}, {"bug": 2, "fixed": False}, {"bug": 3, "fixed": True}]
    script = {"validation": [{"verdicts": verdicts_, "problems": [], "approved": False}]}
    result, _ = scripted("runtime_structured", script, pack="multi_file_debugging")
    assert result.record.outcome == "solved"
    assert calls(result)[3:] == [
        ("fix_generation", 2, "retry"),
        ("validation", 2, "rerun"),
        ("synthesis", 1, "first"),
    ]


def test_the_debugging_pack_without_a_bug_asks_only_for_analysis_and_synthesis() -> None:
    script: dict[str, list[Json]] = {
        "analysis": [{"needs_fix": False, "bugs": [], "confidence": 0.9}],
        "synthesis": [{"summary": "fine", "root_cause": "none", "files_changed": []}],
    }
    result, _ = scripted("runtime_structured", script, pack="multi_file_debugging")
    assert [name for name, _, _ in calls(result)] == ["analysis", "synthesis"]
    assert result.record.outcome == "wrong"


def test_the_k8s_pack_asks_again_for_a_cause_that_is_unsure_and_plans_nothing_where_nothing_is_needed() -> None:
    cause = load_pack("k8s_oomkill", ROOTS).reference["root_cause_analysis"]
    script = {"root_cause_analysis": [{**cause, "confidence": 0.2}, {**cause, "remediation_needed": False}]}
    result, _ = scripted("runtime_structured", script, pack="k8s_oomkill")
    assert [name for name, _, _ in calls(result)] == [
        "log_triage",
        "anomaly_classification",
        "root_cause_analysis",
        "root_cause_analysis",
        "report_synthesis",
    ]
    assert result.record.outcome == "wrong"
