"""Static: handed on unverified, verified at checkpoints, and everything from the first rejected subtask on runs again."""

from __future__ import annotations

from trials import TINY, calls, events, scripted, verdicts

from bench.record.events import Called, Committed
from bench.scenario import Json

FIRST = [("gather", 1, "first"), ("total", 1, "first"), ("review", 1, "first")]


def test_each_subtask_is_asked_once_and_handed_on_before_it_is_verified() -> None:
    result, _ = scripted("static")
    assert (result.record.outcome, calls(result)) == ("solved", FIRST)
    assert [(commit.subtask, commit.verified) for commit in events(result, Committed)] == [
        ("gather", False),
        ("gather", True),
        ("total", False),
        ("review", False),
        ("total", True),
        ("review", True),
    ]


def test_a_rejection_at_a_checkpoint_runs_again_from_there_and_not_the_stage_before() -> None:
    result, _ = scripted("static", {"total": [{"unit": "apples"}]})
    assert result.record.outcome == "solved"
    assert calls(result) == [*FIRST, ("total", 2, "retry"), ("review", 2, "rerun")]


def test_later_subtasks_read_the_bad_output_as_it_came() -> None:
    result, model = scripted("static", {"total": ["about forty"]})
    assert "# Input: total\nabout forty\n" in model.requests[2].messages[1].content
    assert verdicts(result)[1:3] == [("total", "not_json"), ("review", "accepted")]


def test_a_checkpoint_in_the_middle_stops_a_bad_output_early() -> None:
    result, _ = scripted("static", {"gather": [{"deliveries": []}]})
    assert calls(result) == [("gather", 1, "first"), ("gather", 2, "retry"), *FIRST[1:]]


def test_what_runs_again_is_asked_with_the_same_prompt() -> None:
    _, model = scripted("static", {"total": [{"unit": "apples"}]}, repair="reason+reply")
    assert model.requests[1].messages == model.requests[3].messages


def test_a_finding_runs_again_from_the_subtask_that_was_found_wrong() -> None:
    result, _ = scripted("static", {"review": [{"approved": False, "problems": ["recount"]}]})
    assert calls(result) == [*FIRST, ("total", 2, "retry"), ("review", 2, "rerun")]
    assert verdicts(result)[1:3] == [("total", "found_wrong"), ("review", "accepted")]


def test_of_two_rejected_outputs_both_are_retries_and_what_stands_between_is_a_rerun() -> None:
    script: dict[str, list[Json]] = {"analysis": [{"needs_fix": True}], "validation": ["no"]}
    result, _ = scripted("static", script, pack="multi_file_debugging")
    assert result.record.outcome == "solved"
    assert calls(result)[3:] == [
        ("analysis", 2, "retry"),
        ("fix_generation", 2, "rerun"),
        ("validation", 2, "retry"),
        ("synthesis", 1, "first"),
    ]


def test_the_papers_failure_runs_fix_and_validation_again() -> None:
    result, _ = scripted("static", {"fix_generation": [{}]}, pack="multi_file_debugging")
    assert [name for name, _, _ in calls(result)] == [
        "analysis",
        "fix_generation",
        "validation",
        "fix_generation",
        "validation",
        "synthesis",
    ]


def test_it_gives_up_after_the_attempts_are_used_up() -> None:
    result, _ = scripted("static", {"review": ["no"] * 4})
    assert (result.record.outcome, result.record.reason) == ("gave_up", "review: no accepted output in 3 attempts")
    assert len(events(result, Called)) == 5


def test_nothing_is_skipped_and_weakness_is_not_asked_about() -> None:
    nothing = {"deliveries": [], "confidence": 0.1}
    result, _ = scripted("static", {"gather": [nothing]})
    assert calls(result) == FIRST
    assert TINY.task.subtask("gather").sufficient is not None
