"""A run in the forms that other programs read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from records import run_of, trial

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.report.export_part import EXPORTS, ExportPart, export


@pytest.fixture
def exported(tmp_path: Path) -> tuple[Run, dict[str, pd.DataFrame]]:
    run = run_of(tmp_path / "run", [trial(repetition=1), trial(repetition=2, outcome="wrong")])
    paths = export(run, EXPORTS["csv"], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in paths)
    return run, {path.stem: pd.read_csv(path) for path in paths}


def test_csv_has_the_rows_of_each_frame_that_has_any(exported: tuple[Run, dict[str, pd.DataFrame]]) -> None:
    run, frames = exported
    assert {"trials", "calls"} <= frames.keys() and "tool_calls" not in frames
    for name, frame in frames.items():
        loaded = getattr(run, name)
        assert [column for column in frame if column != "model_label"] == list(loaded) and len(frame) == len(loaded)
        assert frame["model"].tolist() == loaded["model"].tolist()
    assert frames["trials"]["tokens"].tolist() == run.trials["tokens"].tolist()
    assert frames["trials"]["outcome"].tolist() == ["solved", "wrong"]


def test_a_simulated_model_is_called_so_in_each_row(exported: tuple[Run, dict[str, pd.DataFrame]]) -> None:
    for frame in exported[1].values():
        assert frame["model_label"].str.endswith("(SIMULATED)").all()


def test_a_text_that_a_spreadsheet_would_run_is_a_text(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial()])
    run.trials["note"] = "=1+1"
    export(run, EXPORTS["csv"], tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "trials.csv")["note"].tolist() == ["'=1+1"]


def test_a_form_of_a_package_that_raises_is_one_line_and_writes_nothing(tmp_path: Path) -> None:
    def files(_: Run) -> Iterator[tuple[str, bytes]]:
        yield "one.txt", b"1"
        raise KeyError("two")

    part = ExportPart("loud", files, package="loud-parts 1.0")
    with pytest.raises(ResultsError, match=r"^the form 'loud' of loud-parts 1.0 fails: KeyError: 'two'$"):
        export(run_of(tmp_path / "run", [trial()]), part, tmp_path / "out")
    assert not (tmp_path / "out").exists()
