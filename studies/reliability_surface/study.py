"""The reliability surface R(k, ε, λ): how often k repetitions of a task all succeed, worded at level ε and under faults of λ.

The unit is an instance with its repetitions. An equivalent (`bench.run.packs.equivalents`) counts as its original task and
meets the same faults. Source: Gupta, ReliabilityBench, arXiv 2601.06112.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import PassHat, pass_hat
from bench.read.render.cells import NOTHING, BoundedNumber, Cell
from bench.read.render.drawing import PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.marks import Sign, draw_value, signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.config import FAULT_FREE
from bench.record.equivalents import level_of, task_of
from bench.record.plan_entries import FaultEntry

from ..by_model import by_model

MIXED = "mixed"
KINDS = {
    ("tool", "error"): "tool error",
    ("tool", "lost_ack"): "lost answer",
    ("process", "unacknowledged"): "crash",
    ("call", "rate_limit"): "rate limit",
}
"""The names of faults here. Any other fault is named by its effect."""
KEY = ["task", "model", "architecture", "epsilon", "plan"]


@dataclass(frozen=True)
class SurfacePoint:
    """One point of the surface, with every k that its repetitions allow.

    kind        of the faults; "" without any
    passes      pass^k for k = 1, 2, ...
    instances   number of tasks; repetitions: the most of any task
    """

    task: str
    model: str
    architecture: str
    epsilon: int
    kind: str
    intensity: float
    passes: tuple[PassHat, ...]
    instances: int
    repetitions: int

    def at(self, k: int) -> PassHat:
        return self.passes[k - 1]


def surface(run: Run) -> list[SurfacePoint]:
    """Return the points by task, model, architecture, ε, kind and λ. Trials that ended in an error are left out.

    Raises ResultsError if the run has no plan whose faults all have a probability, or no plan without faults.
    """
    struck = {plan: intensity for plan in run.names("plan") if (intensity := _intensity(run.config.faults_of(plan)))}
    if not struck or FAULT_FREE not in run.names("plan"):
        raise ResultsError(f"needs fault plans whose faults strike with a probability, and the plan '{FAULT_FREE}' beside them")
    plans = {FAULT_FREE: ("", 0.0), **struck}
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE) & run.trials["plan"].isin(plans)]
    names = usable["scenario"].astype(str)
    told = usable.assign(task=names.map(task_of), epsilon=names.map(level_of))
    points = [_point(place, plans[str(place[4])], trials) for place, trials in told.groupby(KEY, sort=False, observed=True)]
    return sorted(points, key=lambda point: _order(run, list(struck.values()), point))


def _intensity(faults: Sequence[FaultEntry]) -> tuple[str, float] | None:
    """Return the kind of a plan's faults and their λ: the chance that a call is struck, summed over kinds. A repeated fault
    strikes further tries and counts once. None for a plan without faults, or if a fault has no probability."""
    if not faults or not all(fault.probability for fault in faults):
        return None
    chances = {(str(fault.point), fault.effect): fault.probability for fault in faults}
    kinds = [KINDS.get(place, place[1]) for place in chances]
    return (kinds[0] if len(kinds) == 1 else MIXED), round(math.fsum(chances.values()), 9)


def _point(place: Sequence[Any], struck: tuple[str, float], trials: pd.DataFrame) -> SurfacePoint:
    solved = trials["outcome"].eq("solved").groupby(trials["instance"])
    tasks = [(int(c), int(n)) for c, n in zip(solved.sum(), solved.size(), strict=True)]
    most = max(n for _, n in tasks)
    passes = tuple(pass_hat(k, tasks) for k in range(1, most + 1))
    task, model, architecture, epsilon = place[:4]
    return SurfacePoint(str(task), str(model), str(architecture), int(epsilon), *struck, passes, len(tasks), most)


def _order(run: Run, plans: Sequence[tuple[str, float]], point: SurfacePoint) -> tuple[object, ...]:
    kinds = ["", *dict.fromkeys(kind for kind, _ in plans)]
    names = run.names("architecture")
    return point.task, point.model, names.index(point.architecture), point.epsilon, kinds.index(point.kind), point.intensity


# Tables and figures

NOTES = (
    "pass^k: the chance that k repetitions of one instance are all right, C(c, k) / C(n, k) for c of n, unbiased; the mean "
    "over instances with its 95% interval, clustered by instance. If all instances are alike, it is the exact interval of the "
    "rate of all trials, to the power of k. An instance that errors left with fewer than k has no pass^k",
    "ε: 0 the task as it is, 1 other names and another order, 2 other words as well; the same instances, truths and faults",
    "λ: the chance with which a fault strikes each try of a call; in the mixed plan the kinds share it",
)
SIMULATED_NOTE = (
    "a simulated model judges rightly however it is asked, so that ε can change nothing: where two ε agree they show that the "
    "equivalents are equivalent, and nothing of a model. Only λ and the architecture act"
)


def tables(run: Run) -> Iterator[Table]:
    points = surface(run)
    ks = _shown(points)

    def passed(k: int) -> TableColumn[SurfacePoint]:
        return TableColumn(f"pass^{k}", lambda point: _cell(point, k))

    columns = (
        TableColumn[SurfacePoint]("Scenario", lambda point: point.task),
        TableColumn[SurfacePoint]("Model", lambda point: model_label(run, point.model)),
        TableColumn[SurfacePoint]("Architecture", lambda point: point.architecture),
        TableColumn[SurfacePoint]("ε", lambda point: point.epsilon),
        TableColumn[SurfacePoint]("Fault", lambda point: point.kind or "none"),
        TableColumn[SurfacePoint]("λ", lambda point: f"{point.intensity:g}"),
        *map(passed, ks),
        TableColumn[SurfacePoint]("Instances × repetitions", lambda point: f"{point.instances} × {point.repetitions}"),
    )
    simulated = any(run.is_simulated(point.model) for point in points)
    notes = (*NOTES, SIMULATED_NOTE) if simulated else NOTES
    yield table_of("study-reliability-surface", "The reliability surface R(k, ε, λ)", columns, points, notes)
    yield _strongest(run, points, ks)


def _strongest(run: Run, points: Sequence[SurfacePoint], ks: Sequence[int]) -> Table:
    """Return the table of the highest λ of each kind, at the lowest ε."""
    epsilon = min(point.epsilon for point in points)
    told = [point for point in points if point.epsilon == epsilon]
    most = {point.kind: point.intensity for point in sorted(told, key=lambda each: each.intensity)}
    kinds = list(dict.fromkeys(point.kind for point in told))
    rows: dict[tuple[str, str, str, int], dict[str, Cell]] = {}
    for point in told:
        for k in (ks[0], ks[-1]) if point.intensity == most[point.kind] else ():
            rows.setdefault((point.task, point.model, point.architecture, k), {})[point.kind] = _cell(point, k)
    named = (f"{kind or 'none'}, λ = {most[kind]:g}" for kind in kinds)
    return Table(
        name="study-reliability-surface-strongest",
        title="The reliability surface where faults are strongest",
        columns=("Scenario", "Model", "Architecture", "k", *named),
        rows=tuple(
            (task, model_label(run, model), architecture, k, *(cells.get(kind, NOTHING) for kind in kinds))
            for (task, model, architecture, k), cells in rows.items()
        ),
        notes=(f"pass^k at ε = {epsilon}, with its 95% interval", *NOTES),
    )


def _shown(points: Sequence[SurfacePoint]) -> list[int]:
    """Return the k to show: powers of two, and the largest that all points have."""
    most = min(point.repetitions for point in points)
    return [k for k in range(1, most + 1) if k == most or k.bit_count() == 1]


def _cell(point: SurfacePoint, k: int) -> Cell:
    at = point.at(k)
    return BoundedNumber(at.value, at.low, at.high, 3)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model and task: a row of panels for k = 1 and for the largest k, a panel for each kind of
    fault."""
    for model, points in by_model(run, surface(run)):
        for task in dict.fromkeys(point.task for point in points):
            yield _figure(run, model, task, [point for point in points if point.task == task])


LINES = ("-", "--", ":")
"""By ε."""


def _figure(run: Run, model: str, task: str, points: Sequence[SurfacePoint]) -> Picture:
    kinds = list(dict.fromkeys(point.kind for point in points if point.kind))
    ks = list(dict.fromkeys((1, _shown(points)[-1])))
    signs = signs_of(run.names("architecture"))
    figure, axes = panels(len(kinds) * len(ks), len(kinds), 2.3, 2.4)
    for (k, kind), ax in zip(((k, kind) for k in ks for kind in kinds), axes, strict=True):
        _panel(ax, [point for point in points if point.kind in ("", kind)], k, signs)
        ax.set_title(f"{kind}, k = {k}")
    epsilons = sorted({point.epsilon for point in points})
    named = {
        **{name: Line2D([], [], marker=marker, color=colour, lw=1, ms=4.5) for name, (marker, colour) in signs.items()},
        **{f"ε = {epsilon}": Line2D([], [], color="black", ls=LINES[epsilon], lw=1) for epsilon in epsilons},
    }
    figure.legend(list(named.values()), list(named), loc="outside lower center", ncols=4)
    title = (
        f"Reliability surface of {task}: the share of instances whose k repetitions all come right, {model_label(run, model)}"
    )
    number = f"N = {points[0].instances} instances × {min(point.repetitions for point in points)} repetitions"
    caption = (
        "There is a line for each ε; lines coincide where ε changes nothing. The 95% intervals are drawn at the least ε and "
        f"cluster by instance. {number}."
    )
    return finish(figure, slug("study", "reliability-surface", task, model), title, f"{title}. {caption}")


def _panel(ax: Axes, points: Sequence[SurfacePoint], k: int, signs: Mapping[str, Sign]) -> None:
    epsilons = sorted({point.epsilon for point in points})
    for number, (name, sign) in enumerate(signs.items()):
        shift = 0.004 * (number - (len(signs) - 1) / 2)
        for epsilon in epsilons:
            line = [
                (point.intensity + shift, point.at(k))
                for point in points
                if (point.architecture, point.epsilon) == (name, epsilon)
            ]
            known = [
                (x, (at.value, at.low, at.high)) for x, at in sorted(line, key=lambda at_x: at_x[0]) if at.value is not None
            ]
            ax.plot([x for x, _ in known], [bounds[0] for _, bounds in known], color=sign[1], lw=1, ls=LINES[epsilon])
            for x, bounds in known if epsilon == epsilons[0] else ():
                draw_value(ax, x, bounds, sign)
    ax.set_ylim(-0.04, 1.04)
    ax.set_xlabel("λ")
    ax.set_ylabel(f"pass^{k}")
    ax.grid(axis="y", color=PALE, lw=0.6)
