"""Frames that are made block by block are those that are made at once, and a trial that comes again takes its own place."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from records import experiment, fault, id_of, rejected, smooth, trial, write_run

import bench
from bench.read.analysis import blocks, frames
from bench.read.analysis.frames import Run
from bench.record.events import Event, Waited
from bench.record.record import TrialRecord

STRUCK: list[Event] = [*smooth()[:3], *fault("planned", "delivered", point="input"), *smooth()[3:]]
"""What struck it is told by its control alone."""


def records() -> list[TrialRecord]:
    """Return trials without calls, with waits, with faults that the control tells of, and some that were run again."""
    ended = [trial(plan="none", repetition=4, outcome="error", events=[], reason="no connection")]
    waited = [trial(repetition=5, events=[Waited("backoff", 1.0, 2.5), *smooth()])]
    failed = trial("static", "paper", 7, "error", events=STRUCK, reason="no connection")
    told = [failed, trial("static", "paper", 8, events=STRUCK)]
    refused = trial("static", "none", 8, "gave_up", events=[*smooth()[:4], rejected(2, "b")])
    again = [trial(repetition=4), trial("static", "paper", 7, events=STRUCK)]
    return [*ended, *told, *experiment(), *waited, trial("static", "none", 7), refused, *again]


def assert_equal(run: Run, other: Run) -> None:
    assert run.frames.keys() == other.frames.keys() and len(run.frames) > 6
    for name, frame in run.frames.items():
        pd.testing.assert_frame_equal(frame, other.frames[name], check_exact=True, obj=name)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_frames_of_blocks_are_the_frames_of_one_block(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "run", records())
    at_once = bench.load_run(folder)
    monkeypatch.setattr(blocks, "TRIALS_PER_BLOCK", size)
    monkeypatch.setattr(blocks, "BLOCKS_PER_JOIN", 3)
    monkeypatch.setattr(frames, "CONTROLS_PER_BATCH", size)
    in_blocks = bench.load_run(folder)
    assert_equal(at_once, in_blocks)
    assert in_blocks.rerun == {id_of("static-none-4-demo-m"), id_of("static-paper-7-demo-m")} and in_blocks.errors_rerun == 2
    told = in_blocks.faults.set_index("trial")["impact"]
    assert told[[id_of("static-paper-7-demo-m"), id_of("static-paper-8-demo-m")]].tolist() == ["effective", "masked"]
    assert in_blocks.trials["outcome"].tolist().count("error") == 0


def test_a_frame_without_rows_has_its_columns_and_their_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "TRIALS_PER_BLOCK", 1)
    run = bench.load_run(write_run(tmp_path / "run", [trial(events=[], outcome="error"), trial(repetition=2)]))
    assert run.waits.empty and list(run.waits.columns[-3:]) == ["why", "started", "seconds"]
    assert [str(run.waits[name].dtype) for name in ("trial", "repetition", "seconds")] == ["str", "int64", "float64"]
    assert run.calls["trial"].tolist() == [id_of("static-none-2-demo-m")] * 2 and str(run.calls["caused_by"].dtype) == "Int64"
