"""Two intervals that have their own resampling inside, called as a report calls them: where two architectures break even, and
what a token takes of the seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from calibration.experiments import Result, Simulations
from calibration.recoveries import FIRST_ROUNDS
from calibration.worlds import Values

from bench.read.analysis.statistics import Pair, parts_of
from bench.read.claims.break_even import break_even

SIZES = (5, 10, 20, 40)
EXTRA = (1160.0, 520.0)
"""Tokens that a first pass of `runtime_structured` takes more than `monolithic`'s on `multi_file_debugging` in
`paper-qwen2.5-coder-1.5b-instruct`, rounded: mean and sd."""
ROUNDS = (1670.0, 80.0)
"""Of a round of `monolithic` there."""
SECONDS = (0.009, 0.0016, 0.1)
"""What a token takes that is read, that is read again, and that is written, about as it was recorded there."""
CALLS = 8


def further(simulations: Simulations, sizes: Sequence[int] = SIZES) -> Iterator[Result]:
    for n in sizes:
        for number, (missing, unlike) in enumerate(((0.0, 0.0), (0.4, 0.0), (0.0, 0.5))):
            rng = np.random.default_rng((simulations.seed, 12, n, number))
            yield breaking_even(n, missing, unlike, simulations.resampling // 2, rng)
        for number, noise in enumerate((0.05, 0.3)):
            rng = np.random.default_rng((simulations.seed, 13, n, number))
            yield from parts(n, noise, simulations.resampling // 2, rng)


def breaking_even(n: int, missing: float, unlike: float, experiments: int, rng: np.random.Generator) -> Result:
    """`missing`: pairs without a first pass. `unlike`: the spread of the tasks' sizes, which all four measures share."""
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


def parts(n: int, noise: float, experiments: int, rng: np.random.Generator) -> Iterator[Result]:
    """`noise`: the spread of a call's seconds (sd of the logarithm), half of its variance shared by the calls of a cluster."""
    hits = np.zeros(len(SECONDS))
    clusters = np.repeat(np.arange(n), CALLS).tolist()
    for _ in range(experiments):
        amounts = rng.uniform((50, 0, 50), (1500, 1500, 600), (n * CALLS, 3)).round()
        both = np.repeat(rng.normal(size=n), CALLS) + rng.normal(size=n * CALLS)
        totals = amounts @ np.array(SECONDS) * np.exp(noise * both / np.sqrt(2) - noise**2 / 2)
        for place, (part, truth) in enumerate(
            zip(parts_of(amounts.tolist(), totals.tolist(), clusters) or (), SECONDS, strict=True)
        ):
            hits[place] += part.low is not None and part.high is not None and part.low <= truth <= part.high
    for token, count in zip(("read", "read again", "written"), hits.tolist(), strict=True):
        world = f"a token {token}, spread {noise}"
        yield Result("coverage", "part", world, noise < 0.1, n, "jackknife by cluster", count / experiments, experiments)
