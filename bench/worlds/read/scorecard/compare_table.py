"""A comparison of scorecards as a table, and as JSON for a program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from bench.read.render.cells import AdjustedP, BoundedNumber, Cell, Number
from bench.read.render.table import Table, TableColumn, table_of
from bench.worlds.read.scorecard import CardComparison
from bench.worlds.read.scorecard.compare import Contrast, Difference
from bench.worlds.read.scorecard.words import failure

MEASURES = {
    "right": "finished right",
    "harm": "effects damaged per 100 failures",
    "harmed": "trials with any damage",
}

WIDE = ("Trials", "Pairs")
"""Columns that do not fit into a terminal."""


def compare_table(comparison: CardComparison) -> Table:
    def number(title: str, read: Callable[[Contrast], float | None]) -> TableColumn[Difference]:
        return TableColumn(title, lambda row: Number(read(row.measurement), 1, percent=row.measure != "harm"))

    def pairs(row: Difference) -> Cell:
        return "–" if row.measurement.pairs is None else row.measurement.pairs

    columns = (
        TableColumn[Difference]("Scenario", lambda row: row.world),
        TableColumn[Difference]("Model", lambda row: _both(*row.models)),
        TableColumn[Difference]("System", lambda row: _both(*row.systems)),
        TableColumn[Difference]("What happens", lambda row: failure(row.by)),
        TableColumn[Difference]("Measure", lambda row: MEASURES[row.measure]),
        number("A", lambda measured: measured.before),
        number("B", lambda measured: measured.after),
        TableColumn[Difference]("B − A", lambda row: _ends(row.measurement, 1, row.measure != "harm")),
        TableColumn[Difference]("Trials", lambda row: f"{row.trials[0]} and {row.trials[1]}"),
        TableColumn[Difference]("Pairs", pairs),
        TableColumn[Difference]("p (Holm)", lambda row: AdjustedP(row.adjusted)),
        TableColumn[Difference]("Finding", lambda row: row.finding),
    )
    points, left_out = f"{100 * comparison.margin:g}", "; ".join(comparison.left_out)
    notes = (
        *([f"Only what both scorecards have is compared. Left out: {left_out}."] if left_out else []),
        "worse, better: p < 0.05 after Holm's correction over all rows; no worse: the difference's interval lies within "
        f"{points} points (of damage, {points} effects for 100 failures), or all pairs are equal; inconclusive: any other case",
        "pairs: trials that met the same fault in both scorecards; under different fault schedules there are none, and "
        "Fisher's test compares the rates",
    )
    title = "The second scorecard (B) against the first (A)"
    return table_of("compare-scorecards", title, columns, comparison.differences, notes)


def _ends(measurement: Contrast, digits: int, percent: bool) -> BoundedNumber:
    difference = None if measurement.before is None or measurement.after is None else measurement.after - measurement.before
    return BoundedNumber(difference, measurement.low, measurement.high, digits, percent)


def _both(first: str, second: str) -> str:
    return second if first == second else f"{first} → {second}"


def as_json(comparison: CardComparison) -> str:
    rows = [{**asdict(difference), **asdict(difference.measurement)} for difference in comparison.differences]
    for row in rows:
        del row["measurement"]
    fields = {"verdict": comparison.verdict, "margin": comparison.margin, "left_out": list(comparison.left_out), "rows": rows}
    return json.dumps(fields, indent=2, allow_nan=False)
