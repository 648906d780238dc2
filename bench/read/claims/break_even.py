"""Break-even: from how many failures a trial is the architecture with the dearer first pass cheaper?

A trial's tokens are its first pass plus a round for each failure. Then two architectures take the same at this many failures:

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
    """The number of failures per trial from which one architecture is cheaper than another. It is 0 if the architecture is
    cheaper at any rate, and infinite if it never is.

    low, high   the 95% interval, whose ends can be 0 or infinite too; None with fewer than two units that have both
    """

    rate: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PairMeans:
    """The values of a measure in two architectures, over the units that both have: pairs, or instances if there are several."""

    ours: Mean
    theirs: Mean


@dataclass(frozen=True)
class ArchitecturePair:
    """Two architectures under one condition. If they have a break-even rate, `name` is the architecture with the dearer first
    pass and the cheaper round; else it is the later of the two in the config.

    passes       tokens of a first pass, without faults
    rounds       tokens of a first round, under the condition's faults
    break_even   None if no unit has both first passes, or none has both rounds
    rejections   by verification, a trial without faults
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
                rivals = _comparison(name, other, free, struck, published)
                is_other_way = rivals.break_even and _less(rivals.passes) < 0 and _less(rivals.rounds) > 0
                pairs.append(_comparison(other, name, free, struck, published) if is_other_way else rivals)
            if any(pair.break_even for pair in pairs):
                by_condition[condition] = tuple(pairs)
    return by_condition


def _less(sides: PairMeans) -> float:
    return (sides.ours.mean or 0.0) - (sides.theirs.mean or 0.0)


def _comparison(
    name: str, other: str, free: Mapping[str, Arm], struck: Mapping[str, Arm], published: Published
) -> ArchitecturePair:
    passes = in_common(free[name].by_pair(FIRST_PASS.tokens.name), free[other].by_pair(FIRST_PASS.tokens.name))
    rounds = in_common(struck[name].by_pair(FIRST_ROUND.tokens.name), struck[other].by_pair(FIRST_ROUND.tokens.name))
    condition = struck[name].condition
    return ArchitecturePair(
        condition=condition,
        name=name,
        other=other,
        passes=_sides(*passes, "spent"),
        rounds=_sides(*rounds, "first_round"),
        break_even=break_even(passes, rounds),
        rejections=(free[name].mean("rejections"), free[other].mean("rejections")),
        published=_papers_rate(published, condition, name, other),
    )


def _sides(ours: Mapping[Pair, float], theirs: Mapping[Pair, float], measure: Measure) -> PairMeans:
    return PairMeans(*(amount_of(by_unit(values).values(), measure) for values in (ours, theirs)))


def _papers_rate(published: Published, condition: Condition, name: str, other: str) -> BreakEven | None:
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
    """Return from how many failures the first of the two is cheaper."""
    if rate is None:
        return NOT_MEASURED
    if rate.rate == math.inf:
        return "never"
    if {_number(each) for each in (rate.rate, rate.low, rate.high) if each is not None} == {_number(0)}:
        return "from the first on"
    bounds = "" if rate.low is None or rate.high is None else f" [{_number(rate.low)}, {_number(rate.high)}]"
    return f"{_number(rate.rate)}{bounds}"


def _number(value: float) -> str:
    return "never" if value == math.inf else f"{value:.2f}"


# The formula, and its interval

Both = tuple[Mapping[Pair, float], Mapping[Pair, float]]
"""The tokens of both architectures for the same pairs."""


def break_even(passes: Both, rounds: Both) -> BreakEven | None:
    """Return from how many failures per trial the first of two architectures is cheaper, by first passes and rounds. None if
    either is missing.

    Interval: the units are resampled, each with its first passes and its rounds (`bench.read.analysis.statistics.bootstrap`). A
    resample in which the first is dearer in both, or cheaper only in its first pass, has no such rate and counts as never. A
    resample without any first pass or any round is left out. There is an upper bound only if the saving of a round differs from
    0, as in Fieller's interval of a ratio (JRSS B 16, 1954).
    """
    (our_passes, their_passes), (our_rounds, their_rounds) = passes, rounds
    extra = {pair: our_passes[pair] - their_passes[pair] for pair in our_passes}
    saved = {pair: their_rounds[pair] - our_rounds[pair] for pair in our_rounds}
    if not extra or not saved:
        return None
    units = _units(extra, saved)
    rate = _rate(*np.nanmean(units, axis=0).tolist())
    known = int((~np.isnan(units)).sum(axis=0).min())
    if known < 2:
        return BreakEven(rate)
    again = np.concatenate([_rates_again(units, counts) for counts in resampled(len(units))])
    low, high = percentiles(again, known)
    least = paired_difference(their_rounds, our_rounds, "first_round").difference.low or 0.0
    return BreakEven(rate, low, high if least >= 0 else math.inf)


def _units(extra: Mapping[Pair, float], saved: Mapping[Pair, float]) -> Numbers:
    """Return a row for each pair, or for each instance if there are several: additional tokens of its first pass, tokens saved
    by its round; NaN if missing. Rows are sorted by name."""
    frame = pd.DataFrame({"extra": pd.Series(extra), "saved": pd.Series(saved)}).sort_index()
    by_instance = frame.groupby(level=0)
    return (by_instance.mean() if by_instance.ngroups > 1 else frame).to_numpy(float)


def _rates_again(units: Numbers, counts: Numbers) -> Numbers:
    """Return the break-even rate in each resample that has a first pass and a round."""
    known = ~np.isnan(units)
    numbers, sums = (_sums_again(values, counts) for values in (known.astype(float), np.where(known, units, 0.0)))
    complete = numbers.all(axis=1)
    return _rates(*(sums[complete] / numbers[complete]).T)


def _sums_again(values: Numbers, counts: Numbers) -> Numbers:
    """Return the sums of two columns in each resample. A product of matrices would run several threads, which wait longer than
    they work."""
    sums: Numbers = np.einsum("ij,kj->ik", counts, np.ascontiguousarray(values.T))
    return sums


def _rate(extra: float, saved: float) -> float:
    return float(_rates(np.array([extra]), np.array([saved]))[0])


def _rates(extra: Numbers, saved: Numbers) -> Numbers:
    """Return the break-even rates. `extra` is how many more tokens the first pass takes, and `saved` how many fewer the round
    takes."""
    saves = saved > 0
    without = np.where((saved == 0) & (extra < 0), 0.0, np.inf)
    return np.where(saves, np.maximum(0.0, extra) / np.where(saves, saved, 1.0), without)
