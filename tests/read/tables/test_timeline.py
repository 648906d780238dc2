"""The timeline shows trials that a fault struck, of one repetition where it can, and says which architectures have none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from records import recovered, run_of, smooth, trial

from bench.read.analysis.arms import arms_of
from bench.read.render.drawing import style
from bench.read.tables.timeline import struck_trials, timeline
from bench.record.record import TrialRecord

STRUCK = {"static": (1, 3), "runtime_structured": (2, 3)}


def records(architecture: str, struck: tuple[int, ...]) -> list[TrialRecord]:
    return [trial(architecture, "paper", n, events=recovered() if n in struck else smooth()) for n in (1, 2, 3)]


def shown(folder: Path, struck: Mapping[str, tuple[int, ...]]) -> tuple[list[tuple[str, int]], str]:
    """The architectures and repetitions shown, and the caption."""
    run = run_of(folder, [record for name, repetitions in struck.items() for record in records(name, repetitions)])
    [trials] = struck_trials(arms_of(run))
    with style():
        caption = timeline(run, trials).caption
    return [(row["architecture"], row["repetition"]) for row in trials], caption


def test_the_trials_shown_are_of_the_first_repetition_that_struck_every_architecture(tmp_path: Path) -> None:
    chosen, caption = shown(tmp_path / "run", STRUCK)
    assert sorted(chosen) == [("runtime_structured", 3), ("static", 3)]
    assert "No fault struck" not in caption


def test_an_architecture_that_no_fault_struck_is_named_and_does_not_part_the_others(tmp_path: Path) -> None:
    chosen, caption = shown(tmp_path / "run", {**STRUCK, "monolithic": ()})
    assert sorted(chosen) == [("runtime_structured", 3), ("static", 3)]
    assert caption.endswith("No fault struck a trial of monolithic that ended without an error.")
