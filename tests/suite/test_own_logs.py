"""What a command noted itself is held against what was booked of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from driven import driven, ends
from own_logs import LoggedTrial, kept_by, logs_of, main
from records import write_with_texts
from trials import Fault

from bench.record.events import Faulted

POINTS = ("before", "unacknowledged", "unrecorded", "recorded")


def kept(*how: str, faults: list[Fault] | None = None) -> LoggedTrial:
    result = driven(["python", "noting.py", *how], faults or [])
    log = kept_by(result.record, result.texts)
    assert log
    return log


def at_the_refund(point: str) -> list[Fault]:
    return [{"point": "process", "effect": point, "tool": "refund", "attempts": [1]}]


@pytest.mark.parametrize("point", POINTS)
def test_an_honest_log_agrees_wherever_its_agent_is_killed(point: str) -> None:
    log = kept(faults=at_the_refund(point))
    assert log.differences == ()
    assert log.planned == log.delivered + log.not_applicable
    assert log.delivered == log.deaths == 1


def test_it_agrees_where_an_agent_dies_in_the_middle_of_a_reply() -> None:
    log = kept(faults=[{"point": "process", "effect": "mid_stream", "attempts": [2]}])
    assert (log.differences, log.planned, log.delivered, log.deaths) == ((), 1, 1, 1)


def test_it_agrees_where_a_bound_ends_an_agent_with_the_request_that_is_one_too_many() -> None:
    result = driven(["python", "noting.py"], model_calls=1)
    log = kept_by(result.record, result.texts)
    assert result.record.outcome == "gave_up"
    assert log and log.differences == ()


def test_a_line_that_a_kill_cut_short_is_passed_over() -> None:
    assert kept("torn").differences == ()


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"what": "tool", "when": "got", "name": ["refund"], "status": 200}',
        '{"what": ["tool"], "when": {}, "name": {"refund": 1}}',
        '"\\ud800"',
        "9" * 5000,
        "\0",
    ],
)
def test_a_line_of_anything_else_is_passed_over(line: str) -> None:
    result = driven(["python", "noting.py"])
    [ended] = ends(result)
    assert ended.own_log
    texts = {**result.texts, ended.own_log: f"{line}\n{result.texts[ended.own_log]}"}
    log = kept_by(result.record, texts)
    assert log and log.differences == ()


def test_a_count_that_nobody_could_have_is_no_count() -> None:
    result = driven(["python", "noting.py"])
    [ended] = ends(result)
    assert ended.own_log
    log = re.sub(r'"prompt_tokens": \d+', '"prompt_tokens": ' + "9" * 4300, result.texts[ended.own_log])
    log_ = kept_by(result.record, {**result.texts, ended.own_log: log})
    assert log_ and log_.differences[0].startswith("life 1: noted (0, ")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("silent", "life 1: noted 2 requests to its model and 3 calls of tools; 2 and 4 are booked"),
        ("twice", "life 1: noted 4 replies of its model; 2 are booked"),
        ("dear", "life 1: noted "),
    ],
)
def test_a_log_that_says_something_else_is_told_in_a_sentence(how: str, words: str) -> None:
    assert kept(how).differences[0].startswith(words)


def test_an_effect_that_was_not_noted_is_named() -> None:
    assert "life 1: noted 0 calls of refund that were answered well; 1 are booked" in kept("silent").differences


def test_a_kill_that_was_due_and_never_came_is_told() -> None:
    result = driven(["python", "noting.py"], at_the_refund("before"))
    events = tuple(event for event in result.record.events if not (isinstance(event, Faulted) and event.stage == "delivered"))
    log = kept_by(replace(result.record, events=events), result.texts)
    assert log
    assert any("kills were due" in difference for difference in log.differences)


def test_an_agent_without_a_log_is_held_against_nothing() -> None:
    result = driven(["python", "clerk.py"])
    assert kept_by(result.record, result.texts) is None


def test_of_a_run_it_is_said_which_trials_agree_and_the_exit_code_says_that_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed = driven(["python", "noting.py"])
    honest, silent = (driven(["python", "noting.py", *how], at_the_refund("before")) for how in ([], ["silent"]))
    records = [
        replace(log_.record, plan=plan, repetition=repetition, id=f"trial {number}")
        for number, (log_, plan, repetition) in enumerate([(undisturbed, "none", 1), (honest, "plan", 1), (silent, "plan", 2)])
    ]
    texts = {**undisturbed.texts, **honest.texts, **silent.texts}
    write_with_texts(tmp_path / "run", records, texts)
    assert [not log.differences for log in logs_of(tmp_path / "run")] == [True, True, False]
    assert main(tmp_path / "run") == 1 and "3 trials with a log of their own" in capsys.readouterr().out
