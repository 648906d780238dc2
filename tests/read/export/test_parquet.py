"""A run as Parquet files: the same rows, described by a Croissant file that MLCommons' reader takes, and a data card."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from records import run_of, trial

from bench.read.report.export_part import EXPORTS, export

pytest.importorskip("pyarrow")
mlc = pytest.importorskip("mlcroissant")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_parquet_holds_the_frames_and_the_croissant_file_leads_to_their_rows(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(repetition=1), trial(repetition=2, outcome="wrong")])
    paths = {path.name: path for path in export(run, EXPORTS["parquet"], tmp_path / "out")}
    read = pd.read_parquet(paths["trials.parquet"])
    assert (
        list(read.drop(columns="model_label")) == list(run.trials) and read["tokens"].tolist() == run.trials["tokens"].tolist()
    )
    assert read["model_label"].str.endswith("(SIMULATED)").all()
    assert len(read.merge(run.trials, on=["trial", "model"])) == 2
    described = mlc.Dataset(str(paths["croissant.json"]))
    assert not described.metadata.issues.errors
    rows = list(described.records("trials"))
    assert [row["trials/outcome"] for row in rows] == [b"solved", b"wrong"]
    assert [row["trials/tokens"] for row in rows] == run.trials["tokens"].tolist()


def test_the_card_says_how_many_rows_there_are_and_that_a_model_is_simulated(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial()])
    export(run, EXPORTS["parquet"], tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| `trials.parquet` | a trial | 1 |" in card and "(SIMULATED)" in card and "licen" not in card


def test_the_files_leave_errors_out_of_what_is_right_and_the_card_says_what_is_missing(tmp_path: Path) -> None:
    """In CSV as in Parquet, the mean of `correct` is our rate: an error has none."""
    run = run_of(tmp_path / "run", [trial(repetition=1), trial(repetition=3, outcome="error", reason="timed out")])
    paths = {path.name: path for form in ("csv", "parquet") for path in export(run, EXPORTS[form], tmp_path / "out")}
    assert pd.read_parquet(paths["trials.parquet"])["correct"].mean() == pd.read_csv(paths["trials.csv"])["correct"].mean() == 1
    card = paths["README.md"].read_text(encoding="utf-8")
    assert "is not complete: 1 trials are not recorded" in card and "1 trials ended in an error" in card
