"""Two arms side by side, pair by pair: architectures, models; and an arm beside itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from bench.analysis.arms import Arm, Arms
from bench.analysis.frames import Run
from bench.analysis.metrics import COMPARED, COST, SOLVED
from bench.analysis.noise import SPLITS, Halves, halves_of
from bench.analysis.per_solved import per_solved
from bench.render.labels import ARM, arm_cells, each_arm, model_label
from bench.render.table import Cell, Estimate, Number, Rate, RateGap, Spent, Table
from bench.report.table_part import TablePart


def differences(run: Run, arms: Arms) -> Table:
    """Each architecture against each other, pair by pair."""
    rows: list[tuple[Cell, ...]] = []
    for condition, named in arms.items():
        for first, second in combinations(named.values(), 2):
            place = (condition.scenario, model_label(run, condition.model), condition.plan)
            rows.append((*place, f"{second.architecture} − {first.architecture}", *_difference(first, second)))
    title = "Paired differences between architectures"
    return Table("differences", title, (*ARM[:3], "Difference", *_DIFFERENCE), tuple(rows), _DIFFERENCE_NOTES)


_DIFFERENCE = ("Pairs", "Unpaired", *(measure.title for measure in COMPARED))
_DIFFERENCE_NOTES = (
    "paired by instance and repetition, all else being equal; mean ± sd of the differences [95% interval of their mean]",
    "unpaired: trials whose counterpart ended in an error or is not recorded",
    "each interval is at 95% by itself: among twenty of them one misses by chance",
)


def _difference(first: Arm, second: Arm) -> tuple[Cell, ...]:
    """The cells under _DIFFERENCE for `second` less `first`."""
    paired = [second.less(first, measure.name) for measure in COMPARED]
    shown = [Estimate(difference.difference, measure.digits) for difference, measure in zip(paired, COMPARED, strict=True)]
    return (paired[0].pairs, paired[0].unpaired, *shown)


def models(run: Run, arms: Arms) -> list[Table]:
    """Each model against each other: every measure of both, and the difference, pair by pair; none of a sole model."""
    return [_models(run, arms)] if len(run.names("model")) > 1 else []


def _models(run: Run, arms: Arms) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for first, second in _pairs(arms):
        named = (model_label(run, arm.condition.model) for arm in (first, second))
        place = (first.condition.scenario, first.condition.plan, first.architecture, *named)
        rows += [(*place, *cells) for cells in _compared(first, second)]
    return Table(
        name="models",
        title="Models compared",
        columns=(
            *("Scenario", "Fault plan", "Architecture", "Model A", "Model B"),
            *("Measure", "A", "B", "B − A, paired", "Pairs", "Unpaired"),
        ),
        rows=tuple(rows),
        notes=(
            "paired by instance and repetition: same scenario, fault plan, architecture and seeds; mean ± sd [95% interval of "
            "the mean]",
            "solved: k/N with Wilson's 95% interval; its paired difference with Bonett and Price's, and the pairs that only "
            "B solved (gained) or only A (lost)",
            "unpaired: trials whose counterpart ended in an error or is not recorded",
            "each interval is at 95% by itself: among twenty of them one misses by chance",
            *_taken_over(run),
        ),
    )


def _taken_over(run: Run) -> Iterator[str]:
    """Whose seconds are in part those of an earlier run."""
    for model in run.names("model"):
        if earlier := run.parameters_of(model).cache_from:
            seconds = f"those of {' and '.join(run.name for run in earlier)}, at the pace of its machine then"
            yield f"{model_label(run, model)}: the seconds of replies that it took over are {seconds}"


def _pairs(arms: Arms) -> Iterator[tuple[Arm, Arm]]:
    """The arms that differ in nothing but their model, two by two, the earlier model of the config first."""
    alike: dict[tuple[str, str, str], list[Arm]] = {}
    for condition, named in arms.items():
        for arm in named.values():
            alike.setdefault((condition.scenario, condition.plan, arm.architecture), []).append(arm)
    return (pair for group in alike.values() for pair in combinations(group, 2))


def _compared(first: Arm, second: Arm) -> Iterator[tuple[Cell, ...]]:
    """The measure, both models' values, the second's less the first's, and how many pairs that is of."""
    for measure in COMPARED:
        paired = second.less(first, measure.name)
        values = [Estimate(arm.mean(measure.name), measure.digits, with_n=True) for arm in (first, second)]
        difference = Estimate(paired.difference, measure.digits)
        yield measure.title, *values, difference, paired.pairs, paired.unpaired
    spent = [per_solved(arm.trials, COST.name) for arm in (first, second)]
    if all(value.spent is not None for value in spent):
        paired = second.less(first, COST.name)
        values = [Estimate(arm.mean(COST.name), COST.digits, with_n=True) for arm in (first, second)]
        yield "Dollars", *values, Estimate(paired.difference, COST.digits), paired.pairs, paired.unpaired
        yield "Dollars for a solved task", *(Spent(value, COST.digits) for value in spent), "–", paired.pairs, paired.unpaired
    gap = second.solved_less(first)
    yield SOLVED.title, Rate(first.solved()), Rate(second.solved()), RateGap(gap), gap.pairs, gap.unpaired


def noise_floor(run: Run, arms: Arms) -> Table:
    each = list(each_arm(arms))
    halves = {n: halves_of(n) for n in {len(arm.units("tokens")) for arm in each}}
    return Table(
        name="noise_floor",
        title="Noise floor: each architecture against itself",
        columns=(
            *(*ARM, "N", "In a half", "Splits"),
            *(name for measure in COMPARED for name in (measure.title, f"{measure.title}, of the mean")),
        ),
        rows=tuple(_floor_row(run, arm, halves[len(arm.units("tokens"))]) for arm in each),
        notes=(
            "A/A by split halves: one arm's repetitions, each with its own seeds, dealt into two halves in every way there is "
            f"({SPLITS:,} random ones where there are more); 95% of the splits lie no farther apart than this",
            "chance alone does as much between groups of that size; two arms of N unpaired trials would lie about 1.4 times "
            "closer, and pairs may lie closer still: read it beside the paired differences",
        ),
    )


def _floor_row(run: Run, arm: Arm, halves: Halves) -> tuple[Cell, ...]:
    return (*arm_cells(run, arm), halves.n, halves.half, halves.splits, *_floors(arm, halves))


def _floors(arm: Arm, halves: Halves) -> Iterator[Cell]:
    for measure in COMPARED:
        floor, mean = halves.floor(arm.units(measure.name)), arm.mean(measure.name).mean
        yield Number(floor, measure.digits)
        yield Number(floor / abs(mean) if floor is not None and mean else None, 1, percent=True)


PARTS = (
    TablePart("differences", lambda of: differences(of.run, of.arms), "differences"),
    TablePart("noise_floor", lambda of: noise_floor(of.run, of.arms), "differences"),
    TablePart("models", lambda of: models(of.run, of.arms), "models"),
)
