"""The table and the figure of break-evens: where there are any, in words where there is no number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from records import experiment, rejected, run_of, trial

from bench.read.analysis.arms import Condition
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.analysis.statistics import mean_of
from bench.read.claims import break_even_table as break_even
from bench.read.claims.break_even import ArchitecturePair, BreakEven, PairMeans
from bench.read.claims.break_even_table import break_even_tables
from bench.read.render.cells import text_of
from bench.read.render.table import Table, comma_separated
from bench.record.record import TrialRecord

PLACE = Condition("demo", "m", "paper")
ENDS = ("Cheaper from failures a trial", "Low", "High")


def table_of(run: Run) -> Table:
    (table,) = break_even_tables(Results(run))
    return table


def rows_of(table: Table) -> list[Mapping[str, str]]:
    return [dict(zip(table.columns, map(text_of, row), strict=True)) for row in table.rows]


def shown(
    monkeypatch: pytest.MonkeyPatch, run: Run, measured: BreakEven | None, published: BreakEven | None, n: int = 6
) -> Table:
    """The table that shows these."""
    sides = PairMeans(mean_of([300.0] * n), mean_of([100.0] * n))
    rivals = ArchitecturePair(PLACE, "later", "earlier", sides, sides, measured, (mean_of([0.0]), mean_of([1.0])), published)
    monkeypatch.setattr(break_even, "architecture_pairs", lambda *_: {PLACE: (rivals,)})
    return table_of(run)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_of(tmp_path / "run", experiment(repetitions=1))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (BreakEven(1.234, 0.5, 2.0), ("1.23", "0.50", "2.00")),
        (BreakEven(1.234, 0.0, math.inf), ("1.23", "at any rate", "no upper bound")),
        (BreakEven(0.0, 0.0, 0.0), ("at any rate", "at any rate", "at any rate")),
        (BreakEven(math.inf, 3.0, math.inf), ("never", "3.00", "no upper bound")),
        (BreakEven(math.inf, math.inf, math.inf), ("never", "never", "never")),
        (BreakEven(2.0), ("2.00", "n/a", "n/a")),
        (None, ("not measured", "–", "–")),
    ],
)
def test_what_is_no_number_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, run: Run, result: BreakEven | None, words: tuple[str, ...]
) -> None:
    table = shown(monkeypatch, run, result, None)
    (row,) = rows_of(table)
    assert tuple(row[name] for name in ENDS) == words
    assert "By the paper's figures" not in row
    assert "inf" not in comma_separated(table)


def test_the_papers_rate_stands_beside_ours_in_words_too(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for rate, word in ((6.26, "6.26"), (math.inf, "never"), (0.0, "at any rate")):
        (row,) = rows_of(shown(monkeypatch, run, BreakEven(1.0, 0.5, 2.0), BreakEven(rate)))
        assert row["By the paper's figures"] == word


def test_an_interval_of_fewer_than_five_pairs_is_said_to_be_too_short(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    few = shown(monkeypatch, run, BreakEven(1.0, 0.5, 2.0), None, n=4)
    assert any(note.startswith("N=4:") and "12.5%" in note for note in few.notes)
    for enough in (shown(monkeypatch, run, BreakEven(1.0, 0.5, 2.0), None, n=5), shown(monkeypatch, run, None, None, n=1)):
        assert not any(note.startswith("N=") for note in enough.notes)


def test_each_ones_own_rejections_stand_beside_it(tmp_path: Path) -> None:
    records = experiment(repetitions=5)
    unlucky = [
        _rejected_once(record) if (record.architecture, record.plan) == ("static", "none") else record for record in records
    ]
    (row,) = rows_of(table_of(run_of(tmp_path / "run", unlucky)))
    assert (row["Architecture"], row["Against"]) == ("static", "monolithic")
    assert row["Rejections a trial"].startswith("1.0 ") and row["Rejections a trial, other's"].startswith("0.0 ")
    assert row["Pairs of passes"] == row["Pairs of rounds"] == "5"


def _rejected_once(record: TrialRecord) -> TrialRecord:
    return trial(record.architecture, record.plan, record.repetition, events=[*record.events, rejected(2, "b")])


def test_a_run_without_first_passes_or_without_rounds_has_no_table(tmp_path: Path) -> None:
    free = run_of(tmp_path / "free", experiment(plans=["none"]))
    assert not break_even_tables(Results(free))
