"""The tables in which a reader chooses a model: one against another, all else being the same, and what a solved task costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from bench.analysis.arms import Arm, Arms
from bench.analysis.frames import Run
from bench.analysis.measures import COMPARED, SOLVED, SPENT
from bench.analysis.per_solved import per_solved
from bench.render.labels import model_label, taken_over_from
from bench.render.table import Cell, Estimate, Rate, RateGap, Spent, Table


def models(run: Run, arms: Arms) -> Table:
    """Each model against each other: every measure of both, and the difference, repetition by repetition."""
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
            "paired by repetition: same scenario, fault plan, architecture and seeds; mean ± sd [95% interval of the mean]",
            "solved: k/N with Wilson's 95% interval; its paired difference with Bonett and Price's, and the pairs that only "
            "B solved (gained) or only A (lost)",
            "unpaired: trials whose twin ended in an error or is not recorded",
            "each interval is at 95% by itself: among twenty of them one misses by chance",
            *_taken_over(run),
        ),
    )


def _taken_over(run: Run) -> Iterator[str]:
    """Whose seconds are in part those of an earlier run."""
    for model in run.names("model"):
        if earlier := taken_over_from(run, model):
            seconds = f"those of {' and '.join(earlier)}, at the pace of its machine then"
            yield f"{model_label(run, model)}: the seconds of replies that it took over are {seconds}"


def _pairs(arms: Arms) -> Iterator[tuple[Arm, Arm]]:
    """The arms that differ in nothing but their model, two by two, the earlier model of the config first."""
    alike: dict[tuple[str, str, str], list[Arm]] = {}
    for condition, found in arms.items():
        for arm in found.values():
            alike.setdefault((condition.scenario, condition.plan, arm.architecture), []).append(arm)
    return (pair for own in alike.values() for pair in combinations(own, 2))


def _compared(first: Arm, second: Arm) -> Iterator[tuple[Cell, ...]]:
    """The measure, both models' values, the second's less the first's, and how many pairs that is of."""
    for measure in COMPARED:
        paired = second.less(first, measure.column)
        values = [Estimate(arm.mean(measure.column), measure.digits, with_n=True) for arm in (first, second)]
        difference = Estimate(paired.difference, measure.digits)
        yield measure.title, *values, difference, paired.difference.n, paired.unpaired
    gap = second.solved_less(first)
    yield SOLVED.title, Rate(first.solved()), Rate(second.solved()), RateGap(gap), gap.pairs, gap.unpaired


def spent_by_solved(run: Run, arms: Arms) -> Table:
    """What an arm spent in all, by what it solved."""
    rows: list[tuple[Cell, ...]] = []
    for condition, found in arms.items():
        for arm in found.values():
            place = (condition.scenario, model_label(run, condition.model), condition.plan, arm.architecture)
            spent = [Spent(per_solved(arm.trials, measure.column), measure.digits) for measure in SPENT]
            rows.append((*place, len(arm.trials) - arm.count("ungraded"), arm.count("solved"), *spent))
    return Table(
        name="per_solved",
        title="Spent per solved task",
        columns=(
            *("Scenario", "Model", "Fault plan", "Architecture", "Trials", "Solved"),
            *(f"{measure.title} per solved" for measure in SPENT),
        ),
        rows=tuple(rows),
        notes=(
            "all that the arm's trials spent, errors and failures among them, by those solved, with Fieller's 95% interval of "
            "that ratio over the trials; n/a where too few were solved for an upper bound, and too narrow where "
            "all were, since then it knows of no other share",
            "cost: the provider's token counts, ours where it told none, at the config's prices; unknown where it has none; "
            "a reply that several arms were given is charged to each of them",
        ),
    )
