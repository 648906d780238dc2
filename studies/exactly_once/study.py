"""Exactly once: what one crash does to the effects of an agent, at each of the four points of an effect.

The unit is a trial in which the agent died once. Damage counts if it happened more often than in the control, the same instance
and repetition without a crash: a pattern that compensates nothing is not charged with that at every crash. Copies are not
evidence: with a simulated proposer, repetitions of an instance and effect with the same result count once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.common.errors import ResultsError
from bench.read.analysis.copies import first_of_copies, is_error_free
from bench.read.analysis.frames import Run
from bench.read.analysis.plans import single_faults
from bench.read.analysis.statistics import Share, exact_share_by_instance
from bench.read.render.cells import Rate
from bench.read.render.drawing import BLUE, GREEN, ORANGE, PALE, VERMILION, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.config import FAULT_FREE
from bench.worlds.read.beyond_control import DAMAGE_COLUMNS, beyond_control

from ..by_model import by_model

POINTS = ("before", "unacknowledged", "unrecorded", "recorded")
KINDS = ("lost", "doubled", "orphaned", "uncompensated")
TOLD = ["lives", *(f"beyond_{kind}" for kind in KINDS)]
"""Repetitions that agree in these columns are copies."""


@dataclass(frozen=True)
class CrashedArm:
    """One pattern, in one form, at one point.

    shares      kind of damage -> share of trials with one crash in which it happened more often than in their control
    effects     kind of damage -> additional effects in all
    left_out    trials in which the agent died more than once, or not at all, or that ended in an error
    instances   number of different instances
    """

    scenario: str
    model: str
    architecture: str
    point: str
    shares: Mapping[str, Share]
    effects: Mapping[str, int]
    left_out: int
    instances: int

    @property
    def crashes(self) -> int:
        return self.shares[KINDS[0]].n


def exactly_once(run: Run) -> list[CrashedArm]:
    """Return the arms by scenario, model, architecture and point. Plans of one point count together, whatever tool they strike.

    Raises ResultsError if the run has no plan that kills the agent at one point, or no control.
    """
    points = {plan: fault.effect for plan, fault in single_faults(run).items() if fault.point == "process"}
    if not points or FAULT_FREE not in run.names("plan"):
        raise ResultsError(f"needs fault plans with one fault each, at `process`, and the plan '{FAULT_FREE}' beside them")
    more = beyond_control(run, DAMAGE_COLUMNS)
    return [
        _crashed(
            str(scenario), str(model), architecture, point, of_architecture[of_architecture["plan"].map(points) == point], run
        )
        for (scenario, model), trials in more.groupby(["scenario", "model"], sort=False)
        for architecture in run.names("architecture")
        for point in POINTS
        if point in points.values()
        for of_architecture in [trials[trials["architecture"] == architecture]]
    ]


def _crashed(scenario: str, model: str, architecture: str, point: str, trials: pd.DataFrame, run: Run) -> CrashedArm:
    counted = trials
    if is_error_free(run, model):
        groups, values = ([*trials[columns].itertuples(index=False, name=None)] for columns in (["instance", "plan"], TOLD))
        counted = trials[first_of_copies(groups, values)]
    once = counted[counted["lives"] == 2]
    return CrashedArm(
        scenario,
        model,
        architecture,
        point,
        {kind: _share(once, kind) for kind in KINDS},
        {kind: int(once[f"beyond_{kind}"].clip(lower=0).sum()) for kind in KINDS},
        len(counted) - len(once),
        once["instance"].nunique(),
    )


def _share(once: pd.DataFrame, kind: str) -> Share:
    """Return the share, clustered by instance: each instance dies at several effects."""
    return exact_share_by_instance(once["instance"].tolist(), (once[f"beyond_{kind}"] > 0).tolist())


# Tables and figures

NOTES = (
    "A cell k/N holds the share of crashes after which this damage was greater than in the same trial without the crash. Its "
    "95% interval is exact and clustered by instance (Korn and Graubard). The brackets hold the effects for 100 crashes.",
    "The agent died at the first try of the effect that the plan names. Trials in which it died more than once, or never, are "
    "left out and counted.",
    "Repetitions with the same result count once. A simulated model decides the same each time, so it shows nothing about a "
    "model's errors.",
)


def tables(run: Run) -> Iterator[Table]:
    yield crashes_table([replace(crashed, model=model_label(run, crashed.model)) for crashed in exactly_once(run)])


def crashes_table(crashed_arms: Sequence[CrashedArm]) -> Table:
    """Return a table with a row for each arm. Its model's name is shown unchanged."""

    def damaged(kind: str) -> TableColumn[CrashedArm]:
        return TableColumn(kind.capitalize(), lambda crashed: _Damaged(crashed.shares[kind], crashed.effects[kind]))

    columns = (
        TableColumn[CrashedArm]("Scenario", lambda crashed: crashed.scenario),
        TableColumn[CrashedArm]("Model", lambda crashed: crashed.model),
        TableColumn[CrashedArm]("Architecture", lambda crashed: crashed.architecture),
        TableColumn[CrashedArm]("Dies", lambda crashed: crashed.point),
        *map(damaged, KINDS),
        TableColumn[CrashedArm]("Instances", lambda crashed: crashed.instances),
        TableColumn[CrashedArm]("Left out", lambda crashed: crashed.left_out),
    )
    return table_of("study-exactly-once", "Exactly once: what one crash does", columns, crashed_arms, NOTES)


@dataclass(frozen=True)
class _Damaged(Rate):
    """A share of crashes, with the number of damaged effects."""

    effects: int = 0

    def text(self) -> str:
        more = f" ({100 * self.effects / self.share.n:.0f})" if self.effects else ""
        return super().text() + more

    def numbers(self) -> dict[str, object]:
        return {**super().numbers(), " effects": self.effects}


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model, with a panel for each scenario and kind of damage."""
    for model, of_model in by_model(run, exactly_once(run)):
        title, caption = titled(of_model, model_label(run, model))
        yield finish(_figure(of_model), slug("study", "exactly-once", model), title, caption)


def titled(crashed_arms: Sequence[CrashedArm], label: str) -> tuple[str, str]:
    numbers = sorted({crashed.crashes for crashed in crashed_arms})
    shown = f"N = {numbers[0]}" if len(numbers) == 1 else f"N = {numbers[0]} to {numbers[-1]}"
    title = f"Exactly once: shares of crashes after which effects were damaged, {label}"
    beyond = "Damage is what exceeds the same trial without a crash."
    caption = f"{beyond} The 95% intervals are exact and cluster by instance. Each point has {shown} crashes."
    return title, f"{title}. {caption}"


LOOKS = dict(zip(POINTS, (("o", BLUE), ("s", VERMILION), ("D", GREEN), ("^", ORANGE)), strict=True))


def _figure(crashed_arms: Sequence[CrashedArm]) -> Figure:
    names = list(dict.fromkeys(crashed.architecture for crashed in crashed_arms))
    places = [(scenario, kind) for scenario in dict.fromkeys(crashed.scenario for crashed in crashed_arms) for kind in KINDS]
    figure, axes = panels(len(places), len(KINDS), 3.0, 0.9 + 0.34 * len(names))
    for place, ((scenario, kind), ax) in enumerate(zip(places, axes, strict=True)):
        panel = [crashed for crashed in crashed_arms if crashed.scenario == scenario]
        for crashed in panel:
            _point(
                ax,
                names.index(crashed.architecture) + 0.18 * (POINTS.index(crashed.point) - 1.5),
                crashed.shares[kind],
                crashed.point,
            )
        ax.set_title(f"{scenario}: {kind}")
        ax.set_yticks(range(len(names)), [_label(name) for name in names] if not place % len(KINDS) else [])
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlim(-0.03, 1.03)
        ax.set_xlabel("share of crashes")
        ax.grid(axis="x", color=PALE, lw=0.6)
    signs = {point: LOOKS[point] for point in POINTS if any(crashed.point == point for crashed in crashed_arms)}
    handles = [Line2D([], [], marker=marker, color=colour, lw=1, ms=4.5) for marker, colour in signs.values()]
    figure.legend(handles, [f"dies {point}" for point in signs], loc="outside lower center", ncols=len(signs))
    return figure


def _point(ax: Axes, y: float, share: Share, point: str) -> None:
    if share.rate is None or share.low is None or share.high is None:
        return
    marker, colour = LOOKS[point]
    errors = [[share.rate - share.low], [share.high - share.rate]]
    ax.errorbar([share.rate], [y], xerr=errors, fmt=marker, ms=3.5, color=colour, capsize=2, lw=0.9)


def _label(architecture: str) -> str:
    return architecture.replace("_", " ")
