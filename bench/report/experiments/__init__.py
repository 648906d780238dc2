"""What a report shows of an experiment beyond the paper: the one that the run's config names, by its module here.

A module has `tables(run)` and `pictures(run)`. All that they name begins with `experiment`, which is their section of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.analysis.frames import Run
from bench.errors import ResultsError, nearest
from bench.render.drawing import Picture
from bench.render.table import Table
from bench.report.experiments import break_even, context, depth, detectability, policy, repair, validators


@dataclass(frozen=True)
class Shown:
    """Both raise ResultsError where the run lacks what the experiment needs."""

    tables: Callable[[Run], Iterable[Table]]
    pictures: Callable[[Run], Iterable[Picture]]


EXPERIMENTS = {
    "break_even": Shown(break_even.tables, break_even.pictures),
    "detectability": Shown(detectability.tables, detectability.pictures),
    "validators": Shown(validators.tables, validators.pictures),
    "policy": Shown(policy.tables, policy.pictures),
    "depth": Shown(depth.tables, depth.pictures),
    "context": Shown(context.tables, context.pictures),
    "repair": Shown(repair.tables, repair.pictures),
}


def experiment_tables(run: Run) -> list[Table]:
    """The tables of the run's experiment; where they cannot be made, one that says why."""
    name = _name(run)
    if name is None:
        return []
    try:
        return list(_shown(name).tables(run))
    except ResultsError as lacking:
        said = f"experiment '{name}': {lacking}"
        return [Table("experiment", f"Experiment {name}: not shown", ("Why",), ((said,),))]


def experiment_pictures(run: Run) -> list[Picture]:
    """The figures of the run's experiment; none where they cannot be made, which its table says."""
    name = _name(run)
    try:
        return list(_shown(name).pictures(run)) if name else []
    except ResultsError:
        return []


def _name(run: Run) -> str | None:
    name: str | None = run.manifest.get("config", {}).get("experiment")
    return name


def _shown(name: str) -> Shown:
    if name not in EXPERIMENTS:
        raise ResultsError(f"is unknown; {nearest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
