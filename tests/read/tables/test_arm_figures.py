"""The figures of arms: each is drawn where there is something to draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from records import run_of
from scorecards import CRASH, lived

from bench.read.written_report import report_of
from bench.record.events import Called


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize("asked", [True, False])
def test_of_an_agent_that_asked_no_model_there_is_a_report_without_a_figure_of_accounts(tmp_path: Path, asked: bool) -> None:
    records = [lived(), lived("crash", by=(CRASH,), outcome="wrong")]
    if not asked:
        without = [tuple(event for event in record.events if not isinstance(event, Called)) for record in records]
        records = [replace(record, events=events, tokens=0) for record, events in zip(records, without, strict=True)]
    files = report_of(run_of(tmp_path / "run", records)).files
    assert any(name.startswith("figures/ledger-") for name in files) == asked
