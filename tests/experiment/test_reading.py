"""Some trials of a run are read by their ids, and the chain of all lines with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from records import experiment, trial, write_run

from bench.errors import ResultsError
from bench.experiment.files import TRIALS
from bench.experiment.reading import read_trials


def test_the_trials_that_are_wanted_are_read_and_no_others(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", experiment())
    wanted = {"static-none-2-demo-m", "monolithic-paper-3-demo-m", "unknown"}
    read = list(read_trials(folder, wanted))
    assert {record.id for record in read} == wanted - {"unknown"}
    assert read == [record for record in read_trials(folder) if record.id in wanted]
    assert not list(read_trials(folder, ()))


@pytest.mark.parametrize("name", ['a "b"', "a\\b", "ä\u2028"])
def test_a_trial_is_found_whatever_its_id_is_written_like(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "run", [replace(trial(), id=name), trial(repetition=2)])
    assert [record.id for record in read_trials(folder, [name])] == [name]


def test_a_line_that_was_changed_is_told_though_another_trial_is_wanted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", experiment(repetitions=1))
    text = (folder / TRIALS).read_bytes()
    (folder / TRIALS).write_bytes(text.replace(b'"reason":""', b'"reason":"?"', 1))
    with pytest.raises(ResultsError, match="is damaged, or one before it is missing"):
        list(read_trials(folder, ["static-paper-1-demo-m"]))
