"""A terminal shows any trial: its calls, what the verifier said, which fault struck, and the last reply of the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import called, fault, rejected, run_of, trial

from bench.common.errors import ConfigError
from bench.read.report.surroundings import NoViews
from bench.read.report.trial_text import text_of_trial


def test_a_trial_without_a_world_is_told_call_by_call_with_the_reason_of_each_rejection(tmp_path: Path) -> None:
    events = [*fault("planned", "delivered", "recovered", call=1), called(1, "a"), rejected(1, "a", "schema")]
    run = run_of(tmp_path / "run", [trial("static", "paper", 1, "wrong", events), trial("static", "paper", 2)])
    lines = text_of_trial(run, "static/paper/#1", NoViews()).splitlines()
    assert lines[1] == "demo, static, paper, repetition 1: wrong"
    assert any("call 1: a, attempt 1, first: 100 + 20 tokens" in line for line in lines)
    assert any(line.strip().startswith("a rejected: schema") for line in lines)
    assert any("fault 1: " in line and line.endswith("delivered") for line in lines)
    assert any("fault 1: " in line and line.endswith("answered wrong") for line in lines)


def test_a_repetition_tells_trials_apart_that_share_all_names(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(repetition=number) for number in (1, 2)])
    with pytest.raises(ConfigError, match=r"2 trials go by 'static'; add a name, or give one's id: .* #1; .* #2"):
        text_of_trial(run, "static", NoViews())
    assert "repetition 2" in text_of_trial(run, "static/#2", NoViews())
