"""A model exchanged in mid-horizon: does an event log drift with the model's version at its replay, and a durable row not?

The agent dies, and its next process asks another model. An effect has *drifted* if the same step calls the same tool for the
same business key in both processes, with other arguments. A model that is asked again differs from itself as well, so two
controls die in the same way and keep the older or the newer model. *Beyond* is the drift with the exchanged model minus the
mean of both controls. It is paired by instance, and can be below zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.render.drawing import BLUE, GREY, ORANGE, PALE, Picture, finish, legend_of_points, panels
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean
from bench.record.damage import DAMAGES
from bench.record.events import Committed, Event
from bench.record.reading import read_records
from bench.record.record import TrialRecord, latest
from bench.record.world_events import ProcessDied, Stepped, ToolCalled

LOG, ROW = "event_driven", "state_machine"
PAIRS = ["instance", "repetition"]


@dataclass(frozen=True)
class ExchangedModels:
    """The `older` model, which works until the agent dies, the `newer` one, and the model name under which one follows the
    other."""

    exchanged: str
    older: str
    newer: str


@dataclass(frozen=True)
class Drift:
    """One pattern in one form, under one death. All are means of a trial over instances.

    decided   judgments that the first process decided and the second asked again, with the exchanged model
    drifted   effects that drifted, with the exchanged model
    kept      effects that drifted, mean of both controls
    beyond    `drifted` minus `kept`
    damage    damaged effects with the exchanged model, minus the mean of both controls
    """

    plan: str
    pattern: str
    form: str
    decided: BootstrapMean
    drifted: BootstrapMean
    kept: BootstrapMean
    beyond: BootstrapMean
    damage: BootstrapMean


@dataclass(frozen=True)
class LogLessRow:
    """How much more drifts under the log than under the row in one form: with the exchanged model, and beyond the controls."""

    plan: str
    form: str
    drifted: BootstrapMean
    beyond: BootstrapMean


def models_of(run: Run) -> ExchangedModels:
    """Return the models. Raise ResultsError if the run lacks an exchanged model, or one of its two models as a control."""
    for name in run.names("model"):
        shown = run.parameters_of(name)
        if shown.after_crash and {shown.default, shown.after_crash} <= set(run.names("model")) and run.folder:
            return ExchangedModels(name, shown.default, shown.after_crash)
    raise ResultsError("needs a model with `after_crash` in a recorded run, and both models that it passes requests on to")


def drifts(run: Run) -> list[Drift]:
    """Return the drifts by fault plan, pattern and form, in the config's order. Raise ResultsError as `models_of` does."""
    trials = _trials(run)
    return [
        Drift(str(plan), pattern, form, *_of(rows))
        for plan in run.names("plan")
        for pattern, form, name in _forms(run)
        if len(rows := _by_model(trials[(trials["plan"] == plan) & (trials["architecture"] == name)]))
    ]


def log_less_row(run: Run) -> list[LogLessRow]:
    """Return the differences by fault plan and form. Raise ResultsError as `models_of` does."""
    trials = _trials(run)
    names = {(pattern, form): name for pattern, form, name in _forms(run)}
    rows: list[LogLessRow] = []
    for plan in run.names("plan"):
        of_plan = trials[trials["plan"] == plan]
        for form in dict.fromkeys(form for _, form in names):
            both = [names.get((pattern, form)) for pattern in (LOG, ROW)]
            if all(both):
                log, row = (_by_model(of_plan[of_plan["architecture"] == name]) for name in both)
                less = (log - row).dropna()
                rows.append(LogLessRow(str(plan), form, _mean(less["drifted", "exchanged"]), _mean(_beyond(less, "drifted"))))
    return rows


def _forms(run: Run) -> list[tuple[str, str, str]]:
    """Return (pattern, form, architecture) of the run's architectures."""
    entries = run.config.architecture
    return [
        (run.config.base(name), _form(name in entries and entries[name].remedies, name in entries and entries[name].pins), name)
        for name in run.names("architecture")
    ]


def _form(remedied: bool, pinned: bool) -> str:
    return "with remedies" if remedied else "pinned" if pinned else "bare"


def _trials(run: Run) -> pd.DataFrame:
    """Return the trials whose agent died, with the judgments that were asked again and the effects that drifted."""
    models = models_of(run)
    roles = {models.exchanged: "exchanged", models.older: "older", models.newer: "newer"}
    trials = run.trials[~run.trials["outcome"].isin(UNUSABLE) & (run.trials["lives"] > 1)]
    assert run.folder is not None  # models_of has checked it
    counted = replayed(run.folder)
    return trials.assign(
        role=trials["model"].astype(str).map(roles),
        decided=[float(counted[trial][0]) for trial in trials["trial"]],
        drifted=[float(counted[trial][1]) for trial in trials["trial"]],
        damage=trials[[f"damage_{kind}" for kind in DAMAGES]].sum(axis=1).astype(float),
    )


def replayed(folder: Path) -> Mapping[str, tuple[int, int]]:
    """Return trial -> (judgments that the first process decided and the second asked again, effects that drifted)."""
    records = latest(record for record in read_records(folder) if isinstance(record, TrialRecord))
    return {record.id: replayed_in(record.events) for record in records}


def replayed_in(events: Sequence[Event]) -> tuple[int, int]:
    """Count the judgments that were asked again and the effects that drifted in one trial.

    Only the first two processes count: later processes ask the newer model again.
    """
    decided: list[set[tuple[str, str]]] = [set()]
    called: list[dict[tuple[str, str, str], str]] = [{}]
    step = ""
    for event in events:
        if isinstance(event, ProcessDied):
            decided, called = [*decided, set()], [*called, {}]
        elif isinstance(event, Stepped):
            step = event.step
        elif isinstance(event, Committed):
            decided[-1].add((step, event.subtask))
        elif isinstance(event, ToolCalled) and event.access != "read":
            called[-1][event.step, event.tool, event.effect] = event.arguments
    if len(called) < 2:
        return 0, 0
    before, after = called[0], called[1]
    return len(decided[0] & decided[1]), sum(before[call] != after[call] for call in before.keys() & after.keys())


def _by_model(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each instance and repetition that died under all three models; the columns are (measure, role)."""
    wide = trials.pivot_table(index=PAIRS, columns="role", values=["decided", "drifted", "damage"], observed=True)
    return wide.dropna()


def _of(rows: pd.DataFrame) -> tuple[BootstrapMean, ...]:
    measured = (rows["decided", "exchanged"], rows["drifted", "exchanged"], _kept(rows, "drifted"))
    return (*map(_mean, measured), _mean(_beyond(rows, "drifted")), _mean(_beyond(rows, "damage")))


def _kept(rows: pd.DataFrame, measure: str) -> pd.Series[float]:
    return (rows[measure, "older"] + rows[measure, "newer"]) / 2


def _beyond(rows: pd.DataFrame, measure: str) -> pd.Series[float]:
    return rows[measure, "exchanged"] - _kept(rows, measure)


def _mean(values: pd.Series[float]) -> BootstrapMean:
    by_instance = values.groupby(level="instance", observed=True).mean()
    return bootstrap_mean({str(instance): float(value) for instance, value in by_instance.items()})


# Tables and figures

NOTES = (
    "asked again: judgments that were decided before the death and asked again after it",
    "drifted: effects that the same step made before and after the death for the same business key, with other arguments",
    "kept: the mean of two controls that die alike and keep the older or the newer model; beyond: exchanged less kept",
    "damage beyond: damaged effects of a trial with the exchange, less the mean of both controls",
    "pinned: what was decided of a state stands, with the version of the model that decided it; nothing else is remedied",
    "means of a trial; 95% intervals are of resampled instances; where all instances are the same there is none",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[Drift]("The agent dies", lambda row: _words(row.plan)),
        TableColumn[Drift]("Pattern", lambda row: _words(row.pattern)),
        TableColumn[Drift]("Form", lambda row: row.form),
        TableColumn[Drift]("Asked again", lambda row: row.decided.cell()),
        TableColumn[Drift]("Drifted, exchanged", lambda row: row.drifted.cell()),
        TableColumn[Drift]("Drifted, kept", lambda row: row.kept.cell()),
        TableColumn[Drift]("Beyond", lambda row: row.beyond.cell()),
        TableColumn[Drift]("Damage beyond", lambda row: row.damage.cell()),
        TableColumn[Drift]("Instances", lambda row: row.drifted.instances),
    )
    yield table_of("study-model-exchange", f"Drift at a replay, {_shown(run)}", columns, drifts(run), NOTES)
    less = (
        TableColumn[LogLessRow]("The agent dies", lambda row: _words(row.plan)),
        TableColumn[LogLessRow]("Form", lambda row: row.form),
        TableColumn[LogLessRow]("Drifted", lambda row: row.drifted.cell()),
        TableColumn[LogLessRow]("Beyond", lambda row: row.beyond.cell()),
        TableColumn[LogLessRow]("Instances", lambda row: row.drifted.instances),
    )
    title = f"What drifts more under the log than under the row, {_shown(run)}"
    yield table_of("study-model-exchange-less", title, less, log_less_row(run), NOTES[1:3])


def _shown(run: Run) -> str:
    models = models_of(run)
    return f"{model_label(run, models.older)} exchanged by {model_label(run, models.newer)}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure with a panel for each death."""
    measured = drifts(run)
    plans = list(dict.fromkeys(row.plan for row in measured))
    figure, axes = panels(len(plans), 2, 5.2, 1.0 + 0.3 * len(_forms(run)))
    for plan, ax in zip(plans, axes, strict=True):
        _panel(ax, plan, [row for row in measured if row.plan == plan])
    legend_of_points(figure, {"the model is exchanged": ("o", BLUE), "the model is kept": ("s", ORANGE)})
    title = f"How much of what was decided drifts at a replay, {_shown(run)}"
    caption = (
        "Each point counts the effects of a trial that a step made again with other arguments after the agent's death. The "
        "95% intervals cluster by instance."
    )
    yield finish(figure, "study-model-exchange", title, f"{title}. {caption}")


def _panel(ax: Axes, plan: str, shown: Sequence[Drift]) -> None:
    for place, row in enumerate(shown):
        for mean, marker, colour, above in ((row.drifted, "o", BLUE, -0.13), (row.kept, "s", ORANGE, 0.13)):
            if mean.value is not None:
                bounded = mean.low is not None and mean.high is not None
                errors = [[mean.value - mean.low], [mean.high - mean.value]] if bounded else None  # type: ignore[operator]
                ax.errorbar([mean.value], [place + above], xerr=errors, fmt=marker, ms=4, color=colour, capsize=2, lw=1)
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(range(len(shown)), [f"{_words(row.pattern)}, {row.form}" for row in shown])
    ax.invert_yaxis()
    ax.set_title(_words(plan))
    ax.set_xlabel("effects that drifted")
    ax.grid(axis="x", color=PALE, lw=0.6)
