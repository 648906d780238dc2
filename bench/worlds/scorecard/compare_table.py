"""Two scorecards compared: as a table, and as JSON for a program."""

from __future__ import annotations

import json
from dataclasses import asdict

from bench.render.table import AdjustedP, BoundedNumber, Cell, Number, Table
from bench.worlds.scorecard import CardComparison
from bench.worlds.scorecard.compare import Contrast, Difference
from bench.worlds.scorecard.words import failure

MEASURES = {
    "right": "finished right",
    "harm": "effects damaged per 100 failures",
    "harmed": "trials with any damage",
}


def compare_table(comparison: CardComparison) -> Table:
    points = f"{100 * comparison.margin:g}"
    return Table(
        name="compare-scorecards",
        title="The second scorecard (B) against the first (A)",
        columns=(
            *("Scenario", "Model", "System", "What happens", "Measure", "A", "B", "B − A"),
            *("Trials", "Pairs", "p (Holm)", "Finding"),
        ),
        rows=tuple(map(_row, comparison.differences)),
        notes=(
            *([f"compared on what they share; left out: {'; '.join(comparison.left_out)}"] if comparison.left_out else []),
            "worse, better: p < 0.05 after Holm's correction over all rows; no worse: the difference's interval lies within "
            f"{points} points (of damage, {points} effects for 100 failures), or all pairs are equal; inconclusive: all else",
            "pairs: trials that met the same fault; under another fault schedule there are none, and Fisher's test is of rates",
        ),
    )


def _row(difference: Difference) -> tuple[Cell, ...]:
    digits, percent = (1, False) if difference.measure == "harm" else (1, True)
    measurement = difference.measurement
    numbers = (Number(measurement.before, digits, percent), Number(measurement.after, digits, percent))
    return (
        *(
            difference.world,
            _both(*difference.models),
            _both(*difference.systems),
            failure(difference.by),
            MEASURES[difference.measure],
            *numbers,
        ),
        _ends(measurement, digits, percent),
        f"{difference.trials[0]} and {difference.trials[1]}",
        "–" if measurement.pairs is None else measurement.pairs,
        AdjustedP(difference.adjusted),
        difference.finding,
    )


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
