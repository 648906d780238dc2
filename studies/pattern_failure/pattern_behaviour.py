"""What patterns do under failures: how often they try a call again that is never answered, and what they damage if they take
their effects back in the order in which they made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean
from bench.record.config import FAULT_FREE
from bench.worlds.read.beyond_control import beyond_control

from ..rises import main_effect
from ..variants import differing_in, with_remedies

RETRIED = "tool_retries"
PAIRS = ["instance", "repetition", "architecture"]
ORDER_NOTES = ("effects of a trial under the same failure, paired by instance; 95% intervals are of resampled instances",)
RETRY_NOTES = (
    "calls of a trial that were made because the one before of the same effect had failed, less those of the same trial "
    "without the failure; 95% intervals are of resampled instances, and there is none where all instances are the same",
)


@dataclass(frozen=True)
class Retries:
    """How often one pattern tries again a call that no tool ever answers: tool retries of a trial beyond its control's."""

    scenario: str
    model: str
    failure: str
    pattern: str
    bare: BootstrapMean
    remedied: BootstrapMean


def retries(run: Run) -> list[Retries]:
    """Return the retries by scenario, model, failure and pattern, for failures that never wear off."""
    lasting = [plan for plan in run.names("plan") if any(fault.attempts == "every" for fault in run.config.faults_of(plan))]
    pairs = beyond_control(run, [RETRIED])
    struck = pairs[pairs["faults_delivered"] > 0]
    return [
        Retries(
            str(scenario), str(model), failure, pattern, *(_mean_retries(group, failure, name) for name in (pattern, remedied))
        )
        for (scenario, model), group in struck.groupby(["scenario", "model"], sort=False, observed=True)
        for failure in lasting
        for pattern, remedied in with_remedies(run).items()
    ]


def _mean_retries(pairs: pd.DataFrame, failure: str, architecture: str) -> BootstrapMean:
    of_arm = pairs[(pairs["plan"] == failure) & (pairs["architecture"] == architecture)]
    means = of_arm.groupby("instance", observed=True)[f"beyond_{RETRIED}"].mean()
    return bootstrap_mean({str(instance): float(value) for instance, value in means.items()})


@dataclass(frozen=True)
class UndoneAsDone:
    """A form that takes its effects back in the order in which they were made, less the same form that does so in reverse.

    uncompensated, lost   effects of a trial, paired by instance
    """

    scenario: str
    model: str
    failure: str
    form: str
    uncompensated: BootstrapMean
    lost: BootstrapMean


def undone_as_done(run: Run) -> list[UndoneAsDone]:
    """Return the differences by scenario, model, failure and form, for forms that the run has in both orders."""
    twins = differing_in(run, "undo_order", lambda order: order == "as_done", None)
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE) & (run.trials["plan"] != FAULT_FREE)]
    return [
        UndoneAsDone(
            str(scenario),
            str(model),
            str(failure),
            name,
            *(main_effect(group, f"damage_{kind}", "architecture", name, twin, PAIRS) for kind in ("uncompensated", "lost")),
        )
        for (scenario, model, failure), group in usable.groupby(["scenario", "model", "plan"], sort=False, observed=True)
        for name, twin in twins.items()
    ]


def tables_of_behaviour(run: Run, file_name: Callable[[str], str]) -> Iterator[Table]:
    """Yield a table of retries and a table of orders, each only if the run has any. `file_name` names the table's file."""
    if tried := retries(run):
        columns = (
            TableColumn[Retries]("Scenario", lambda row: row.scenario),
            TableColumn[Retries]("Model", lambda row: model_label(run, row.model)),
            TableColumn[Retries]("Failure", lambda row: row.failure.replace("_", " ")),
            TableColumn[Retries]("Pattern", lambda row: row.pattern.replace("_", " ")),
            TableColumn[Retries]("Retries, bare", lambda row: row.bare.cell(1)),
            TableColumn[Retries]("Retries, with remedies", lambda row: row.remedied.cell(1)),
            TableColumn[Retries]("Instances", lambda row: row.bare.instances),
        )
        title = "How often a pattern tries again a call that is never answered"
        yield table_of(file_name("retries"), title, columns, tried, RETRY_NOTES)
    if undone := undone_as_done(run):
        orders = (
            TableColumn[UndoneAsDone]("Scenario", lambda row: row.scenario),
            TableColumn[UndoneAsDone]("Model", lambda row: model_label(run, row.model)),
            TableColumn[UndoneAsDone]("Failure", lambda row: row.failure.replace("_", " ")),
            TableColumn[UndoneAsDone]("Form", lambda row: row.form.replace("_", " ")),
            TableColumn[UndoneAsDone]("Uncompensated more", lambda row: row.uncompensated.cell()),
            TableColumn[UndoneAsDone]("Lost more", lambda row: row.lost.cell()),
            TableColumn[UndoneAsDone]("Instances", lambda row: row.lost.instances),
        )
        title = "Undone in the order of doing, less the same form undone in reverse"
        yield table_of(file_name("order"), title, orders, undone, ORDER_NOTES)
