"""The comparison of two runs, as tables for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.read.analysis.metrics import COST, LATENCY, TOKENS
from bench.read.analysis.per_solved import PerSolved
from bench.read.analysis.statistics import Mean
from bench.read.compare.compare import ArmComparison, ArmDifference, Comparison
from bench.read.compare.verdict import EQUAL
from bench.read.render.cells import NONE_SOLVED, NOTHING, BoundedNumber, Cell, Number, Spent, text_of
from bench.read.render.labels import model_label
from bench.read.render.limits import coverage_said, noted
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.config import FAULT_FREE

_TOKENS, _SECONDS = (TOKENS.digits, False), (LATENCY.digits, False)
_FORMS = {
    "solved": (1, True),
    "damage": (1, True),
    "price": _TOKENS,
    "first_round": _TOKENS,
    "cost": (5, False),
    "tokens": _TOKENS,
    "seconds": _SECONDS,
}
DOLLARS = ("A, $ for a solved task", "B, $ for a solved task")
WIDE = ("Margin", "Pairs", "Unpaired", "Reason", "To decide")
"""Columns of the measures that do not fit into a terminal."""
MOST_PRICED = 3
"""The most arms in the line on dollars."""
COUNTED = (
    "trials with damage: if all replies are simulated or recorded, a single pair in which B damages more is a counterexample "
    "(--allow doubled=1 allows that many); otherwise the rates are compared"
)
_NAMES = {"damage": "trials with damage", "price": "price of a failure", "first_round": "first round", "cost": "cost, $"}
ALL = "all"
"""What stands for the names of an arm in a row of all arms."""


def arms_table(comparison: Comparison) -> Table:
    """Return the verdict on each arm, and the measures behind it."""
    columns = (
        *_columns(comparison),
        TableColumn[ArmComparison]("Verdict", lambda arm: arm.verdict),
        *(
            TableColumn[ArmComparison](title, lambda arm, finding=finding: _named(arm, finding))  # type: ignore[misc]
            for title, finding in (("Better in", "better"), ("Worse in", "worse"), ("In doubt", "inconclusive"))
        ),
        *(
            TableColumn[ArmComparison](title, lambda arm, side=side: Spent(arm.dollars[side], COST.digits))  # type: ignore[misc]
            for side, title in enumerate(DOLLARS if comparison.priced else ())
        ),
    )
    left_out = comparison.runs.left_out
    notes = (
        *([f"only what both runs share is compared; left out: {'; '.join(left_out)}"] if left_out else []),
        *comparison.runs.notes,
        "what is solved and damaged decides before what is spent: a failure's price (or its first round, if the price is not "
        "measured), the whole trial's dollars (or its tokens, if dollars are not known), and its seconds",
        "worse, better: B is so in a measure, in no measure of the same rank the contrary, and what decides before is settled; "
        "trade-off: better in one measure and worse in another of the same rank; equal, no worse, no better: no measure "
        "decides, and this holds of each; inconclusive: any other case",
        *(["$ for a solved task: the dollars of the arm's trials, divided by its solved trials"] if comparison.priced else []),
    )
    return table_of("verdicts", _title(comparison), columns, comparison.arms, notes)


class Measured(NamedTuple):
    """One arm, or all arms together if it is None, by one criterion."""

    arm: ArmComparison | None
    by: ArmDifference


def compare_table(comparison: Comparison) -> Table:
    """Return a row for each arm and measure. A difference is the second run's value minus the first run's."""

    def number(title: str, read: Callable[[ArmDifference], float | None]) -> TableColumn[Measured]:
        return TableColumn(title, lambda row: Number(read(row.by), *_FORMS[row.by.criterion]))

    def needed(row: Measured) -> Cell:
        is_open = row.by.finding in ("inconclusive", "no worse", "no better")
        return "–" if not is_open else NOTHING if row.by.needed is None else row.by.needed

    columns = (
        *(_of_arm(column) for column in _columns(comparison)),
        TableColumn[Measured]("Measure", lambda row: _NAMES.get(row.by.criterion, row.by.criterion)),
        number("A", lambda row: row.contrast.before),
        number("B", lambda row: row.contrast.after),
        TableColumn[Measured]("B − A, paired", lambda row: BoundedNumber.of(row.by.difference, *_FORMS[row.by.criterion])),
        number("Margin", lambda row: row.contrast.margin),
        TableColumn[Measured]("Pairs", lambda row: row.by.contrast.pairs or 0),
        TableColumn[Measured]("Unpaired", lambda row: row.by.unpaired),
        TableColumn[Measured]("Finding", lambda row: row.by.finding),
        TableColumn[Measured]("Reason", lambda row: row.by.reason),
        TableColumn[Measured]("To decide", needed),
    )
    overall = [Measured(None, row) for row in comparison.overall] if len(comparison.arms) > 1 else []
    rows = [*overall, *(Measured(arm, row) for arm in comparison.arms for row in arm.rows)]
    spreads = [by.difference for _, by in rows if isinstance(by.difference, Mean) and by.reason != EQUAL]
    margin = f"{100 * comparison.margin:g}"
    notes = (
        f"better, worse: B differs by more than the margin, {margin}% of the smaller mean ({margin} points of a rate), and the "
        "whole 95% interval lies beyond it (of a rate, beyond 0); no worse, no better: one end of the interval is within the "
        "margin; equal: both are, or both runs are equal in every pair",
        "of several arms, one by itself is better or worse only if an exact test says so too, after Holm's correction over all",
        *([COUNTED] if any(row.by.criterion == "damage" for row in rows) else []),
        "price of a failure, first round: in tokens, over the pairs in which both trials have a value",
        "to decide: how many pairs would decide with a power of 80%, if the true difference is the measured difference",
        "to decide leaves out the correction over arms: it is of the finding of its row",
        *noted(spreads),
        *filter(None, [coverage_said(spreads)]),
    )
    return table_of("compare", f"{_title(comparison)}, measure by measure", columns, rows, notes)


def _columns(comparison: Comparison) -> tuple[TableColumn[ArmComparison], ...]:
    """Return the columns that name a row's arm."""
    first, second = comparison.runs.first, comparison.runs.second

    def models(arm: ArmComparison) -> str:
        return of_both(model_label(first, arm.first.model), model_label(second, arm.second.model))

    return (
        TableColumn("Scenario", lambda arm: arm.first.scenario),
        TableColumn("Model", models),
        TableColumn("Fault plan", lambda arm: arm.first.plan),
        TableColumn("Architecture", lambda arm: of_both(*arm.architectures)),
    )


def _of_arm(column: TableColumn[ArmComparison]) -> TableColumn[Measured]:
    return TableColumn(column.title, lambda row: ALL if row.arm is None else column.cell(row.arm))


def _title(comparison: Comparison) -> str:
    return f"{comparison.runs.second.name} (B) against {comparison.runs.first.name} (A)"


def dollars_line(comparison: Comparison) -> str:
    """Return a line with the cost of a solved task in both runs, arm by arm; "" if no dollars are known."""
    texts = [f"{_dollars(arm.dollars[1])} against {_dollars(arm.dollars[0])} ({_briefly(arm)})" for arm in comparison.priced]
    more = f"; the table has {len(texts) - MOST_PRICED} more" if len(texts) > MOST_PRICED else ""
    return f"Dollars for a solved task: {'; '.join(texts[:MOST_PRICED])}{more}" if texts else ""


def _dollars(spent: PerSolved) -> str:
    return NONE_SOLVED if spent.value is None else text_of(BoundedNumber(spent.value, spent.low, spent.high, COST.digits))


def _briefly(arm: ArmComparison) -> str:
    plan = "without faults" if arm.first.plan == FAULT_FREE else arm.first.plan
    return f"{arm.first.scenario}, {of_both(*arm.architectures)}, {plan}"


def _named(arm: ArmComparison, finding: Any) -> str:
    return ", ".join(_NAMES.get(criterion, criterion) for criterion in arm.criteria(finding)) or "–"


def of_both(first: str, second: str) -> str:
    """Return the name of something in both runs: one name, or `first → second` if they differ."""
    return second if first == second else f"{first} → {second}"


def _difference(row: ArmDifference) -> tuple[float | None, float | None, float | None]:
    difference = row.difference
    return (difference.mean if isinstance(difference, Mean) else difference.difference, difference.low, difference.high)


def as_json(comparison: Comparison) -> str:
    """Return the comparison as JSON. Numbers keep their units; null if there is none."""
    return json.dumps(
        {
            "first": comparison.runs.first.name,
            "second": comparison.runs.second.name,
            "verdict": comparison.verdict,
            "margin": comparison.margin,
            "left_out": list(comparison.runs.left_out),
            "notes": list(comparison.runs.notes),
            "overall": list(map(_row_as_json, comparison.overall)),
            "arms": [{**_place_as_json(arm), "verdict": arm.verdict, **_dollars_as_json(arm)} for arm in comparison.arms],
            "rows": [{**_place_as_json(arm), **_row_as_json(row)} for arm in comparison.arms for row in arm.rows],
        },
        indent=2,
        allow_nan=False,
    )


def _place_as_json(arm: ArmComparison) -> dict[str, str]:
    """Return an arm's names. `model` and `architecture` are the second run's; the first run's differ if runs are compared
    across them."""
    return {
        "scenario": arm.first.scenario,
        "model": arm.second.model,
        "first_model": arm.first.model,
        "plan": arm.first.plan,
        "architecture": arm.architectures[1],
        "first_architecture": arm.architectures[0],
    }


def _dollars_as_json(arm: ArmComparison) -> dict[str, float | None]:
    """Return the dollars for a solved task; null if none was solved or a price is unknown."""
    return {"dollars_per_solved_before": arm.dollars[0].value, "dollars_per_solved_after": arm.dollars[1].value}


def _row_as_json(row: ArmDifference) -> dict[str, Any]:
    return {
        "measure": row.criterion,
        "before": row.contrast.before,
        "after": row.contrast.after,
        **dict(zip(("difference", "low", "high"), _difference(row), strict=True)),
        "margin": row.contrast.margin,
        "pairs": row.contrast.pairs,
        "unpaired": row.unpaired,
        "verdict": row.finding,
        "reason": row.reason,
        "to_decide": row.needed,
    }
