"""Two intervals that have their own resampling inside, called as a report calls them: where two architectures break even, and
an effect over instances, as the studies tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from calibration.experiments import VARIANTS, Result, Simulations
from calibration.recoveries import FIRST_ROUNDS
from calibration.worlds import Values

from bench.read.analysis.statistics import Pair
from bench.read.claims.break_even import break_even
from bench.read.tables.contrasts import bootstrap_mean

SIZES = (5, 10, 20, 40)
EXTRA = (1160.0, 520.0)
"""Tokens that a first pass of `runtime_structured` takes more than `monolithic`'s on `multi_file_debugging` in
`paper-qwen2.5-coder-1.5b-instruct`, rounded: mean and sd."""
ROUNDS = (1670.0, 80.0)
"""Of a round of `monolithic` there."""
DAMAGED = (0.05, 0.1, 0.2, 0.3)
"""The part of the instances in which there is any damage: one effect, and one more in the mean."""
Effects = Callable[[np.random.Generator, tuple[int, int]], Values]


def damage(part: float, spared: float = 0.0) -> Effects:
    """Return a world of damaged effects. In `part` of the instances there is more damage than in the control, and in `spared`,
    drawn apart, as much less."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Values:
        more, less = ((rng.random(shape) < struck) * (1 + rng.poisson(1.0, shape)) for struck in (part, spared))
        return np.asarray(more - less)

    return draw


EFFECTS: Sequence[tuple[str, bool, float, Effects]] = (
    ("normal", True, 1.0, lambda rng, shape: rng.normal(1.0, 1.0, shape)),
    ("counts of both signs", True, 0.3, lambda rng, shape: rng.poisson(0.6, shape) - rng.poisson(0.3, shape)),
    ("shares, 0.5 against 0.2", True, 0.3, lambda rng, shape: (rng.binomial(4, 0.5, shape) - rng.binomial(4, 0.2, shape)) / 4),
    ("damage in 0.2, spared in 0.1", False, 0.2, damage(0.2, 0.1)),
    *((f"damage in {part:g}", False, 2 * part, damage(part)) for part in DAMAGED),
)
"""Name, whether it is like what was recorded, mean, and the effect in each instance."""


def further(simulations: Simulations, sizes: Sequence[int] = SIZES) -> Iterator[Result]:
    for n in sizes:
        for number, (missing, unlike) in enumerate(((0.0, 0.0), (0.4, 0.0), (0.0, 0.5))):
            rng = np.random.default_rng((simulations.seed, 12, n, number))
            yield breaking_even(n, missing, unlike, simulations.resampling // 2, rng)


def effects(simulations: Simulations, sizes: Sequence[int] = VARIANTS) -> Iterator[Result]:
    """Yield the results for effects over instances. Experiments whose instances all differ by the same have no interval."""
    experiments = simulations.resampling
    for n in sizes:
        for number, (world, recorded, truth, draw) in enumerate(EFFECTS):
            rng = np.random.default_rng((simulations.seed, 16, n, number))
            contrasts = [
                bootstrap_mean({str(place): value for place, value in enumerate(row)})
                for row in draw(rng, (experiments, n)).tolist()
            ]
            ends = [(each.low, each.high) for each in contrasts if each.low is not None and each.high is not None]
            share = sum(low <= truth <= high for low, high in ends) / len(ends)
            absent = 1 - len(ends) / experiments
            kept = ("coverage", "effect over instances", world, recorded, n, "expanded percentile", share, experiments)
            yield Result(*kept, absent=absent, measure="effect")


def breaking_even(n: int, missing: float, unlike: float, experiments: int, rng: np.random.Generator) -> Result:
    """Return the result for break-even rates. `missing` is the share of pairs without a first pass."""
    saved = ROUNDS[0] - float(np.mean(FIRST_ROUNDS))
    truth, hits, known = EXTRA[0] / saved, 0, 0
    for _ in range(experiments):
        size = np.exp(rng.normal(size=n) * unlike - unlike**2 / 2)
        extra, ours, theirs = rng.normal(*EXTRA, n), rng.choice(FIRST_ROUNDS, n), rng.normal(*ROUNDS, n)
        kept = rng.random(n) >= missing
        passes = _by_pair(size * (5000 + extra), kept), _by_pair(size * 5000, kept)
        rounds = _by_pair(size * ours, kept | True), _by_pair(size * theirs, kept | True)
        estimate = break_even(passes, rounds)
        if estimate and estimate.low is not None and estimate.high is not None:
            known += 1
            hits += estimate.low <= truth <= estimate.high
    world = "unlike tasks" if unlike else f"{missing:.0%} of first passes missing" if missing else "all there"
    absent = 1 - known / experiments
    share = hits / known if known else float("nan")
    return Result(*("coverage", "break-even", world, not unlike, n, "expanded percentile", share, experiments), absent=absent)


def _by_pair(values: Values, kept: Values) -> dict[Pair, float]:
    return {("", place): float(value) for place, value in enumerate(values) if kept[place]}
