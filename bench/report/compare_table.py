"""Two runs compared: as a table, and as JSON for a program."""

from __future__ import annotations

import json
from typing import Any

from bench.analysis.compare import EQUAL, ArmDifference, Comparison
from bench.analysis.measures import COSTS
from bench.analysis.statistics import Mean
from bench.render.labels import ARM, model_label
from bench.render.limits import noted
from bench.render.table import NOTHING, BoundedNumber, Cell, Number, Table

_FORMS = {"tokens": (COSTS[0].digits, False), "seconds": (COSTS[1].digits, False), "solved": (1, True)}


def compare_table(comparison: Comparison) -> Table:
    """Differences are the second run's less the first's."""
    spreads = (row.difference for row in comparison.rows if isinstance(row.difference, Mean) and row.reason != EQUAL)
    margin = f"{100 * comparison.margin:g}"
    return Table(
        name="compare",
        title=f"{comparison.second.name} against {comparison.first.name}",
        columns=(*ARM, "Measure", "A", "B", "B − A, paired", "Margin", "Pairs", "Unpaired", "Verdict", "Reason", "To decide"),
        rows=tuple(_row(comparison, row) for row in comparison.rows),
        notes=(
            *comparison.notes,
            f"worse: the 95% interval lies beyond the margin, {margin}% of A's mean (of solved: {margin} points); no worse: it "
            "lies within; better: it lies beyond the margin on the other side",
            "what is solved comes first: an arm that solves more and takes more is a trade-off, one that solves fewer is worse",
            "each interval is at 95% by itself: of many arms one may be worse by chance; that none is takes no correction",
            "to decide: the pairs that would, were the difference the one found, with a power of 80%",
            *noted(spreads),
        ),
    )


def _row(comparison: Comparison, row: ArmDifference) -> tuple[Cell, ...]:
    digits, percent = _FORMS[row.criterion]
    models = (model_label(comparison.first, row.first.model), model_label(comparison.second, row.second.model))
    place = (row.first.scenario, _of_both(*models), row.first.plan, _of_both(*row.architectures))
    values = (
        Number(row.before, digits, percent),
        Number(row.after, digits, percent),
        BoundedNumber(*_difference(row), digits, percent),
        Number(row.margin, digits, percent),
    )
    needed: Cell = "–" if row.finding != "inconclusive" else NOTHING if row.needed is None else row.needed
    return (*place, row.criterion, *values, row.pairs, row.unpaired, row.finding, row.reason, needed)


def _of_both(first: str, second: str) -> str:
    return second if first == second else f"{first} → {second}"


def _difference(row: ArmDifference) -> tuple[float | None, float | None, float | None]:
    difference = row.difference
    return (difference.mean if isinstance(difference, Mean) else difference.difference, difference.low, difference.high)


def as_json(comparison: Comparison) -> str:
    """Numbers in their own units; null where there is none."""
    return json.dumps(
        {
            "first": comparison.first.name,
            "second": comparison.second.name,
            "verdict": comparison.verdict,
            "margin": comparison.margin,
            "notes": list(comparison.notes),
            "rows": [_row_as_json(row) for row in comparison.rows],
        },
        indent=2,
        allow_nan=False,
    )


def _row_as_json(row: ArmDifference) -> dict[str, Any]:
    """`model` and `architecture` are the second run's; the first one's stand beside them where runs are compared across."""
    return {
        "scenario": row.first.scenario,
        "model": row.second.model,
        "first_model": row.first.model,
        "plan": row.first.plan,
        "architecture": row.architectures[1],
        "first_architecture": row.architectures[0],
        "measure": row.criterion,
        "before": row.before,
        "after": row.after,
        **dict(zip(("difference", "low", "high"), _difference(row), strict=True)),
        "margin": row.margin,
        "pairs": row.pairs,
        "unpaired": row.unpaired,
        "verdict": row.finding,
        "reason": row.reason,
        "to_decide": row.needed,
    }
