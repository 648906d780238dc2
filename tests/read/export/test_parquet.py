"""A run as Parquet files: the same rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from records import run_of, trial

from bench.read.report.export_part import EXPORTS, export

pytest.importorskip("pyarrow")


def test_parquet_holds_the_frames(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(repetition=1), trial(repetition=2, outcome="wrong")])
    paths = {path.name: path for path in export(run, EXPORTS["parquet"], tmp_path / "out")}
    read = pd.read_parquet(paths["trials.parquet"])
    assert (
        list(read.drop(columns="model_label")) == list(run.trials) and read["tokens"].tolist() == run.trials["tokens"].tolist()
    )
    assert read["model_label"].str.endswith("(SIMULATED)").all()
    assert len(read.merge(run.trials, on=["trial", "model"])) == 2


def test_the_files_leave_errors_out_of_what_is_right(tmp_path: Path) -> None:
    """In CSV as in Parquet, the mean of `correct` is our rate: an error has none."""
    run = run_of(tmp_path / "run", [trial(repetition=1), trial(repetition=3, outcome="error", reason="timed out")])
    paths = {path.name: path for form in ("csv", "parquet") for path in export(run, EXPORTS[form], tmp_path / "out")}
    assert pd.read_parquet(paths["trials.parquet"])["correct"].mean() == pd.read_csv(paths["trials.csv"])["correct"].mean() == 1
