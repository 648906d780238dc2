"""Tables of tokens and cost: cost per solved task, the ledger, the faults' receipts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pandas as pd

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import SPENT, Metric
from bench.read.analysis.per_solved import spent_per_solved
from bench.read.render.cells import Number, Spent
from bench.read.render.labels import arm_columns, each_arm
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.ledger import ACCOUNTS


def spent_by_solved(run: Run, arms: Arms) -> Table:
    """Return a table of what each arm spent in all its trials, divided by its solved trials."""

    def spent(metric: Metric) -> TableColumn[Arm]:
        return TableColumn(
            f"{metric.title} per solved", lambda arm: Spent(spent_per_solved(arm.trials, metric.name), metric.digits)
        )

    columns = (
        *arm_columns(run),
        TableColumn("Trials", lambda arm: len(arm.graded)),
        TableColumn("Solved", lambda arm: arm.count("solved")),
        *map(spent, SPENT),
    )
    notes = (
        "everything that the arm's trials spent, including errors and failures, divided by the number of solved trials, with "
        "its 95% interval over the trials; if every trial was solved, the interval is too narrow",
        "cost: the provider's token counts (ours if it sent none) at the config's prices; unknown if the config has no "
        "prices; a reply that several arms used is charged to each of them",
    )
    return table_of("per_solved", "Spent per solved task", columns, each_arm(arms), notes)


FINISH_TITLES = {
    "recovered": "Recovered",
    "restarted": "Restarted",
    "answered_wrong": "Answered wrong",
    "answered": "Answered, not graded",
    "gave_up": "Gave up",
    "undetected": "Undetected",
    "error": "In an error",
}


def ledger(run: Run, arms: Arms) -> Table:
    """Return a table of the tokens of each account, summed over the trials of an arm. Trials that ended in an error are
    included, because their tokens were paid too."""
    columns = (
        *arm_columns(run),
        TableColumn("Trials", lambda arm: len(arm.trials)),
        TableColumn("Tokens", lambda arm: _sum(arm, "tokens")),
        *(column for account in ACCOUNTS for column in _account_columns(account)),
    )
    notes = ("sums over all trials of the arm, including those that ended in an error",)
    return table_of("ledger", "Ledger: every token in one account", columns, each_arm(arms), notes)


def _account_columns(name: str) -> tuple[TableColumn[Arm], TableColumn[Arm]]:
    """Return two columns: the tokens in an account, and their share of all tokens."""

    def share(arm: Arm) -> Number:
        total = _sum(arm, "tokens")
        return Number(_sum(arm, name) / total if total else None, 1, percent=True)

    words = name.replace("_", " ")
    return TableColumn(words, lambda arm: _sum(arm, name)), TableColumn(f"{words} %", share)


def _sum(arm: Arm, column: str) -> int:
    """Return the sum of a column over all trials of an arm."""
    return int(arm.trials[column].sum())


def fault_receipts(run: Run, arms: Arms) -> Table:
    """Return a table of what became of the planned faults, for each arm that had any."""

    @cache
    def faults(arm: Arm) -> pd.DataFrame:
        return run.faults[run.faults["trial"].isin(set(arm.trials["trial"]))]

    def reached(stage: str) -> Callable[[Arm], int]:
        return lambda arm: int(faults(arm)[stage].sum())

    def equal_to(column: str, value: str) -> Callable[[Arm], int]:
        return lambda arm: int((faults(arm)[column] == value).sum())

    delivered = reached("delivered")
    finishes = [finish for finish in FINISH_TITLES if finish in {"recovered", *run.faults["finish"]}]
    columns = (
        *arm_columns(run),
        TableColumn("Trials", lambda arm: len(arm.trials)),
        TableColumn("Calls", lambda arm: _sum(arm, "calls")),
        TableColumn("Planned", reached("planned")),
        TableColumn("Delivered", delivered),
        TableColumn("Not applicable", reached("not_applicable")),
        TableColumn("Detected", reached("detected")),
        TableColumn("Effective", equal_to("impact", "effective")),
        TableColumn("Masked", equal_to("impact", "masked")),
        TableColumn("Undetermined", equal_to("impact", "undetermined")),
        *(TableColumn(FINISH_TITLES[finish], equal_to("finish", finish)) for finish in finishes),
        TableColumn("Delivered per call", lambda arm: _ratio(delivered(arm), _sum(arm, "calls"))),
        TableColumn("Delivered per task", lambda arm: _ratio(delivered(arm), len(arm.trials))),
    )
    notes = (
        "every planned fault was either delivered or not applicable: there was nothing that it could strike",
        "effective: without the fault, what it struck would have been accepted; masked: it would have been rejected anyway; "
        "undetermined: neither the trial nor its control shows which",
        "recovered: the trial's answer is right (in a world: its conditions hold at the end); restarted: an agent continued "
        "after a kill, and its answer is not right; undetected: nobody noticed the fault, and the answer uses what it struck",
        "a call that does several subtasks' work is exposed to the faults of each",
    )
    struck = (arm for arm in each_arm(arms) if not faults(arm).empty)
    return table_of("receipts", "Faults and their receipts", columns, struck, notes)


def _ratio(count: int, total: int) -> Number:
    """Return a count divided by another number, as a cell; unknown if that number is 0."""
    return Number(count / total if total else None, 3)


PARTS = (
    TablePart("per_solved", lambda of: spent_by_solved(of.run, of.arms), "cost"),
    TablePart("ledger", lambda of: ledger(of.run, of.arms), "ledger"),
    TablePart("receipts", lambda of: fault_receipts(of.run, of.arms), "faults"),
)
