"""The models of one run, each judged beside the first that its config names, as by `bench compare RUN --models A B`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench.common.errors import ResultsError
from bench.read.analysis.arms import arms_of, instances_by_scenario
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COST, RETRY_TOKENS, measure_of
from bench.read.analysis.pairing import part_of_run
from bench.read.analysis.per_solved import PerSolved, spent_per_solved
from bench.read.analysis.statistics import Mean, Pair, PairedMean, RateDifference, paired_difference
from bench.read.compare.compare import Comparison, compare

MOST = 8
"""The most models that are compared: where a study has more, they are its factor, and its own tables compare them."""
STEP = 1_000_000
"""More than an arm has repetitions."""


@dataclass(frozen=True)
class ModelMeasure:
    """A measure of two models over the trials that both have.

    name        the criterion of `compare`, or `retry_tokens`
    values      of the first model and of the second
    difference  the second's less the first's, pair by pair
    finding     what `compare` finds; "" for a measure that it does not judge
    """

    name: str
    values: tuple[float | None, float | None]
    difference: Mean | RateDifference
    pairs: int
    finding: str = ""


@dataclass(frozen=True)
class ModelPair:
    """Two models of a run. `verdict` is the verdict of `compare` on the second. `dollars` are those for a solved task."""

    first: str
    second: str
    verdict: str
    measures: Mapping[str, ModelMeasure]
    dollars: tuple[PerSolved, PerSolved]


def model_pairs(run: Run) -> tuple[ModelPair, ...]:
    """Return the comparison of each further model with the first, over all packs, fault plans and architectures that both have.
    A model that shares no trial with the first is left out."""
    first, *others = run.names("model")
    pairs = []
    for other in others if len(others) < MOST else ():
        try:
            pairs.append(_pair(compare(part_of_run(run, "model", first), part_of_run(run, "model", other)), first, other))
        except ResultsError:
            continue
    return tuple(pairs)


def _pair(comparison: Comparison, first: str, second: str) -> ModelPair:
    judged = [
        ModelMeasure(row.criterion, (row.change.before, row.change.after), row.difference, row.change.pairs or 0, row.finding)
        for row in comparison.overall
        if row.finding != "not measured"
    ]
    runs = (comparison.runs.first, comparison.runs.second)
    before, after = spent_per_solved(runs[0].trials, COST.name), spent_per_solved(runs[1].trials, COST.name)
    measures = {measure.name: measure for measure in (*judged, _retries(*runs))}
    return ModelPair(first, second, comparison.verdict, measures, (before, after))


def _retries(first: Run, second: Run) -> ModelMeasure:
    before, after = (pooled_values(run, RETRY_TOKENS.name) for run in (first, second))
    paired: PairedMean = paired_difference(after, before, measure_of(RETRY_TOKENS.name))
    shared = before.keys() & after.keys()
    means = tuple(sum(side[pair] for pair in shared) / len(shared) if shared else None for side in (before, after))
    return ModelMeasure(RETRY_TOKENS.name, (means[0], means[1]), paired.difference, paired.pairs)


def pooled_values(run: Run, column: str) -> dict[Pair, float]:
    """Return the values of all arms of a run of one model, by unit. Trials of one instance stand together, as in `compare`; if
    a pack has only one, trials of one repetition do."""
    several = {name: len(instances) > 1 for name, instances in instances_by_scenario(run).items()}
    values: dict[Pair, float] = {}
    arms = {
        (replace(condition, model=""), name): arm for condition, named in arms_of(run).items() for name, arm in named.items()
    }
    for place, key in enumerate(sorted(arms, key=str)):
        scenario = key[0].scenario
        for (instance, repetition), value in arms[key].by_pair(column).items():
            unit = f"{scenario}/{instance if several[scenario] else repetition}"
            values[unit, place * STEP + repetition] = value
    return values
