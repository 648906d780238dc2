"""`bench more noise` says how far two runs of one system part by chance, from a table of trials."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench
from hypothesis import given
from hypothesis import strategies as st

from bench.cli.commands.noise import noise_lines, outcomes_of
from bench.common.errors import ResultsError


def table(folder: Path, *rows: str, header: str = "task,solved") -> Path:
    path = folder / "trials.csv"
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return path


def test_the_floor_is_that_of_two_binomial_scores_on_the_same_tasks(tmp_path: Path) -> None:
    rows = [f"{task},{outcome}" for task in range(100) for outcome in ((1, 0) if task < 50 else (1, 1))]
    table(tmp_path, *rows)
    code, out, _ = bench(tmp_path, "more", "noise", "trials.csv", "--difference", "0.1")
    assert code == 0
    assert "100 tasks with two trials or more (0 with fewer are left out), score 75.0%; 50 tasks are mixed." in out
    assert "differ by up to 13.9 points" in out  # 1.96 * sqrt(2 * 0.25 / 100): half of the tasks have a variance of 1/2
    assert "takes 391 tasks" in out  # Connor's number for a discordant share of 1/2
    assert "recorded elsewhere" in out


def test_tasks_that_never_differ_have_no_noise() -> None:
    lines = noise_lines({str(task): [True, True] for task in range(9)}, 0.1)
    assert "by up to 0.0 points" in lines[1]


def test_one_trial_a_task_says_nothing_of_noise(tmp_path: Path) -> None:
    table(tmp_path, "a,1", "b,0")
    code, _, err = bench(tmp_path, "more", "noise", "trials.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "run each task twice" in err


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [("task,solved", "a,0.5", "neither 0 nor 1"), ("name,solved", "a,1", "--task"), ("task,grade", "a,1", "--outcome")],
)
def test_a_table_that_cannot_be_read_as_trials_is_one_line(tmp_path: Path, header: str, row: str, words: str) -> None:
    with pytest.raises(ResultsError, match=words):
        outcomes_of(table(tmp_path, row, header=header))


@given(st.dictionaries(st.text(max_size=3), st.lists(st.booleans(), min_size=2, max_size=5), min_size=1, max_size=20))
def test_the_lines_are_whole_whatever_the_outcomes_are(outcomes: dict[str, list[bool]]) -> None:
    lines = noise_lines(outcomes, 0.05)
    assert len(lines) == 3
    assert all(line.endswith(".") for line in lines)
