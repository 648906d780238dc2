"""Two runs compared: as a table, and as JSON for a program."""

from __future__ import annotations

import json

from bench.analysis.compare import Comparison, Row
from bench.analysis.measures import COSTS
from bench.analysis.merge import name_of
from bench.analysis.statistics import Mean
from bench.render.labels import model_label
from bench.render.limits import noted
from bench.render.table import NOTHING, Bounded, Cell, Number, Table

_FORMS = {"tokens": (COSTS[0].digits, False), "seconds": (COSTS[1].digits, False), "solved": (1, True)}


def compare_table(found: Comparison) -> Table:
    """Differences are the second run's less the first's."""
    spreads = (row.difference for row in found.rows if isinstance(row.difference, Mean) and row.reason != "equal in every pair")
    return Table(
        name="compare",
        title=f"{name_of(found.second)} against {name_of(found.first)}",
        columns=(
            *("Scenario", "Model", "Fault plan", "Architecture", "Measure", "A", "B", "B − A, paired", "Margin"),
            *("Pairs", "Unpaired", "Verdict", "Reason", "To decide"),
        ),
        rows=tuple(_row(found, row) for row in found.rows),
        notes=(
            *found.notes,
            f"worse: the 95% interval lies beyond the margin, {100 * found.margin:g}% of A's mean (of solved: "
            f"{100 * found.margin:g} points); no worse: it lies within",
            "each interval is at 95% by itself: of many arms one may be worse by chance; that none is takes no correction",
            "to decide: the pairs that would, were the difference the one found, with a power of 80%",
            *noted(spreads),
        ),
    )


def _row(found: Comparison, row: Row) -> tuple[Cell, ...]:
    digits, percent = _FORMS[row.measure]
    difference = Bounded(*_difference(row), digits, percent)
    place = (row.condition.scenario, model_label(found.second, row.condition.model), row.condition.plan, row.architecture)
    values = (
        Number(row.before, digits, percent),
        Number(row.after, digits, percent),
        difference,
        Number(row.margin, digits, percent),
    )
    needed: Cell = "–" if row.verdict != "inconclusive" else NOTHING if row.needed is None else row.needed
    return (*place, row.measure, *values, row.pairs, row.unpaired, row.verdict, row.reason, needed)


def _difference(row: Row) -> tuple[float | None, float | None, float | None]:
    found = row.difference
    return (found.mean if isinstance(found, Mean) else found.difference, found.low, found.high)


def as_json(found: Comparison) -> str:
    """Numbers in their own units; null where there is none."""
    rows = [
        {
            "scenario": row.condition.scenario,
            "model": row.condition.model,
            "plan": row.condition.plan,
            "architecture": row.architecture,
            "measure": row.measure,
            "before": row.before,
            "after": row.after,
            **dict(zip(("difference", "low", "high"), _difference(row), strict=True)),
            "margin": row.margin,
            "pairs": row.pairs,
            "unpaired": row.unpaired,
            "verdict": row.verdict,
            "reason": row.reason,
            "to_decide": row.needed,
        }
        for row in found.rows
    ]
    whole = {
        "first": name_of(found.first),
        "second": name_of(found.second),
        "verdict": found.verdict,
        "margin": found.margin,
        "notes": list(found.notes),
        "rows": rows,
    }
    return json.dumps(whole, indent=2, allow_nan=False)
