"""The comparison of two runs as text: the verdict in sentences, a table for people, and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench.read.analysis.metrics import COST, LATENCY, TOKENS
from bench.read.analysis.per_solved import PerSolved
from bench.read.analysis.statistics import Mean
from bench.read.compare.compare import ArmComparison, ArmDifference, Comparison
from bench.read.compare.verdict import EQUAL
from bench.read.render.cells import NONE_SOLVED, NOTHING, BoundedNumber, Cell, Number, text_of, value_of
from bench.read.render.labels import join_names, model_label
from bench.read.render.limits import coverage_sentence, limit_notes
from bench.read.render.table import Table, TableColumn, table_of

_TOKENS, _SECONDS = (TOKENS.digits, False), (LATENCY.digits, False)
_FORMATS: dict[str, tuple[int, bool]] = {
    "solved": (1, True),
    "damage": (1, True),
    "price": _TOKENS,
    "first_round": _TOKENS,
    "cost": (5, False),
    "tokens": _TOKENS,
    "seconds": _SECONDS,
}
WIDE_COLUMNS = ("Pairs", "Unpaired", "Would show", "Needed", "Reason")
"""Columns that do not fit into a terminal."""
DAMAGE_NOTE = (
    "trials with damage: if all replies are simulated or recorded, a single pair in which B damages more is a counterexample "
    "(--allow doubled=1 allows that many); otherwise the rates are compared"
)
_TITLES = {"damage": "trials with damage", "price": "price of a failure", "first_round": "first round", "cost": "cost, $"}
ALL_ARMS = "all"
"""The text in place of an arm's names in a row of all arms."""
MAX_FLAKY_NAMES = 3
"""The most names of flaky trials in a sentence."""


class FindingRow(NamedTuple):
    """A row of the table: the finding by one criterion on one arm, or on all arms together if `arm` is None."""

    arm: ArmComparison | None
    by: ArmDifference


def sentences(comparison: Comparison) -> Iterator[str]:
    """Yield the verdict and the findings on which it rests, one sentence in each line."""
    verdict = "cannot be decided with these pairs" if comparison.verdict == "undecided" else comparison.verdict
    gated = comparison.gated
    yield f"{verdict}: {'; '.join(map(_finding_in_words, gated)) or 'no measure of the gate is measured'}"
    yield from (f"missing: {what_is_missing}, so B is not judged as a whole" for what_is_missing in comparison.missing)
    for row in gated:
        if row.finding == "undecided":
            yield f"{row.criterion}: {row.reason}{_power_text(row)}"
    if len(comparison.factors) > 1:
        factors = join_names(comparison.factors, len(comparison.factors))
        yield f"the arms differ in {factors}: the verdict is on all of these together"
    if comparison.runs.left_out:
        yield f"only what both runs share is compared; left out: {'; '.join(comparison.runs.left_out)}"
    yield from comparison.runs.notes
    if comparison.flaky:
        names = join_names(comparison.flaky, MAX_FLAKY_NAMES)
        yield f"flaky in A and in earlier runs: {len(comparison.flaky)} trials, such as {names}"
    if all(run.spent is not None for run in comparison.dollars):
        yield "dollars for a solved task: {1} against {0}".format(*map(_dollars_text, comparison.dollars))


def _finding_in_words(row: ArmDifference) -> str:
    """Return a measure, the finding on it, and its change with the interval, in words."""
    change = row.change
    if row.finding in ("equal", "not measured") or change.before is None or change.after is None:
        return f"{row.criterion} {row.finding}"
    if row.finding == "trade-off" or (row.is_counted and not change.within):  # only counted damage can be a trade-off
        return f"damage {row.finding} ({row.reason})"
    difference = text_of(BoundedNumber.of(row.difference, *_FORMATS[row.criterion]))
    share = f", {(change.after / change.before - 1):+.1%}" if not change.is_rate and change.before else ""
    return f"{row.criterion} {row.finding} ({difference}{share})"


def _power_text(row: ArmDifference) -> str:
    """Return in words what loss these pairs would have shown with 80% power, and how many units would show a loss of the
    margin."""
    change = row.change
    if change.shows is None:
        return ""
    points = " points" if change.is_rate else "%"
    base = 1.0 if change.is_rate else min(change.before or 0.0, change.after or 0.0)  # of which a loss is a share
    shows = f"; they would show a loss of {100 * change.shows / base:.1f}{points} four times in five" if base else ""
    if change.needed is None or not base:
        return shows
    return f"{shows}, and a loss of {100 * change.margin / base:.3g}{points} needs about {change.needed} units"


def compare_table(comparison: Comparison, by_arm: bool = False) -> Table:
    """Return a table with a row for each measure over all arms, and `by_arm` also for each arm. If the second run is worse,
    only the measures that are worse have a row. A difference is the second run's value minus the first run's."""

    def number(title: str, read: Callable[[ArmDifference], float | None]) -> TableColumn[FindingRow]:
        return TableColumn(title, lambda row: Number(read(row.by), *_FORMATS[row.by.criterion]))

    def needed(row: FindingRow) -> Cell:
        return "–" if row.by.finding != "undecided" else row.by.change.needed or NOTHING

    columns = (
        *(map(_of_arm, _columns(comparison)) if by_arm else ()),
        TableColumn[FindingRow]("Measure", lambda row: _TITLES.get(row.by.criterion, row.by.criterion)),
        number("A", lambda row: row.change.before),
        number("B", lambda row: row.change.after),
        TableColumn[FindingRow]("B − A, paired", lambda row: BoundedNumber.of(row.by.difference, *_FORMATS[row.by.criterion])),
        number("Margin", lambda row: row.change.margin),
        TableColumn[FindingRow]("Finding", lambda row: row.by.finding),
        TableColumn[FindingRow]("Gates", lambda row: "yes" if row.by.gates and row.arm is None else "no"),
        TableColumn[FindingRow]("Pairs", lambda row: row.by.change.pairs or 0),
        TableColumn[FindingRow]("Unpaired", lambda row: row.by.unpaired),
        number("Would show", lambda row: row.change.shows),
        TableColumn[FindingRow]("Needed", needed),
        TableColumn[FindingRow]("Reason", lambda row: row.by.reason),
    )
    rows = [FindingRow(None, row) for row in comparison.overall]
    if by_arm:
        rows += [FindingRow(arm, row) for arm in comparison.arms for row in arm.rows]
    if comparison.verdict == "worse":
        rows = [row for row in rows if row.by.finding in ("worse", "trade-off")]
    spreads = [by.difference for _, by in rows if isinstance(by.difference, Mean) and by.reason != EQUAL]
    notes = (
        "no worse: the bound of the loss is within the margin; worse: B is worse by more than the margin, and the exact p of "
        "the sign-flip test is below 5%; undecided: these pairs cannot decide it",
        *(
            ["only what gates decides; all other rows are corrected together by Holm's method"]
            if any(not row.by.gates or row.arm for row in rows)
            else []
        ),
        *([DAMAGE_NOTE] if any(row.by.criterion == "damage" for row in rows) else []),
        *limit_notes(spreads),
        *filter(None, [coverage_sentence(spreads)]),
    )
    title = f"{comparison.runs.second.name} (B) against {comparison.runs.first.name} (A)"
    return table_of("compare", title, columns, rows, notes)


def _columns(comparison: Comparison) -> tuple[TableColumn[ArmComparison], ...]:
    """Return the columns that name a row's arm."""
    first, second = comparison.runs.first, comparison.runs.second

    def models(arm: ArmComparison) -> str:
        return name_in_both(model_label(first, arm.first.model), model_label(second, arm.second.model))

    return (
        TableColumn("Scenario", lambda arm: arm.first.scenario),
        TableColumn("Model", models),
        TableColumn("Fault plan", lambda arm: arm.first.plan),
        TableColumn("Architecture", lambda arm: name_in_both(*arm.architectures)),
    )


def _of_arm(column: TableColumn[ArmComparison]) -> TableColumn[FindingRow]:
    """Return the column for rows that have an arm, or ALL_ARMS in place of its name."""
    return TableColumn(column.title, lambda row: ALL_ARMS if row.arm is None else column.cell(row.arm))


def cases_of(comparison: Comparison) -> Iterator[tuple[str, str, str, str]]:
    """Yield (subject, question, verdict, reason) for each measure of the gate, for the missing arms and pairs of B, and for
    each arm. An arm is beside the gate: if an arm is worse and the run is not, its verdict is undecided, and a person decides.
    """
    gate = f"{comparison.runs.second.name} against {comparison.runs.first.name}"
    for row in comparison.gated:
        power = _power_text(row) if row.finding == "undecided" else ""
        yield gate, f"{row.criterion} is no worse", row.finding, f"{_finding_in_words(row)}: {row.reason}{power}"
    if comparison.missing:
        yield gate, "all arms and pairs of A are there", "undecided", "; ".join(comparison.missing)
    for arm in comparison.arms:
        worse = [row for row in arm.rows if row.finding in ("worse", "trade-off")]
        if_worse = "worse" if comparison.verdict == "worse" else "undecided"
        name = " ".join(
            (
                arm.first.scenario,
                name_in_both(arm.first.model, arm.second.model),
                arm.first.plan,
                name_in_both(*arm.architectures),
            )
        )
        verdict, reasons = if_worse if worse else "equal", "; ".join(map(_finding_in_words, worse))
        yield name, "is no worse by itself (beside the gate)", verdict, reasons


def _dollars_text(spent: PerSolved) -> str:
    """Return the dollars for a solved task as text."""
    return NONE_SOLVED if spent.value is None else text_of(BoundedNumber(spent.value, spent.low, spent.high, COST.digits))


def name_in_both(first: str, second: str) -> str:
    """Return the name that something has in both runs; `first → second` if the names differ."""
    return second if first == second else f"{first} → {second}"


def as_json(comparison: Comparison) -> str:
    """Return the comparison as JSON. Numbers are in the units of the table; an unknown number is null."""
    return json.dumps(
        {
            "first": comparison.runs.first.name,
            "second": comparison.runs.second.name,
            "verdict": comparison.verdict,
            "sentences": list(sentences(comparison)),
            "gate": dict(comparison.gate),
            "missing": list(comparison.missing),
            "left_out": list(comparison.runs.left_out),
            "notes": list(comparison.runs.notes),
            "differ_in": list(comparison.factors),
            "flaky": list(comparison.flaky),
            "dollars_per_solved_before": comparison.dollars[0].value,
            "dollars_per_solved_after": comparison.dollars[1].value,
            "overall": list(map(_row_as_json, comparison.overall)),
            "rows": [{**_names_as_json(arm), **_row_as_json(row)} for arm in comparison.arms for row in arm.rows],
        },
        indent=2,
        allow_nan=False,
    )


def _names_as_json(arm: ArmComparison) -> dict[str, str]:
    """Return an arm's names. `model` and `architecture` are those of the second run. Those of the first run differ if two
    models or two architectures are compared."""
    return {
        "scenario": arm.first.scenario,
        "model": arm.second.model,
        "first_model": arm.first.model,
        "plan": arm.first.plan,
        "architecture": arm.architectures[1],
        "first_architecture": arm.architectures[0],
    }


def _row_as_json(row: ArmDifference) -> dict[str, Any]:
    """Return a finding with its numbers as JSON."""
    return {
        "measure": row.criterion,
        "gates": row.gates,
        "before": row.change.before,
        "after": row.change.after,
        "difference": value_of(row.difference),
        "low": row.difference.low,
        "high": row.difference.high,
        "margin": row.change.margin,
        "pairs": row.change.pairs,
        "unpaired": row.unpaired,
        "p": row.change.p,
        "verdict": row.finding,
        "reason": row.reason,
        "would_show": row.change.shows,
        "needed": row.change.needed,
    }
