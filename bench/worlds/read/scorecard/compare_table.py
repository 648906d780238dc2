"""A comparison of scorecards as a table, and as JSON for a program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bench.read.compare.compare_table import of_both
from bench.read.compare.verdict import Contrast
from bench.read.render.cells import AdjustedP, BoundedNumber, Cell, Number
from bench.read.render.table import Table, TableColumn, table_of
from bench.worlds.read.scorecard.compare import ALL, CardComparison, Difference
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
        TableColumn[Difference]("Model", lambda row: of_both(*row.models)),
        TableColumn[Difference]("System", lambda row: of_both(*row.systems)),
        TableColumn[Difference]("What happens", lambda row: "all of these" if row.by == ALL else failure(row.by)),
        TableColumn[Difference]("Measure", lambda row: MEASURES[row.measure]),
        number("A", lambda measured: measured.before),
        number("B", lambda measured: measured.after),
        TableColumn[Difference]("B − A", lambda row: _ends(row.measurement, 1, row.measure != "harm")),
        TableColumn[Difference]("Trials", lambda row: f"{row.trials[0]} and {row.trials[1]}"),
        TableColumn[Difference]("Pairs", pairs),
        TableColumn[Difference]("p (Holm)", lambda row: AdjustedP(row.adjusted)),
        TableColumn[Difference]("Finding", lambda row: f"{row.finding}: {row.counted}" if row.counted else row.finding),
    )
    left_out = "; ".join(comparison.left_out)
    notes = (
        *([f"Only what both scorecards have is compared. Left out: {left_out}."] if left_out else []),
        "all of these: the rows that decide; all other rows stand beside them, after Holm's correction",
        "no worse: the bound of the loss is within the margin; worse: B is worse by more than it, and p is below 5%; "
        "undecided: these trials cannot decide it; trade-off: better in one thing, worse in another; equal: nothing differs",
        "damage: if the replies of neither side are live, it is counted, and a single pair in which B damages more effects of "
        "a kind is a counterexample; --allow doubled=1 allows that many",
        "pairs: trials that met the same fault in both scorecards; under different fault schedules there are none, and "
        "Fisher's test compares the rates",
    )
    title = "The second scorecard (B) against the first (A)"
    return table_of("compare-scorecards", title, columns, [*comparison.overall, *comparison.differences], notes)


def _ends(measurement: Contrast, digits: int, percent: bool) -> BoundedNumber:
    difference = None if measurement.before is None or measurement.after is None else measurement.after - measurement.before
    return BoundedNumber(difference, measurement.low, measurement.high, digits, percent)


def summary(comparison: CardComparison) -> str:
    """Return the verdict, and what is better and worse over all rows, or in some of them."""
    names: dict[str, list[str]] = {}
    for row in (*comparison.overall, *comparison.differences):
        if row.finding in ("better", "worse", "trade-off"):
            told = f"{MEASURES[row.measure]} ({row.counted})" if row.counted else MEASURES[row.measure]
            of_finding = names.setdefault(row.finding, [])
            if row.by == ALL or not any(name.startswith(MEASURES[row.measure]) for each in names.values() for name in each):
                of_finding.append(told if row.by == ALL else f"{told}, {failure(row.by)}, {row.world}")
    words = {"better": "better in", "worse": "worse in", "trade-off": "for and against in"}
    sentences = [f"{words[finding]} {', '.join(names[finding])}" for finding in words if names.get(finding)]
    return f"{comparison.verdict}: {'; '.join(sentences)}" if sentences else comparison.verdict


def as_json(comparison: CardComparison) -> str:
    def values(row: Difference) -> dict[str, Any]:
        return {name: value for name, value in (asdict(row) | asdict(row.measurement)).items() if name != "measurement"}

    fields = {
        "verdict": comparison.verdict,
        "gate": dict(comparison.gate),
        "left_out": list(comparison.left_out),
        "overall": list(map(values, comparison.overall)),
        "rows": list(map(values, comparison.differences)),
    }
    return json.dumps(fields, indent=2, allow_nan=False)
