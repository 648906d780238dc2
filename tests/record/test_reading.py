"""Some trials of a run are read by their ids, and the chain of all lines with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiment_runs import chained_anew
from records import experiment, trial, write_run

from bench.common.errors import ResultsError
from bench.record.files import TRIALS
from bench.record.reading import read_trials


def test_the_trials_that_are_wanted_are_read_and_no_others(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", experiment())
    wanted = {trial("static", "none", 2).id, trial("monolithic", "paper", 3).id, "unknown"}
    read = list(read_trials(folder, wanted))
    assert {record.id for record in read} == wanted - {"unknown"}
    assert read == [record for record in read_trials(folder) if record.id in wanted]
    assert not list(read_trials(folder, ()))


def test_a_trial_is_found_whatever_its_id_is_written_like(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [first := trial(), trial(repetition=2)])
    name, escaped = first.id.encode(), f"\\u{ord(first.id[0]):04x}{first.id[1:]}".encode()
    chained_anew(folder / TRIALS, lambda lines: [line.replace(name, escaped) for line in lines])
    assert escaped in (folder / TRIALS).read_bytes()
    assert [record.id for record in read_trials(folder, [first.id])] == [first.id]


def test_a_line_that_was_changed_is_told_though_another_trial_is_wanted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", experiment(repetitions=1))
    text = (folder / TRIALS).read_bytes()
    (folder / TRIALS).write_bytes(text.replace(b'"reason":""', b'"reason":"?"', 1))
    with pytest.raises(ResultsError, match="is damaged, or one before it is missing"):
        list(read_trials(folder, [trial("static", "paper", 1).id]))
