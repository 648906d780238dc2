"""What errors can hide is said: rankings that depend on them, and the limits of small numbers."""

from __future__ import annotations

from pathlib import Path

from records import experiment, run_of, trial

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.analysis.statistics import mean_of, share_of
from bench.read.render.limits import coverage_sentence, limit_notes
from bench.read.render.table import Table
from bench.read.report.page import page_of
from bench.read.report.tables import all_tables
from bench.read.tables.outcome_tables import ranking_warnings
from bench.record.record import Outcome, TrialRecord


def ended(architecture: str, *outcomes: Outcome) -> list[TrialRecord]:
    return [trial(architecture, "none", place, outcome) for place, outcome in enumerate(outcomes, 1)]


def warnings_of(folder: Path, *records: list[TrialRecord]) -> tuple[str, ...]:
    run = run_of(folder / "run", [each for some in records for each in some])
    return ranking_warnings(run, arms_of(run))


def tables_of(run: Run) -> dict[str, Table]:
    return {table.name: table for table in all_tables(Results(run))}


def test_a_ranking_that_depends_on_the_errors_is_warned_of_with_all_its_rates(tmp_path: Path) -> None:
    [warning] = warnings_of(
        tmp_path, ended("static", "solved", "solved", "error", "error"), ended("mine", "solved", "solved", "wrong", "solved")
    )
    assert warning.startswith("WARNING, demo, m (SIMULATED), fault plan none: whether ")
    assert "static: left out 2/2, as failures 2/4, as solved 4/4" in warning
    assert "mine: left out 3/4, as failures 3/4, as solved 3/4" in warning


def test_a_ranking_that_stands_either_way_is_not_warned_of(tmp_path: Path) -> None:
    assert not warnings_of(tmp_path / "a", ended("static", "solved", "wrong"), ended("mine", "solved", "solved"))
    assert not warnings_of(
        tmp_path / "b", ended("static", "error", "wrong", "wrong"), ended("mine", "solved", "solved", "solved")
    )


def test_the_warning_stands_below_the_outcomes(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [*ended("static", "solved", "error"), *ended("mine", "solved", "wrong")])
    assert any(note.startswith("WARNING") for note in tables_of(run)["outcomes"].notes)


def test_each_kind_of_limit_is_said_once_with_the_smallest_n() -> None:
    notes = limit_notes([mean_of([1.0, 2.0, 3.0]), share_of(1, 3), mean_of([4.0]), mean_of([2.0] * 4), mean_of([2.0] * 6)])
    assert [note.partition(":")[0] for note in notes] == ["N=1", "N=4"]
    assert notes[1].endswith("; the limit is weaker at larger N")


def test_how_often_intervals_hold_the_truth_is_said_once_for_all_tables(tmp_path: Path) -> None:
    assert coverage_sentence([mean_of([4.0]), share_of(500, 1000)]) == ""
    text = coverage_sentence([mean_of([1.0, 2.0, 3.0]), mean_of([float(n % 9) for n in range(40)]), share_of(1, 3)])
    assert text.startswith("With so few trials some intervals are too narrow. In simulated"), "it is a sentence by itself"
    assert text == coverage_sentence([mean_of([1.0, 2.0, 3.0]), share_of(1, 3)]), "the worst decides"
    run = run_of(tmp_path / "run", experiment())
    tables = list(tables_of(run).values())
    assert not [note for table in tables for note in table.notes if "held the truth" in note]
    limits = page_of(Results(run), tables, []).summary.limits
    assert [limit for limit in limits if "held the truth" in limit] == [limits[-1]]


def test_every_table_with_small_numbers_says_their_limits(tmp_path: Path) -> None:
    tables = tables_of(run_of(tmp_path / "run", experiment()))
    for name in ("comparison-demo-m-paper", "differences"):
        assert any(note.startswith("N=3") for note in tables[name].notes), name
