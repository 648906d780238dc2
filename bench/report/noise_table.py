"""The noise floor of every arm."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.arms import Arm, Arms
from bench.analysis.frames import Run
from bench.analysis.measures import COMPARED
from bench.analysis.noise import SPLITS, Halves, halves_of
from bench.render.labels import model_label
from bench.render.table import Cell, Number, Table


def noise_floor(run: Run, arms: Arms) -> Table:
    each = [arm for found in arms.values() for arm in found.values()]
    halves = {n: halves_of(n) for n in {len(arm.usable) for arm in each}}
    return Table(
        name="noise_floor",
        title="Noise floor: each architecture against itself",
        columns=(
            *("Scenario", "Model", "Fault plan", "Architecture", "N", "In a half", "Splits"),
            *(name for measure in COMPARED for name in (measure.title, f"{measure.title}, of the mean")),
        ),
        rows=tuple(_row(run, arm, halves[len(arm.usable)]) for arm in each),
        notes=(
            "A/A by split halves: one arm's repetitions, each with its own seeds, dealt into two halves in every way there is "
            f"({SPLITS:,} random ones where there are more); 95% of the splits lie no farther apart than this",
            "chance alone does as much between groups of that size; two arms of N unpaired trials would lie about 1.4 times "
            "closer, and pairs may lie closer still: read it beside the paired differences",
        ),
    )


def _row(run: Run, arm: Arm, halves: Halves) -> tuple[Cell, ...]:
    condition = arm.condition
    place = (condition.scenario, model_label(run, condition.model), condition.plan, arm.architecture)
    return (*place, halves.n, halves.half, halves.splits, *_floors(arm, halves))


def _floors(arm: Arm, halves: Halves) -> Iterator[Cell]:
    for measure in COMPARED:
        floor, mean = halves.floor(arm.usable[measure.column].tolist()), arm.mean(measure.column).mean
        yield Number(floor, measure.digits)
        yield Number(floor / abs(mean) if floor is not None and mean else None, 1, percent=True)
