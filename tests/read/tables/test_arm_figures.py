"""The figures of arms: each is drawn where there is something to draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from records import experiment, run_of
from scorecards import CRASH, lived

from bench.read.report.written_report import report_of
from bench.record.events import Called


def figures(files: Iterable[str]) -> list[str]:
    return [Path(name).stem for name in files if name.startswith("figures/")]


@pytest.mark.usefixtures("unmade")
def test_of_an_agent_that_asked_no_model_there_is_a_report_without_a_figure_of_first_rounds(tmp_path: Path) -> None:
    records = [lived(), lived("crash", by=(CRASH,), outcome="wrong")]
    without = [tuple(event for event in record.events if not isinstance(event, Called)) for record in records]
    records = [replace(record, events=events, tokens=0) for record, events in zip(records, without, strict=True)]
    files = report_of(run_of(tmp_path / "run", records)).files
    assert "report.md" in files and "first_round-m-crash" not in figures(files)


@pytest.mark.usefixtures("undrawn")
def test_first_rounds_are_drawn_under_each_plan_in_which_a_fault_was_noticed(tmp_path: Path) -> None:
    files = report_of(run_of(tmp_path / "run", experiment())).files
    assert "first_round-m-paper" in figures(files) and "first_round-m-none" not in figures(files)
