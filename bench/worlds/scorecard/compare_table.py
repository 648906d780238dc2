"""Two scorecards compared: as a table, and as JSON for a program."""

from __future__ import annotations

import json
from dataclasses import asdict

from bench.render.table import AdjustedP, BoundedNumber, Cell, Number, Table
from bench.worlds.scorecard import CardComparison
from bench.worlds.scorecard.compare import Difference, Found
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


def _row(one: Difference) -> tuple[Cell, ...]:
    digits, percent = (1, False) if one.measure == "harm" else (1, True)
    found = one.found
    numbers = (Number(found.before, digits, percent), Number(found.after, digits, percent))
    return (
        *(one.world, _both(*one.models), _both(*one.systems), failure(one.by), MEASURES[one.measure], *numbers),
        _ends(found, digits, percent),
        f"{one.trials[0]} and {one.trials[1]}",
        "–" if found.pairs is None else found.pairs,
        AdjustedP(one.adjusted),
        one.finding,
    )


def _ends(found: Found, digits: int, percent: bool) -> BoundedNumber:
    difference = None if found.before is None or found.after is None else found.after - found.before
    return BoundedNumber(difference, found.low, found.high, digits, percent)


def _both(first: str, second: str) -> str:
    return second if first == second else f"{first} → {second}"


def as_json(comparison: CardComparison) -> str:
    rows = [{**asdict(one), **asdict(one.found)} for one in comparison.differences]
    for row in rows:
        del row["found"]
    found = {"verdict": comparison.verdict, "margin": comparison.margin, "left_out": list(comparison.left_out), "rows": rows}
    return json.dumps(found, indent=2, allow_nan=False)
