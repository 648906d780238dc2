"""Detectability: how a trial ends if a fault is easy to see, and if it is a plausible lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE, share_of_rows
from bench.read.analysis.frames import Run
from bench.read.analysis.plans import single_faults
from bench.read.analysis.statistics import Share
from bench.read.render.cells import Rate
from bench.read.render.drawing import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, Look, Picture, finish, legend_of, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.plan_entries import FaultEntry

from ..by_model import by_model

ENDS = ("silently corrupted", "wrong otherwise", "gave up", "recovered", "did no harm")
"""The ends of a trial in which the fault was delivered. Each trial has one end.

silently corrupted   the answer is wrong, and the fault passed every verification
wrong otherwise      the answer is wrong, though the fault was noticed, or is not in the answer
gave up              the attempts were used up
recovered            the task was solved, and the answer does not depend on what the fault had struck
did no harm          the task was solved by an answer that depends on it, unnoticed
"""


@dataclass(frozen=True)
class Detection:
    """Shares of the trials in which the fault was delivered and that did not end in an error. `noticed`: the verifier rejected
    what carried the fault. `ends`: by ENDS; they add up to 1."""

    scenario: str
    model: str
    architecture: str
    plan: str
    fault: str
    noticed: Share
    ends: Mapping[str, Share]


def detectability(run: Run) -> list[Detection]:
    """Return the detections by scenario, model, fault plan and architecture, in the config's order.

    Raises ResultsError if no plan with a single fault was run.
    """
    faults = single_faults(run)
    if not faults:
        raise ResultsError("needs fault plans with one fault each")
    detections = []
    struck = run.trials[(run.trials["faults_delivered"] > 0) & ~run.trials["outcome"].isin(UNUSABLE)]
    passed = set(run.faults.loc[run.faults["finish"] == "undetected", "trial"])
    struck = struck.assign(passed=struck["trial"].isin(passed))
    for (scenario, model), trials in struck.groupby(["scenario", "model"], sort=False):
        for plan, fault in faults.items():
            for architecture in run.names("architecture"):
                of_arm = trials[(trials["plan"] == plan) & (trials["architecture"] == architecture)]
                detections.append(_detection(str(scenario), str(model), architecture, plan, named(fault), of_arm))
    return detections


def named(fault: FaultEntry) -> str:
    """Return a fault in a few words, such as `missing_field at output, attempts 1, 2, 3`."""
    return f"{fault.effect} at {fault.point}, {_when(fault)}"


def _when(fault: FaultEntry) -> str:
    attempts = fault.attempts
    if attempts == "every":
        return "every attempt"
    numbers = ", ".join(map(str, attempts))
    return f"attempt{'s' if len(attempts) > 1 else ''} {numbers}" if attempts else f"chance {fault.probability:g}"


def _detection(scenario: str, model: str, architecture: str, plan: str, fault: str, trials: pd.DataFrame) -> Detection:
    ends = [_end(*row) for row in zip(trials["outcome"], trials["passed"], trials["silent_corruption"], strict=True)]
    shares = {end: share_of_rows(trials, [other == end for other in ends]) for end in ENDS}
    noticed = share_of_rows(trials, trials["faults_detected"] > 0)
    return Detection(scenario, model, architecture, plan, fault, noticed, shares)


def _end(outcome: str, passed: bool, silent: bool) -> str:
    """Return the end of a trial. `passed`: the fault is in the answer, unnoticed."""
    if outcome == "solved":
        return "did no harm" if passed else "recovered"
    if outcome == "gave_up":
        return "gave up"
    return "silently corrupted" if silent else "wrong otherwise"


# Tables and figures

LOOKS: Mapping[str, Look] = dict(
    zip(
        ENDS,
        (Look(VERMILION, "xxxx"), Look(PURPLE, "||||"), Look(ORANGE, "////"), Look(GREEN), Look(BLUE, "----")),
        strict=True,
    )
)
NOTES = (
    "of the trials in which the fault was delivered and that did not end in an error; k/N with Wilson's 95% interval",
    "silently corrupted: the answer is wrong, and the fault passed every verification; did no harm: it passed, and the answer "
    "is right all the same",
    "noticed: the verifier rejected the very output that was struck; a trial may also recover because another output was "
    "rejected, and the struck one made again with it",
    "a simulated model's validating subtask approves of everything, so what only judgment could find is never found on it",
)


def tables(run: Run) -> Iterator[Table]:
    def ended(end: str) -> TableColumn[Detection]:
        return TableColumn(end.capitalize(), lambda detection: Rate(detection.ends[end]))

    columns = (
        TableColumn[Detection]("Scenario", lambda detection: detection.scenario),
        TableColumn[Detection]("Model", lambda detection: model_label(run, detection.model)),
        TableColumn[Detection]("Fault plan", lambda detection: detection.plan),
        TableColumn[Detection]("Fault", lambda detection: detection.fault),
        TableColumn[Detection]("Architecture", lambda detection: detection.architecture),
        TableColumn[Detection]("Noticed", lambda detection: Rate(detection.noticed)),
        *map(ended, ENDS),
    )
    title = "Detectability: what becomes of a fault, from easily seen to plausible"
    yield table_of("study-detectability", title, columns, detectability(run), NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: a row of panels for each scenario, with a panel for each architecture."""
    for model, detections in by_model(run, detectability(run)):
        yield _figure(run, model, detections)


def _figure(run: Run, model: str, detections: Sequence[Detection]) -> Picture:
    arms = dict.fromkeys((detection.scenario, detection.architecture) for detection in detections)
    across = len({architecture for _, architecture in arms})
    plans = list(dict.fromkeys(detection.plan for detection in detections))
    figure, axes = panels(len(arms), across, 3.9, 0.9 + 0.24 * len(plans))
    for place, ((scenario, architecture), ax) in enumerate(zip(arms, axes, strict=True)):
        by_plan = {
            detection.plan: detection
            for detection in detections
            if (detection.scenario, detection.architecture) == (scenario, architecture)
        }
        _bars(ax, [by_plan[plan] for plan in plans if plan in by_plan])
        ax.set_title(f"{scenario}\n{architecture}, {_trials(by_plan.values())}")
        ax.set_yticks(range(len(plans)), [plan.replace("_", " ") for plan in plans] if not place % across else [])
        ax.set_ylim(len(plans) - 0.4, -0.6)
    legend_of(figure, LOOKS)
    title = f"Detectability: what becomes of a fault, from easily seen to plausible, {model_label(run, model)}"
    caption = (
        "Bars are shares of the trials in which the fault was delivered. The whisker is the 95% interval of the share that is "
        "silently corrupted."
    )
    return finish(figure, slug("study", "detectability", model), title, f"{title}. {caption}")


def _bars(ax: Axes, detections: Sequence[Detection]) -> None:
    lefts = [0.0] * len(detections)
    for end, look in LOOKS.items():
        widths = [detection.ends[end].rate or 0.0 for detection in detections]
        ax.barh(
            range(len(detections)), widths, 0.7, lefts, color=look.colour, hatch=look.hatch, edgecolor="white", linewidth=0.4
        )
        lefts = [left + width for left, width in zip(lefts, widths, strict=True)]
    for place, detection in enumerate(detections):
        silent = detection.ends[ENDS[0]]
        if silent.low is not None and silent.high is not None:
            ax.plot([silent.low, silent.high], [place, place], color=BLACK, lw=1, marker="|", ms=5)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of trials")


def _trials(detections: Iterable[Detection]) -> str:
    numbers = sorted({detection.noticed.n for detection in detections})
    shown = f"N = {numbers[0]}" if len(numbers) == 1 else f"N = {numbers[0]} to {numbers[-1]}"
    return shown.replace(" ", "\N{NO-BREAK SPACE}")
