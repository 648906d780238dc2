"""Event log or state machine: does it matter whether an agent's source of truth is a log of events or a durable row?

Both are compared on the same instance under the same failures. The pack sends the notice of its first event twice, and a bare
consumer of a log begins again at the second notice. Plans in which that notice is missed compare the two without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.render.cells import Number
from bench.read.render.drawing import BLUE, GREY, PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean
from bench.record.damage import DAMAGES

from ..by_model import by_model
from ..rises import main_effect

LOG, ROW = "event_driven", "state_machine"
FORMS = ("bare", "with remedies")
PAIRS = ["instance", "repetition", "pattern"]


@dataclass(frozen=True)
class LogOrRow:
    """The two patterns in one form under one fault plan.

    log, row      damaged effects of a trial, mean over instances
    difference    mean of the log minus mean of the row, paired by instance
    """

    scenario: str
    model: str
    plan: str
    form: str
    log: float | None
    row: float | None
    difference: BootstrapMean


def comparisons(run: Run) -> list[LogOrRow]:
    """Return the comparisons by scenario, model, fault plan and form. Raise ResultsError if no form has both patterns."""
    trials = _trials(run)
    groups = trials.groupby(["scenario", "model", "plan", "form"], sort=False, observed=True)
    compared = [
        LogOrRow(
            scenario=str(scenario),
            model=str(model),
            plan=str(plan),
            form=str(form),
            log=_mean(group[group["pattern"] == LOG]),
            row=_mean(group[group["pattern"] == ROW]),
            difference=main_effect(group, "damage", "pattern", LOG, ROW, PAIRS),
        )
        for (scenario, model, plan, form), group in groups
        if {LOG, ROW} <= set(group["pattern"])
    ]
    if not compared:
        raise ResultsError(f"needs trials of '{LOG}' and '{ROW}' in the same form")
    return compared


def _trials(run: Run) -> pd.DataFrame:
    """Return the trials of the two patterns, with columns for pattern, form and damaged effects."""
    remedied = {name: entry.base for name, entry in run.config.architecture.items() if entry.remedies}
    trials = run.trials[~run.trials["outcome"].isin(UNUSABLE)]
    names = trials["architecture"].astype(str)
    trials = trials.assign(
        pattern=names.map(lambda name: remedied.get(name, name)),
        form=names.map(lambda name: FORMS[name in remedied]),
        damage=trials[[f"damage_{kind}" for kind in DAMAGES]].sum(axis=1).astype(float),
    )
    return trials[trials["pattern"].isin((LOG, ROW))]


def _mean(trials: pd.DataFrame) -> float | None:
    means = trials.groupby("instance", observed=True)["damage"].mean()
    return bootstrap_mean({str(instance): float(value) for instance, value in means.items()}).value


# Tables and figures

NOTES = (
    "damage: effects of a trial that were lost, doubled, orphaned, unauthorised, uncompensated, stale or late",
    "more with the log: the damage of the event log less that of the state machine, paired by instance",
    "95% intervals are of resampled instances; where all instances differ by the same there is none",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[LogOrRow]("Scenario", lambda pair: pair.scenario),
        TableColumn[LogOrRow]("Model", lambda pair: model_label(run, pair.model)),
        TableColumn[LogOrRow]("Fault plan", lambda pair: pair.plan.replace("_", " ")),
        TableColumn[LogOrRow]("Form", lambda pair: pair.form),
        TableColumn[LogOrRow]("Event log", lambda pair: "–" if pair.log is None else Number(pair.log, 2)),
        TableColumn[LogOrRow]("State machine", lambda pair: "–" if pair.row is None else Number(pair.row, 2)),
        TableColumn[LogOrRow]("More with the log", lambda pair: pair.difference.cell()),
        TableColumn[LogOrRow]("Instances", lambda pair: pair.difference.instances),
    )
    title = "Event log or state machine: damaged effects of a trial"
    yield table_of("study-log-or-row", title, columns, comparisons(run), NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model, with a panel for each form."""
    for model, of_model in by_model(run, comparisons(run)):
        figure, axes = panels(len(FORMS), 2, 5.2, 1.2 + 0.16 * len(of_model))
        for form, ax in zip(FORMS, axes, strict=True):
            _panel(ax, form, [each for each in of_model if each.form == form])
        title = f"Event log or state machine: which is damaged more, {model_label(run, model)}"
        caption = (
            "Damaged effects of a trial with the log, less those with the state machine. 95% intervals cluster by instance."
        )
        yield finish(figure, slug("study", "log-or-row", model), title, f"{title}. {caption}")


def _panel(ax: Axes, form: str, shown: list[LogOrRow]) -> None:
    for place, each in enumerate(shown):
        value, low, high = each.difference.value, each.difference.low, each.difference.high
        if value is not None:
            errors = None if low is None or high is None else [[value - low], [high - value]]
            ax.errorbar([value], [place], xerr=errors, fmt="o", ms=4, color=BLUE, capsize=2, lw=1)
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(range(len(shown)), [each.plan.replace("_", " ") for each in shown])
    ax.invert_yaxis()
    ax.set_title(form)
    ax.set_xlabel("more damaged effects with the log")
    ax.grid(axis="x", color=PALE, lw=0.6)
