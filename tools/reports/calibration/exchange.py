"""How often the claims' verdicts are wrong where there is no difference, and how often they are reached where there is one.

A/A: within each pair of recorded trials the architectures' labels are exchanged at random, and every claim that compares two is
judged anew, by the code that judges a report's. No architecture differs from another then: each verdict on a side is false.
Power: the pairs are drawn with replacement, as often as there are, and judged anew: they differ by what was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from calibration.experiments import Simulations
from scipy import stats

from bench.read.analysis.claim import RateClaim, RatioClaim
from bench.read.analysis.frames import Run, load_run
from bench.read.analysis.published import Published, load_published
from bench.read.claims.verdicts import Judgement, judge_all

RUNS = (
    "paper-qwen2.5-coder-1.5b-instruct",
    "paper-qwen2.5-coder-0.5b-instruct",
)
ONE_SIDED = ("holds", "holds, size differs", "contradicted")
"""Verdicts that say which of two architectures lies above the other."""
ANY = "any of them"
PAIR = ["scenario", "model", "plan", "instance", "repetition"]

Again = Callable[[Run, np.random.Generator], Run]


@dataclass(frozen=True)
class Verdicts:
    """One claim in one run.

    pairs      that the claim was judged by; the most of any claim where it is `ANY`
    verdict    the one that the report gives
    false      in so many of `exchanges` a verdict on either side
    reached    in so many of `redrawn` a verdict on the side that was measured; of `ANY` none are drawn
    """

    run: str
    claim: str
    pairs: int
    verdict: str
    false: int
    exchanges: int
    reached: int = 0
    redrawn: int = 0

    @property
    def upper(self) -> float:
        """The upper 95% limit of the share of false verdicts: Clopper and Pearson, Biometrika 26 (1934)."""
        return float(stats.binomtest(self.false, self.exchanges).proportion_ci(0.95, "exact").high)


def verdicts_of_runs(results: Path, simulations: Simulations) -> Iterator[Verdicts]:
    for place, name in enumerate(RUNS):
        rng = np.random.default_rng((simulations.seed, 11, place))
        yield from verdicts(name, load_run(results / name), simulations, rng)


def verdicts(name: str, run: Run, simulations: Simulations, rng: np.random.Generator) -> Iterator[Verdicts]:
    """Return the verdicts on the comparisons that the run can judge, and on any of them at once."""
    published = load_published()
    comparisons = tuple(claim for claim in published.claim if not isinstance(claim, RateClaim))
    published = published.model_copy(update={"claim": comparisons})
    judged = {judgement.claim.id: judgement for judgement in judge_all(run, published)}
    measured = {claim: judgement.measured.n for claim, judgement in judged.items() if judgement.measured}
    false = _counted(run, published, exchanged, simulations.exchanges, rng)
    there = _counted(run, published, resampled, simulations.redrawn, rng)
    for claim, pairs in measured.items():
        reached = there[claim, _measured_side(judged[claim])]
        counts = false[claim, 1] + false[claim, -1], simulations.exchanges, reached, simulations.redrawn
        yield Verdicts(name, claim, pairs, judged[claim].tested or "", *counts)
    yield Verdicts(name, ANY, max(measured.values()), "", false[ANY, 0], simulations.exchanges)


def _counted(run: Run, published: Published, again: Again, times: int, rng: np.random.Generator) -> Counter[tuple[str, int]]:
    """Return (claim, side) -> how often the verdict was on that side. (`ANY`, 0) counts how often there was one at all."""
    sides_drawn: Counter[tuple[str, int]] = Counter()
    for _ in range(times):
        sides = {
            judgement.claim.id: _side(judgement)
            for judgement in judge_all(again(run, rng), published)
            if judgement.tested in ONE_SIDED
        }
        sides_drawn.update(sides.items())
        sides_drawn[ANY, 0] += bool(sides)
    return sides_drawn


def _side(judgement: Judgement) -> int:
    """Return the side of a verdict: 1 as the claim says, -1 the other way round."""
    return -1 if judgement.tested == "contradicted" else 1


def _measured_side(judgement: Judgement) -> int:
    """Return the side of our number, whatever the verdict."""
    ratio = isinstance(judgement.claim, RatioClaim)
    value = judgement.measured.value if judgement.measured else None
    above = value is not None and value > (1.0 if ratio else 0.0)
    return 1 if above == (not ratio or judgement.expected > 1.0) else -1


def exchanged(run: Run, rng: np.random.Generator) -> Run:
    """Return the run with the labels of the architectures permuted among the trials of each pair."""
    trials = run.trials.sort_values(PAIR, kind="stable")
    mixed = rng.random(len(trials))
    order = np.lexsort((mixed, trials.groupby(PAIR, sort=False).ngroup().to_numpy()))
    return replace(run, trials=trials.assign(architecture=trials["architecture"].to_numpy()[order]))


def resampled(run: Run, rng: np.random.Generator) -> Run:
    """Return as many pairs, drawn with replacement: instances, or the repetitions of one instance. All architectures get the
    same."""
    parts = [_drawn(trials, rng) for _, trials in run.trials.groupby("scenario", sort=False)]
    return replace(run, trials=pd.concat(parts, ignore_index=True))


def _drawn(trials: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    unit = "instance" if trials["instance"].nunique() > 1 else "repetition"
    by_unit = dict(list(trials.groupby(unit, sort=True)))
    known = list(by_unit)
    drawn = rng.integers(0, len(known), len(known))
    parts = [by_unit[known[number]].assign(**{unit: known[place]}) for place, number in enumerate(drawn.tolist())]
    return pd.concat(parts)
