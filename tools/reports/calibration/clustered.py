"""Rates of outputs that are alike where they come from one instance: the shipped intervals, called for each experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from calibration.experiments import Result, Simulations
from calibration.worlds import Values

from bench.read.analysis.statistics import RateDifference, Share, paired_rates, share_by_instance, share_of

DESIGNS = ((5, 4), (10, 4), (20, 3), (40, 3), (164, 2))
"""Instances, or trials, and outputs or repetitions of each."""
RATES = (0.05, 0.2, 0.5)
ALIKE = (0.0, 0.3, 1.0)
"""The correlation of two outputs of one instance: none; some; all are as the first."""


def clustered(simulations: Simulations, designs: Sequence[tuple[int, int]] = DESIGNS) -> Iterator[Result]:
    for instances, each in designs:
        for number, (rate, alike) in enumerate((rate, alike) for rate in RATES for alike in ALIKE):
            rng = np.random.default_rng((simulations.seed, 9, instances, number))
            held = drawn(rng, (simulations.resampling, instances, each), rate, alike)
            yield from rates(held, rate, f"rate {rate}, alike {alike}")
        for number, alike in enumerate(ALIKE):
            rng = np.random.default_rng((simulations.seed, 10, instances, number))
            shape = (simulations.resampling // 2, instances, each)
            yield differences(drawn(rng, shape, 0.5, alike), drawn(rng, shape, 0.2, alike), 0.3, f"0.5 less 0.2, alike {alike}")


def drawn(rng: np.random.Generator, shape: tuple[int, int, int], rate: float, alike: float) -> Values:
    """Return which of the outputs succeeded. The instances' own rates are drawn from a beta distribution, or are 0 and 1."""
    cells = shape[:2]
    if alike == 0.0:
        chances = np.full(cells, rate)
    elif alike == 1.0:
        chances = (rng.random(cells) < rate).astype(float)
    else:
        sharp = 1 / alike - 1
        chances = rng.beta(rate * sharp, (1 - rate) * sharp, cells)
    return np.asarray(rng.random(shape) < chances[:, :, None])


def rates(held: Values, rate: float, world: str) -> Iterator[Result]:
    _, instances, each = held.shape
    names = [str(instance) for instance in range(instances) for _ in range(each)]

    @cache
    def by_instance(counts: tuple[int, ...]) -> Share:
        return share_by_instance(names, [place < count for count in counts for place in range(each)])

    @cache
    def by_itself(counts: tuple[int, ...]) -> Share:
        return share_of(sum(counts), len(names))

    for name, method in (("Wilson, by instance", by_instance), ("Wilson, each by itself", by_itself)):
        intervals = [method(tuple(counts)) for counts in np.sort(held.sum(axis=2)).tolist()]
        yield _result("rate by instance", world, instances, name, rate, intervals)


def differences(ones: Values, others: Values, truth: float, world: str) -> Result:
    _, instances, each = ones.shape
    pairs = [(str(instance), repetition) for instance in range(instances) for repetition in range(each)]
    intervals = [
        paired_rates(*(dict(zip(pairs, side.ravel().tolist(), strict=True)) for side in (left, right)))
        for left, right in zip(ones, others, strict=True)
    ]
    return _result("difference of rates by instance", world, instances, "Bonett-Price, by instance", truth, intervals)


def _result(
    about: str, world: str, instances: int, method: str, truth: float, intervals: Sequence[Share | RateDifference]
) -> Result:
    hits = sum(
        interval.low is not None and interval.high is not None and interval.low <= truth <= interval.high
        for interval in intervals
    )
    return Result("coverage", about, world, True, instances, method, hits / len(intervals), len(intervals))
