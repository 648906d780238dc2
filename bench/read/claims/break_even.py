"""The break-even rate of two architectures: the number of failures per trial from which the one with the dearer first pass and
the cheaper repair takes fewer tokens in all.

A trial's tokens are taken as its first pass plus a round for each failure. Then two architectures take the same number at:

    f* = (pass_A - pass_B) / (round_B - round_A)

This assumes that both fail equally often, which need not be so: each architecture's rejection rate is shown too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from bench.read.analysis.arms import Arm, Arms, Condition
from bench.read.analysis.metrics import FIRST_PASS, FIRST_ROUND, PUBLISHED_PASS, PUBLISHED_ROUND
from bench.read.analysis.published import Published
from bench.read.analysis.statistics import (
    Mean,
    Measure,
    Pair,
    amount_of,
    by_unit,
    in_common,
    paired_difference,
    percentiles,
    resampled,
)
from bench.read.analysis.statistics.bootstrap import Numbers
from bench.record.config import FAULT_FREE


@dataclass(frozen=True)
class BreakEven:
    """The break-even of one architecture against another.

    rate        the number of failures per trial from which the one architecture is cheaper: 0 if it is always cheaper, infinite
                if never
    low, high   the 95% interval, whose ends can be 0 or infinite too; None with fewer than two first passes or rounds
    """

    rate: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PairMeans:
    """The means of a measure in two architectures, over the pairs of trials that both have, or over instances if there are
    several."""

    ours: Mean
    theirs: Mean


@dataclass(frozen=True)
class ArchitecturePair:
    """Two architectures under one condition. If they have a break-even rate, `name` is the architecture with the dearer first
    pass and the cheaper round; else it is the later of the two in the config.

    passes       tokens of a first pass, without faults
    rounds       tokens of a first round, under the condition's faults
    break_even   None if no unit has both first passes, or none has both rounds
    rejections   the mean number of rejections by verification in a trial without faults, of each
    published    the break-even by the paper's figures; None if it has none
    """

    condition: Condition
    name: str
    other: str
    passes: PairMeans
    rounds: PairMeans
    break_even: BreakEven | None
    rejections: tuple[Mean, Mean]
    published: BreakEven | None


def architecture_pairs(arms: Arms, published: Published) -> Mapping[Condition, tuple[ArchitecturePair, ...]]:
    """Return the pairs of architectures for each condition with faults. A condition in which no two architectures can be
    compared is left out."""
    by_condition: dict[Condition, tuple[ArchitecturePair, ...]] = {}
    for condition, struck in arms.items():
        free = arms.get(replace(condition, plan=FAULT_FREE), {})
        if condition.plan != FAULT_FREE:
            pairs: list[ArchitecturePair] = []
            for other, name in combinations([name for name in struck if name in free], 2):
                pair = _comparison(name, other, free, struck, published)
                # The first of the two must be the architecture with the dearer first pass and the cheaper round.
                if pair.break_even and _difference(pair.passes) < 0 and _difference(pair.rounds) > 0:
                    pair = _comparison(other, name, free, struck, published)
                pairs.append(pair)
            if any(pair.break_even for pair in pairs):
                by_condition[condition] = tuple(pairs)
    return by_condition


def _difference(means: PairMeans) -> float:
    """Return the first architecture's mean minus the second's. An unknown mean counts as 0."""
    return (means.ours.mean or 0.0) - (means.theirs.mean or 0.0)


def _comparison(
    name: str, other: str, free: Mapping[str, Arm], struck: Mapping[str, Arm], published: Published
) -> ArchitecturePair:
    """Return the comparison of two architectures. `free` are the arms without faults, `struck` the arms under the condition's
    faults."""
    passes = in_common(free[name].by_pair(FIRST_PASS.tokens.name), free[other].by_pair(FIRST_PASS.tokens.name))
    rounds = in_common(struck[name].by_pair(FIRST_ROUND.tokens.name), struck[other].by_pair(FIRST_ROUND.tokens.name))
    condition = struck[name].condition
    return ArchitecturePair(
        condition=condition,
        name=name,
        other=other,
        passes=_pair_means(*passes, "spent"),
        rounds=_pair_means(*rounds, "first_round"),
        break_even=break_even(passes, rounds),
        rejections=(free[name].mean("rejections"), free[other].mean("rejections")),
        published=_break_even_in_paper(published, condition, name, other),
    )


def _pair_means(ours: Mapping[Pair, float], theirs: Mapping[Pair, float], measure: Measure) -> PairMeans:
    """Return the means of two architectures' values, over instances if there are several."""
    return PairMeans(*(amount_of(by_unit(values).values(), measure) for values in (ours, theirs)))


def _break_even_in_paper(published: Published, condition: Condition, name: str, other: str) -> BreakEven | None:
    """Return the break-even by the paper's figures. None if one of the four figures is missing."""
    cells = [
        published.value(condition.scenario, condition.plan, measure, architecture)
        for measure in (PUBLISHED_PASS, PUBLISHED_ROUND)
        for architecture in (name, other)
    ]
    if None in cells:
        return None
    our_pass, their_pass, our_round, their_round = (cell.mean for cell in cells if cell)
    return BreakEven(_rate(our_pass - their_pass, their_round - our_round))


NOT_MEASURED = "no measurement"


def rate_in_words(rate: BreakEven | None) -> str:
    """Return in words from how many failures per trial the first architecture is cheaper."""
    if rate is None:
        return NOT_MEASURED
    if rate.rate == math.inf:
        return "never"
    numbers = [_rate_text(number) for number in (rate.rate, rate.low, rate.high) if number is not None]
    if set(numbers) == {_rate_text(0)}:  # the rate and its bounds are shown as 0
        return "from the first on"
    bounds = "" if rate.low is None or rate.high is None else f" [{_rate_text(rate.low)}, {_rate_text(rate.high)}]"
    return f"{_rate_text(rate.rate)}{bounds}"


def _rate_text(value: float) -> str:
    return "never" if value == math.inf else f"{value:.2f}"


# The formula, and its interval

PairTokens = tuple[Mapping[Pair, float], Mapping[Pair, float]]
"""The tokens of the first and of the second architecture in the same pairs of trials."""


def break_even(passes: PairTokens, rounds: PairTokens) -> BreakEven | None:
    """Return from how many failures per trial the first of two architectures is cheaper, by the tokens of first passes and of
    rounds. None if there are no passes or no rounds.

    For the interval, the pairs are resampled (`bench.read.analysis.statistics.bootstrap`), or the instances if there are
    several. A resample in which the first architecture is dearer in both, or cheaper only in its first pass, has no break-even
    and counts as never. A resample without a first pass or without a round is left out. There is an upper bound only if the
    saving of a round differs from 0, as in Fieller's interval of a ratio (JRSS B 16, 1954).
    """
    (our_passes, their_passes), (our_rounds, their_rounds) = passes, rounds
    extra = {pair: our_passes[pair] - their_passes[pair] for pair in our_passes}
    saved = {pair: their_rounds[pair] - our_rounds[pair] for pair in our_rounds}
    if not extra or not saved:
        return None
    units = _units(extra, saved)
    rate = _rate(*np.nanmean(units, axis=0).tolist())
    n = int((~np.isnan(units)).sum(axis=0).min())  # the number of passes or of rounds, whichever is less
    if n < 2:
        return BreakEven(rate)
    resampled_rates = np.concatenate([_resampled_rates(units, counts) for counts in resampled(len(units))])
    low, high = percentiles(resampled_rates, n)
    least_saved = paired_difference(their_rounds, our_rounds, "first_round").difference.low or 0.0
    return BreakEven(rate, low, high if least_saved >= 0 else math.inf)


def _units(extra: Mapping[Pair, float], saved: Mapping[Pair, float]) -> Numbers:
    """Return an array of shape (units, 2): the additional tokens of a first pass, and the tokens saved by a round; NaN if
    missing. A unit is a pair of trials, or an instance if there are several. Units are sorted by name."""
    frame = pd.DataFrame({"extra": pd.Series(extra), "saved": pd.Series(saved)}).sort_index()
    by_instance = frame.groupby(level=0)
    return (by_instance.mean() if by_instance.ngroups > 1 else frame).to_numpy(float)


def _resampled_rates(units: Numbers, counts: Numbers) -> Numbers:
    """Return the break-even rate of each resample that has a first pass and a round. `counts[i, j]`: how often resample i has
    unit j."""
    is_known = ~np.isnan(units)
    numbers = _resampled_sums(is_known.astype(float), counts)
    sums = _resampled_sums(np.where(is_known, units, 0.0), counts)
    complete = numbers.all(axis=1)  # resamples with a first pass and a round
    return _rates(*(sums[complete] / numbers[complete]).T)


def _resampled_sums(values: Numbers, counts: Numbers) -> Numbers:
    """Return the sums of two columns of values in each resample, as an array of shape (resamples, 2). `einsum` runs one
    thread; a product of matrices would run several, which wait longer than they work."""
    sums: Numbers = np.einsum("ij,kj->ik", counts, np.ascontiguousarray(values.T))
    return sums


def _rate(extra: float, saved: float) -> float:
    """Return the break-even rate of one pair of architectures (`_rates`)."""
    return float(_rates(np.array([extra]), np.array([saved]))[0])


def _rates(extra: Numbers, saved: Numbers) -> Numbers:
    """Return break-even rates, in failures per trial: `extra` / `saved`, from which on the first architecture costs less. It is
    0 for an architecture that always costs less, and infinite if it never does.

    `extra`: how many tokens more the first pass takes; `saved`: how many tokens fewer one retry round takes.
    """
    is_saving = saved > 0
    otherwise = np.where((saved == 0) & (extra < 0), 0.0, np.inf)
    return np.where(is_saving, np.maximum(0.0, extra) / np.where(is_saving, saved, 1.0), otherwise)
