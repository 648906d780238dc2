"""How models and arms are called wherever numbers of theirs are shown: a simulated one is marked, always, and a recorded one
names its recording."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bench.analysis.arms import Arm, Arms, Condition
from bench.analysis.frames import Run
from bench.answers.formats import DEFAULT
from bench.render.table import Cell, TableColumn


def recording_of(run: Run, model: str) -> str | None:
    """The name of the run that this model's replies were recorded in, where they were replayed."""
    recording = run.parameters_of(model).recording
    return recording.name if recording else None


def declared_concurrency(run: Run, model: str) -> int | None:
    """How many calls at a time the replay of this model was declared to take; None where it took as many as its recording."""
    recording = run.parameters_of(model).recording
    return recording.concurrency if recording else None


def taken_over_from(run: Run, model: str) -> list[str]:
    """The names of the earlier runs whose replies this model took over, with their seconds."""
    return [earlier.name for earlier in run.parameters_of(model).cache_from]


def format_of(run: Run, model: str) -> str:
    """In which form this model was asked to answer."""
    return run.parameters_of(model).answer_format


def model_label(run: Run, model: str) -> str:
    asked = format_of(run, model)
    apart = "" if asked == DEFAULT or asked in model else f", {asked}"
    simulated = f"{apart}{' (SIMULATED)' if run.is_simulated(model) else ''}"
    recording = recording_of(run, model)
    if recording is None:
        return f"{model}{simulated}"
    by_itself = model in recording  # a run is named after its models, unless someone named it otherwise
    declared = declared_concurrency(run, model)
    at_a_time = f", {declared} calls at a time" if declared else ""
    if by_itself:
        return f"recorded:{recording}{at_a_time}{simulated}"
    return f"{model}{simulated} (recorded:{recording}{at_a_time})"


ARM = ("Scenario", "Model", "Fault plan", "Architecture")
"""The columns of a table with a row for each arm that say which."""


def arm_cells(run: Run, arm: Arm) -> tuple[Cell, ...]:
    """Under ARM."""
    return tuple(column.cell(arm) for column in arm_columns(run))


def arm_columns(run: Run) -> tuple[TableColumn[Arm], ...]:
    """The columns ARM, where the rows are arms."""
    return (
        TableColumn("Scenario", lambda arm: arm.condition.scenario),
        TableColumn("Model", lambda arm: model_label(run, arm.condition.model)),
        TableColumn("Fault plan", lambda arm: arm.condition.plan),
        TableColumn("Architecture", lambda arm: arm.architecture),
    )


def each_arm(arms: Arms) -> Iterator[Arm]:
    return (arm for found in arms.values() for arm in found.values())


def condition_label(run: Run, condition: Condition) -> str:
    return f"{condition.scenario}, {model_label(run, condition.model)}, fault plan {condition.plan}"


def trials_in(arms: Iterable[Arm]) -> str:
    """How many trials each mean is of."""
    numbers = sorted({len(arm.usable) for arm in arms})
    shown = f"N = {numbers[0]}" if len(numbers) == 1 else f"N = {numbers[0]} to {numbers[-1]}"
    return shown.replace(" ", "\N{NO-BREAK SPACE}")


def slug(*names: str) -> str:
    """A file name out of names; others than letters, digits, dots, underscores and dashes become dashes. A long name is cut."""
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", name)[:60].strip("-.") or "x" for name in names)
