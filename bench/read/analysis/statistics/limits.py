"""The limits of an interval, as the calibration measured them. They are stated wherever the interval is shown."""

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

CALIBRATED = Path(__file__).with_name("calibrated.csv")
"""Written by `nox -s calibrate`, beside its report."""
BEARABLE = 0.93
"""A 95% interval is limited if it holds the truth less often."""
NARROW = 0.9
"""An interval is marked wherever it stands if it holds the truth less often: it misses twice as often as it should."""
LEVEL = 0.05
TOLERABLE = 0.06
"""A test at 5% is limited if it errs more often."""
ROUNDING = 1e-6
NAMES: Mapping[str, str] = {
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
    a test found an effect that was not there. It covers the simulated worlds that resemble the recorded runs, and apart from
    them the worlds `beyond`, in which failures are rarer or tasks differ more."""

    recorded: float
    beyond: float


Limited = Mean | Ratio | Share | RateDifference
"""A number with an interval."""
LimitCode = Literal["single", "no_spread", "coverage", "too_few", "shape"]


@dataclass(frozen=True)
class Limit:
    """A limit on the use of a number. `code` is the kind of limit, `text` a note below a table.

    about      the kind of number, as the calibration names it; "" if it makes no difference
    measured   the lowest coverage, or the highest share of false positives, in the calibration at this n; None for other limits
    is_narrow  in the worst of these worlds the interval holds the truth less often than NARROW, or it has no width
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
    """Return whether the interval can be taken as proof. Equal values have an interval without width, except for rounding."""
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and not math.isclose(low, high, rel_tol=ROUNDING)


def is_narrow(estimate: Limited) -> bool:
    """Return whether the interval is too narrow at this N. A mark then stands wherever the interval is shown."""
    return any(limit.is_narrow for limit in limits_of(estimate))


def limits_of(estimate: Limited | PairedTest) -> tuple[Limit, ...]:
    """Return all limits that a reader must know of this number. The text is the same for the same n, so that a table states it
    once."""
    match estimate:
        case PairedTest():
            return _of_test(estimate)
        case Share():
            return _of_rate(estimate)
        case RateDifference():
            return _of(estimate.pairs, "difference of rates", "the difference of two rates")
        case Ratio():
            return _of_one_or_more(estimate.pairs, estimate, "ratio of means", "a ratio of two means")
        case Mean(signed=True):
            name = f"a mean difference of {NAMES[estimate.measure]}"
            return _of_one_or_more(estimate.n, estimate, f"difference of {estimate.measure}", name)
        case Mean():
            return _of_one_or_more(estimate.n, estimate, f"mean of {estimate.measure}", f"a mean of {NAMES[estimate.measure]}")


def _of_one_or_more(n: int, estimate: Mean | Ratio, about: str, name: str) -> tuple[Limit, ...]:
    if n == 1:
        return (Limit("single", "N=1: one value has no spread and no interval"),)
    if n and estimate.low is not None and not has_width(estimate):
        return (_no_spread(n),)
    return _of(n, about, name)


def _no_spread(n: int) -> Limit:
    """Return the limit for equal values. What never occurred in n trials has a chance of up to 1 - 0.05^(1/n), at 95% (Hanley
    and Lippman-Hand, JAMA 249, 1983)."""
    unseen = 1 - (1 - CONFIDENCE) ** (1 / n)
    text = (
        f"N={n}: all values are equal, so the interval proves nothing; another value can still occur in up to {unseen:.0%} of "
        "trials"
    )
    return Limit("no_spread", text, is_narrow=True)


def _of_rate(share: Share) -> tuple[Limit, ...]:
    if share.is_exact:
        return ()
    if share.instances:
        return _of(share.instances, "rate by instance", "a rate by instance")
    if not share.n:
        return ()
    size, worst = _worst_case(share.n, "rate")
    if worst.beyond >= BEARABLE:
        return ()
    held = f"{worst.beyond:.1%} of experiments at the worst rate"
    text = f"N={share.n}: a 95% interval of a rate holds the truth at N={size} in {held}"
    return (Limit("coverage", text, worst.beyond, "rate", worst.beyond < NARROW),)


def _of(n: int, about: str, name: str) -> tuple[Limit, ...]:
    if not n:
        return ()
    size, worst = _worst_case(n, about)
    lowest = min(worst.recorded, worst.beyond)
    if lowest >= BEARABLE:
        return ()
    held = f"{worst.recorded:.1%} of experiments simulated after the recorded runs, at the least"
    if worst.beyond < worst.recorded:
        held += f", and in {worst.beyond:.1%} where failures are rarer or tasks more unlike"
    text = f"N={n}: a 95% interval of {name} held the truth at N={size} in {held}"
    return (Limit("coverage", text, lowest, about, lowest < NARROW),)


def _of_test(test: PairedTest) -> tuple[Limit, ...]:
    if test.least is None:
        return ()
    if test.least > LEVEL:
        few = f"{test.differ} of {test.pairs} pairs differ" if test.differ < test.pairs else f"N={test.pairs}"
        return (Limit("too_few", f"{few}: no p below {test.least:.3g} can come of so few pairs"),)
    share = _errs(test.pairs)
    if share <= TOLERABLE:
        return ()
    text = (
        f"N={test.pairs}: the test of a difference finds unlike shapes as well: arms of equal means, one of which reruns "
        f"rarely, came out different at 5% in {share:.1%} of simulated experiments"
    )
    return (Limit("shape", text, share),)


def _errs(pairs: int) -> float:
    """Return the share of false positives at this number of pairs. The share grows up to about 20 pairs and falls beyond, so
    the worse of the two nearest calibrated sizes is returned."""
    by_size = worst_coverages()["sign-flip test"]
    below, above = (
        max((size for size in by_size if size <= pairs), default=min(by_size)),
        min((size for size in by_size if size >= pairs), default=max(by_size)),
    )
    return max(max(by_size[size].recorded, by_size[size].beyond) for size in (below, above))


@cache
def worst_coverages() -> Mapping[str, Mapping[int, Worst]]:
    """Return kind of number -> N -> the worst coverage."""
    worst: dict[str, dict[int, Worst]] = {}
    with CALIBRATED.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            worst.setdefault(row["about"], {})[int(row["n"])] = Worst(float(row["recorded"]), float(row["beyond"]))
    return worst


def _worst_case(n: int, about: str) -> tuple[int, Worst]:
    """Return the worst case at the largest calibrated size that is at most n. Below all sizes it is the worst case at the
    smallest size, which is too favourable."""
    by_size = worst_coverages()[about]
    size = max((size for size in by_size if size <= n), default=min(by_size))
    return size, by_size[size]
