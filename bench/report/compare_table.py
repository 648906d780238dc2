"""Two runs compared: as tables, and as JSON for a program."""

from __future__ import annotations

import json
from typing import Any

from bench.analysis.compare import EQUAL, ArmComparison, ArmDifference, Comparison
from bench.analysis.metrics import COST, LATENCY, TOKENS
from bench.analysis.per_solved import PerSolved
from bench.analysis.statistics import Mean
from bench.experiment.config import FAULT_FREE
from bench.render.labels import ARM, model_label
from bench.render.limits import coverage_said, noted
from bench.render.table import NONE_SOLVED, NOTHING, BoundedNumber, Cell, Number, Spent, Table, text_of

_TOKENS, _SECONDS = (TOKENS.digits, False), (LATENCY.digits, False)
_FORMS = {
    "solved": (1, True),
    "price": _TOKENS,
    "first_round": _TOKENS,
    "cost": (5, False),
    "tokens": _TOKENS,
    "seconds": _SECONDS,
}
DOLLARS = ("A, $ for a solved task", "B, $ for a solved task")
NARROW = ("Margin", "Pairs", "Unpaired", "Reason", "To decide")
"""Columns of the measures that a terminal has no room for."""
MOST_PRICED = 3
"""Arms of which a line says what a solved task costs."""
_NAMES = {"price": "price of a failure", "first_round": "first round", "cost": "cost, $"}


def arms_table(comparison: Comparison) -> Table:
    """The verdict on each arm, and by what."""
    return Table(
        name="verdicts",
        title=_title(comparison),
        columns=(*ARM, "Verdict", "Better in", "Worse in", "In doubt", *(DOLLARS if comparison.priced else ())),
        rows=tuple((*_place(comparison, arm), *_verdict_cells(arm, bool(comparison.priced))) for arm in comparison.arms),
        notes=(
            *(
                [f"compared on what they share; left out: {'; '.join(comparison.runs.left_out)}"]
                if comparison.runs.left_out
                else []
            ),
            *comparison.runs.notes,
            "in this order: solved; what one failure costs (its price, or its first round where that is not measured); dollars "
            "of the whole trial, or its tokens where those are not known, and its seconds",
            "worse: worse by one of them, and none before it speaks for B; trade-off: but better by one before it, or it costs "
            "fewer dollars and solves no fewer; better: worse by none, better by one, nothing in doubt before it; no worse: by "
            "all; inconclusive: all else",
            *(["$ for a solved task: all that the arm's trials cost, by those solved"] if comparison.priced else []),
        ),
    )


def compare_table(comparison: Comparison) -> Table:
    """Differences are the second run's less the first's."""
    rows = [(arm, row) for arm in comparison.arms for row in arm.rows]
    spreads = [row.difference for _, row in rows if isinstance(row.difference, Mean) and row.reason != EQUAL]
    margin = f"{100 * comparison.margin:g}"
    return Table(
        name="compare",
        title=f"{_title(comparison)}, measure by measure",
        columns=(*ARM, "Measure", "A", "B", "B − A, paired", "Margin", "Pairs", "Unpaired", "Finding", "Reason", "To decide"),
        rows=tuple(_row(comparison, arm, row) for arm, row in rows),
        notes=(
            f"worse: the 95% interval lies beyond the margin, {margin}% of A's mean (of solved: {margin} points); no worse: it "
            "lies within; better: it lies beyond the margin on the other side",
            "price of a failure, first round: in tokens, over pairs in which both have one",
            "each interval is at 95% by itself: of many arms one may be worse by chance; that none is takes no correction",
            "to decide: the pairs that would, were the difference the one found, with a power of 80%",
            *noted(spreads),
            *filter(None, [coverage_said(spreads)]),
        ),
    )


def _title(comparison: Comparison) -> str:
    return f"{comparison.runs.second.name} (B) against {comparison.runs.first.name} (A)"


def _place(comparison: Comparison, arm: ArmComparison) -> tuple[str, str, str, str]:
    models = (model_label(comparison.runs.first, arm.first.model), model_label(comparison.runs.second, arm.second.model))
    return (arm.first.scenario, _of_both(*models), arm.first.plan, _of_both(*arm.architectures))


def _verdict_cells(arm: ArmComparison, priced: bool) -> tuple[Cell, ...]:
    named = (_named(arm, finding) for finding in ("better", "worse", "inconclusive"))
    return (arm.verdict, *named, *((Spent(amount, COST.digits) for amount in arm.dollars) if priced else ()))


def dollars_line(comparison: Comparison) -> str:
    """Say what a solved task costs in both, arm by arm; "" where no dollars are known."""
    texts = [f"{_dollars(arm.dollars[1])} against {_dollars(arm.dollars[0])} ({_briefly(arm)})" for arm in comparison.priced]
    more = f"; the table has {len(texts) - MOST_PRICED} more" if len(texts) > MOST_PRICED else ""
    return f"Dollars for a solved task: {'; '.join(texts[:MOST_PRICED])}{more}" if texts else ""


def _dollars(spent: PerSolved) -> str:
    return NONE_SOLVED if spent.value is None else text_of(BoundedNumber(spent.value, spent.low, spent.high, COST.digits))


def _briefly(arm: ArmComparison) -> str:
    plan = "without faults" if arm.first.plan == FAULT_FREE else arm.first.plan
    return f"{arm.first.scenario}, {_of_both(*arm.architectures)}, {plan}"


def _named(arm: ArmComparison, finding: Any) -> str:
    return ", ".join(_NAMES.get(criterion, criterion) for criterion in arm.criteria(finding)) or "–"


def _row(comparison: Comparison, arm: ArmComparison, row: ArmDifference) -> tuple[Cell, ...]:
    digits, percent = _FORMS[row.criterion]
    values = (
        Number(row.before, digits, percent),
        Number(row.after, digits, percent),
        BoundedNumber(*_difference(row), digits, percent),
        Number(row.margin, digits, percent),
    )
    needed: Cell = "–" if row.finding != "inconclusive" else NOTHING if row.needed is None else row.needed
    measure = _NAMES.get(row.criterion, row.criterion)
    return (*_place(comparison, arm), measure, *values, row.pairs, row.unpaired, row.finding, row.reason, needed)


def _of_both(first: str, second: str) -> str:
    return second if first == second else f"{first} → {second}"


def _difference(row: ArmDifference) -> tuple[float | None, float | None, float | None]:
    difference = row.difference
    return (difference.mean if isinstance(difference, Mean) else difference.difference, difference.low, difference.high)


def as_json(comparison: Comparison) -> str:
    """Numbers in their own units; null where there is none."""
    return json.dumps(
        {
            "first": comparison.runs.first.name,
            "second": comparison.runs.second.name,
            "verdict": comparison.verdict,
            "margin": comparison.margin,
            "left_out": list(comparison.runs.left_out),
            "notes": list(comparison.runs.notes),
            "arms": [{**_place_as_json(arm), "verdict": arm.verdict, **_dollars_as_json(arm)} for arm in comparison.arms],
            "rows": [{**_place_as_json(arm), **_row_as_json(row)} for arm in comparison.arms for row in arm.rows],
        },
        indent=2,
        allow_nan=False,
    )


def _place_as_json(arm: ArmComparison) -> dict[str, str]:
    """`model` and `architecture` are the second run's; the first one's stand beside them where runs are compared across."""
    return {
        "scenario": arm.first.scenario,
        "model": arm.second.model,
        "first_model": arm.first.model,
        "plan": arm.first.plan,
        "architecture": arm.architectures[1],
        "first_architecture": arm.architectures[0],
    }


def _dollars_as_json(arm: ArmComparison) -> dict[str, float | None]:
    """For a solved task; null where none was solved, or a price is unknown."""
    return {"dollars_per_solved_before": arm.dollars[0].value, "dollars_per_solved_after": arm.dollars[1].value}


def _row_as_json(row: ArmDifference) -> dict[str, Any]:
    return {
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
