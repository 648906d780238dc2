"""A trial that could not have come out otherwise is told by its plan and its model, and by nothing that was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from records import config_in, edit_manifest, experiment, write_run

import bench
from bench.read.analysis.arms import arms_of
from bench.read.analysis.decided_ahead import AS_CONTROL, NO_ANSWER, reason_for_fixed_outcome
from bench.read.analysis.recovery_rates import recovery_rates

EVERY: Any = {"attempts": "every"}


def note_on(folder: Path, cache: bool = False, **fault: Any) -> str:
    """What is said of a plan with this one fault, at three attempts at most."""
    write_run(folder, experiment())
    plan = {"none": {}, "paper": {"faults": [{"subtask": "b", **fault}]}}
    edit_manifest(folder, config={**config_in(folder), "plan": plan}, models={"m": {"kind": "openai", "cache": cache}})
    return reason_for_fixed_outcome(bench.load_run(folder), "m", "paper")


@pytest.mark.parametrize("effect", ["missing_field", "truncated", "empty"])
def test_a_broken_form_at_every_attempt_leaves_no_answer(effect: str, tmp_path: Path) -> None:
    assert note_on(tmp_path / "every", point="output", effect=effect, **EVERY) == NO_ANSWER
    assert note_on(tmp_path / "listed", point="output", effect=effect, attempts=[1, 2, 3]) == NO_ANSWER
    assert note_on(tmp_path / "two", point="output", effect=effect, attempts=[1, 2]) == ""


def test_a_wrong_value_at_every_attempt_may_pass_or_be_refused(tmp_path: Path) -> None:
    assert note_on(tmp_path / "run", point="output", effect="wrong_value", **EVERY) == ""


def test_a_call_that_always_fails_leaves_no_answer_and_one_that_is_slow_does(tmp_path: Path) -> None:
    assert note_on(tmp_path / "fails", point="call", effect="server_error", **EVERY) == NO_ANSWER
    assert note_on(tmp_path / "listed", point="call", effect="server_error", attempts=[1, 2, 3]) == ""
    assert note_on(tmp_path / "slow", point="call", effect="slow", **EVERY) == ""


def test_a_failed_call_is_its_control_only_where_a_cache_answers_it(
    tmp_path: Path,
) -> None:
    assert note_on(tmp_path / "cached", cache=True, point="call", effect="server_error", attempts=[1]) == AS_CONTROL
    assert note_on(tmp_path / "asked", point="call", effect="server_error", attempts=[1]) == ""
    assert note_on(tmp_path / "paid", cache=True, point="call", effect="cut_off", attempts=[1]) == "", "it is another attempt"


def test_silence_is_counted_among_trials_that_could_have_been_silent_alone(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", experiment())
    before = bench.load_run(folder)
    fault = {"point": "output", "effect": "missing_field", "subtask": "b", "attempts": "every"}
    edit_manifest(folder, config={**config_in(folder), "plan": {"none": {}, "paper": {"faults": [fault]}}})
    after = bench.load_run(folder)
    assert [rate.repaired.n for rate in recovery_rates(before, arms_of(before))] == [3, 3]
    counted = [(rate.corrupted.n, rate.repaired.n, rate.decided) for rate in recovery_rates(after, arms_of(after))]
    assert counted == [(0, 0, NO_ANSWER)] * 2
