"""The comparison of a run's models with the first model that its config names, as by `bench compare RUN --models A B`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench.common.errors import ResultsError
from bench.read.analysis.arms import arms_of, instances_by_scenario
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import COST, RETRY_TOKENS, measure_of
from bench.read.analysis.pairing import part_of_run
from bench.read.analysis.per_solved import PerSolved, spent_per_solved
from bench.read.analysis.results import Results
from bench.read.analysis.statistics import Mean, Pair, PairedMean, RateDifference, paired_difference
from bench.read.compare.compare import Comparison, compare

MAX_COMPARED_MODELS = 8
"""A run with more models is a study of models, whose own tables compare them."""
PAIRS_PER_ARM = 1_000_000
"""A number above any repetition of an arm, which keeps the pair numbers of arms apart."""


@dataclass(frozen=True)
class ModelMeasure:
    """A measure of two models over the trials that both have.

    name        the criterion of `compare`, or `retry_tokens`
    values      the means of the first model and of the second
    difference  the second model's value minus the first's, over pairs of trials
    finding     the finding of `compare`; "" for a measure that `compare` does not judge
    """

    name: str
    values: tuple[float | None, float | None]
    difference: Mean | RateDifference
    pairs: int
    finding: str = ""


@dataclass(frozen=True)
class ModelPair:
    """Two models of a run, compared. `verdict` is the verdict of `compare` on the second; `dollars` are each model's dollars
    for a solved task."""

    first: str
    second: str
    verdict: str
    measures: Mapping[str, ModelMeasure]
    dollars: tuple[PerSolved, PerSolved]


def compared_models(results: Results) -> tuple[ModelPair, ...]:
    """Return `model_pairs` of the run that a report is made from; `Results.once` takes this function."""
    return model_pairs(results.run)


def model_pairs(run: Run) -> tuple[ModelPair, ...]:
    """Return the comparison of each further model with the first, over all packs, fault plans and architectures that both have.
    A model that shares no trial with the first is left out. Empty for more than MAX_COMPARED_MODELS models."""
    first, *others = run.names("model")
    compared = others if len(others) < MAX_COMPARED_MODELS else ()
    pairs = []
    for other in compared:
        try:
            pairs.append(_pair(compare(part_of_run(run, "model", first), part_of_run(run, "model", other)), first, other))
        except ResultsError:
            continue
    return tuple(pairs)


def _pair(comparison: Comparison, first: str, second: str) -> ModelPair:
    """Return a comparison of two models with all their measures."""
    judged_measures = [
        ModelMeasure(row.criterion, (row.change.before, row.change.after), row.difference, row.change.pairs or 0, row.finding)
        for row in comparison.overall
        if row.finding != "not measured"
    ]
    runs = (comparison.runs.first, comparison.runs.second)
    first_dollars, second_dollars = (spent_per_solved(run.trials, COST.name) for run in runs)
    measures = {measure.name: measure for measure in (*judged_measures, _retries(*runs))}
    return ModelPair(first, second, comparison.verdict, measures, (first_dollars, second_dollars))


def _retries(first: Run, second: Run) -> ModelMeasure:
    """Return the retry tokens of two models, which `compare` does not judge."""
    before, after = (pooled_values(run, RETRY_TOKENS.name) for run in (first, second))
    paired: PairedMean = paired_difference(after, before, measure_of(RETRY_TOKENS.name))
    shared = before.keys() & after.keys()
    means = tuple(sum(values[pair] for pair in shared) / len(shared) if shared else None for values in (before, after))
    return ModelMeasure(RETRY_TOKENS.name, (means[0], means[1]), paired.difference, paired.pairs)


def pooled_values(run: Run, column: str) -> dict[Pair, float]:
    """Return the values of all arms of a run with one model, by (unit, number). A unit is an instance, as in `compare`, or a
    repetition if the pack has one instance. The number is the same for the same trial of every model."""
    has_several = {name: len(instances) > 1 for name, instances in instances_by_scenario(run).items()}
    values: dict[Pair, float] = {}
    arms = [arm for by_architecture in arms_of(run).values() for arm in by_architecture.values()]
    # In an order that is the same for every model, so that the same arm has the same number.
    arms.sort(key=lambda arm: str((replace(arm.condition, model=""), arm.architecture)))
    for arm_number, arm in enumerate(arms):
        scenario = arm.condition.scenario
        for (instance, repetition), value in arm.by_pair(column).items():
            unit = f"{scenario}/{instance if has_several[scenario] else repetition}"
            values[unit, arm_number * PAIRS_PER_ARM + repetition] = value
    return values
