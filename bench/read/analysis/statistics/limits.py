"""The limits of intervals and tests, as the calibration measured them: how often an interval holds the truth, and how often a
test errs. A report states them wherever the interval or the test is shown."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from bench.read.analysis.statistics.intervals import CONFIDENCE, Mean
from bench.read.analysis.statistics.paired import Ratio
from bench.read.analysis.statistics.rates import RateDifference, Share
from bench.read.analysis.statistics.significance import PairedTest

CALIBRATION_FILE = Path(__file__).with_name("calibrated.csv")
"""The worst coverages, which `nox -s calibrate` writes together with its report."""
MIN_COVERAGE = 0.93
"""A 95% interval that holds the truth less often has a limit, which a note below the table states."""
NARROW_COVERAGE = 0.9
"""A 95% interval that holds the truth less often is also marked wherever it is shown: it misses twice as often as it should."""
LEVEL = 0.05
MAX_FALSE_POSITIVES = 0.06
"""A test at 5% that errs more often has a limit."""
ROUNDING = 1e-6
MEASURE_NAMES: Mapping[str, str] = {
    "spent": "what a trial spends",
    "retry": "retry tokens",
    "first_round": "first rounds",
    "price": "prices",
    "score": "scores",
    "effect": "effects over instances",
}


@dataclass(frozen=True)
class Worst:
    """The worst calibrated case for one kind of number at one N: how often an interval with width held the truth, or how often
    a test found an effect that was not there. `recorded` is the worst case of the simulated worlds that resemble the recorded
    runs, and `beyond` of the worlds in which failures are rarer or tasks differ more."""

    recorded: float
    beyond: float


Limited = Mean | Ratio | Share | RateDifference
"""A number with an interval."""
LimitCode = Literal["single", "no_spread", "coverage", "too_few", "shape"]


@dataclass(frozen=True)
class Limit:
    """A limit on the use of a number. `code` is the kind of limit, `text` a note below a table.

    about      the kind of number, as the calibration names it; "" if the limit is the same for all kinds
    measured   the lowest coverage, or the highest share of false positives, in the calibration at this n; None for other limits
    is_narrow  whether the interval has no width, or holds the truth less often than NARROW_COVERAGE in the worst world
    """

    code: LimitCode
    text: str
    measured: float | None = None
    about: str = ""
    is_narrow: bool = False


class _Bounded(Protocol):
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def has_width(estimate: _Bounded) -> bool:
    """Whether the interval can prove anything. Equal values have an interval whose ends differ at most by rounding, which
    cannot."""
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and not math.isclose(low, high, rel_tol=ROUNDING)


def is_narrow(estimate: Limited) -> bool:
    """Whether the interval is too narrow at this N, so that it is marked wherever it is shown."""
    return any(limit.is_narrow for limit in limits_of(estimate))


def limits_of(estimate: Limited | PairedTest) -> tuple[Limit, ...]:
    """Return all limits that a reader must know of this number. Numbers of the same kind and n have the same text, so that a
    table states it once."""
    match estimate:
        case PairedTest():
            return _test_limits(estimate)
        case Share():
            return _rate_limits(estimate)
        case RateDifference():
            return _coverage_limits(estimate.pairs, "difference of rates", "the difference of two rates")
        case Ratio():
            return _mean_limits(estimate.pairs, estimate, "ratio of means", "a ratio of two means")
        case Mean(signed=True):
            name = f"a mean difference of {MEASURE_NAMES[estimate.measure]}"
            return _mean_limits(estimate.n, estimate, f"difference of {estimate.measure}", name)
        case Mean():
            return _mean_limits(
                estimate.n, estimate, f"mean of {estimate.measure}", f"a mean of {MEASURE_NAMES[estimate.measure]}"
            )


def _mean_limits(n: int, estimate: Mean | Ratio, about: str, name: str) -> tuple[Limit, ...]:
    """Return the limits of a mean or a ratio of n values."""
    if n == 1:
        return (Limit("single", "N=1: one value has no spread and no interval"),)
    if n and estimate.low is not None and not has_width(estimate):
        return (_no_spread(n),)
    return _coverage_limits(n, about, name)


def _no_spread(n: int) -> Limit:
    """Return the limit for n equal values. A value that never occurred in n trials has a chance of up to 1 - 0.05^(1/n), at 95%
    (Hanley and Lippman-Hand, JAMA 249, 1983)."""
    unseen = 1 - (1 - CONFIDENCE) ** (1 / n)
    text = (
        f"N={n}: all values are equal, so the interval proves nothing; another value can still occur in up to {unseen:.0%} of "
        "trials"
    )
    return Limit("no_spread", text, is_narrow=True)


def _rate_limits(share: Share) -> tuple[Limit, ...]:
    """Return the limits of a rate. An exact interval has none."""
    if share.is_exact:
        return ()
    if share.instances:
        return _coverage_limits(share.instances, "rate by instance", "a rate by instance")
    if not share.n:
        return ()
    size, worst = _worst_case(share.n, "rate")
    if worst.beyond >= MIN_COVERAGE:
        return ()
    coverage = f"{worst.beyond:.1%} of experiments at the worst rate"
    text = f"N={share.n}: a 95% interval of a rate holds the truth at N={size} in {coverage}"
    return (Limit("coverage", text, worst.beyond, "rate", worst.beyond < NARROW_COVERAGE),)


def _coverage_limits(n: int, about: str, name: str) -> tuple[Limit, ...]:
    """Return a limit if intervals of this kind of number hold the truth too seldom at this n."""
    if not n:
        return ()
    size, worst = _worst_case(n, about)
    lowest = min(worst.recorded, worst.beyond)
    if lowest >= MIN_COVERAGE:
        return ()
    coverage = f"{worst.recorded:.1%} of experiments simulated after the recorded runs, at the least"
    if worst.beyond < worst.recorded:
        coverage += f", and in {worst.beyond:.1%} where failures are rarer or tasks more unlike"
    text = f"N={n}: a 95% interval of {name} held the truth at N={size} in {coverage}"
    return (Limit("coverage", text, lowest, about, lowest < NARROW_COVERAGE),)


def _test_limits(test: PairedTest) -> tuple[Limit, ...]:
    """Return a limit if too few pairs differ for a p below 5%, or if the test errs too often at this number of pairs."""
    if test.least is None:
        return ()
    if test.least > LEVEL:
        few = f"{test.differ} of {test.pairs} pairs differ" if test.differ < test.pairs else f"N={test.pairs}"
        return (Limit("too_few", f"{few}: no p below {test.least:.3g} can come of so few pairs"),)
    share = _false_positives(test.pairs)
    if share <= MAX_FALSE_POSITIVES:
        return ()
    text = (
        f"N={test.pairs}: the test of a difference finds unlike shapes as well: arms of equal means, one of which reruns "
        f"rarely, came out different at 5% in {share:.1%} of simulated experiments"
    )
    return (Limit("shape", text, share),)


def _false_positives(pairs: int) -> float:
    """Return the share of false positives of the sign-flip test at this number of pairs. The share grows up to about 20 pairs
    and falls beyond, so the higher share of the two nearest calibrated sizes is returned."""
    by_size = worst_coverages()["sign-flip test"]
    below = max((size for size in by_size if size <= pairs), default=min(by_size))
    above = min((size for size in by_size if size >= pairs), default=max(by_size))
    return max(max(by_size[size].recorded, by_size[size].beyond) for size in (below, above))


@cache
def worst_coverages() -> Mapping[str, Mapping[int, Worst]]:
    """Return kind of number -> N -> its worst calibrated case."""
    worst: dict[str, dict[int, Worst]] = {}
    with CALIBRATION_FILE.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            worst.setdefault(row["about"], {})[int(row["n"])] = Worst(float(row["recorded"]), float(row["beyond"]))
    return worst


def _worst_case(n: int, about: str) -> tuple[int, Worst]:
    """Return the largest calibrated size that is at most n, and the worst case at that size. If n is below all sizes, return
    the smallest size, whose worst case is too favourable for n."""
    by_size = worst_coverages()[about]
    size = max((size for size in by_size if size <= n), default=min(by_size))
    return size, by_size[size]
