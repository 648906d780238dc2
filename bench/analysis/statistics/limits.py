"""What an interval does not hold, as the calibration measured it: to be stated where the number is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from bench.analysis.statistics.intervals import CONFIDENCE, Mean
from bench.analysis.statistics.paired import Ratio
from bench.analysis.statistics.rates import Share
from bench.analysis.statistics.significance import PairedTest

BEARABLE = 0.93
"""A 95% interval that holds the truth less often is limited."""


@dataclass(frozen=True)
class Coverage:
    """How often the 95% interval of a mean held the truth in the worst of the simulated worlds: of those within what the
    committed run shows, and of those beyond, with rarer reruns or more skewed tokens."""

    recorded: float
    beyond: float


COVERAGE_OF_MEANS: Mapping[int, Coverage] = MappingProxyType(
    {
        3: Coverage(0.8351, 0.7774),
        5: Coverage(0.8576, 0.7286),
        10: Coverage(0.9201, 0.8336),
        30: Coverage(0.9405, 0.8802),
        100: Coverage(0.9471, 0.9188),
    }
)
"""Of means, mean paired differences (Student's t) and ratios of paired means (Fieller's), by n. A bootstrap's interval holds
less below ten values."""

COVERAGE_OF_RATES: Mapping[int, float] = MappingProxyType({3: 0.8306, 5: 0.8587, 10: 0.9044, 30: 0.9298, 100: 0.9206})
"""Wilson's at the worst rate, by n."""

FALSE_POSITIVES: Mapping[int, float] = MappingProxyType({10: 0.1115, 30: 0.125, 100: 0.068})
"""Of the sign-flip test at 5%, by pairs, where two arms have equal means and one of them reruns rarely. These and the above are
read off `reports/calibration/calibration.csv`, to which a test holds them."""

LEVEL = 0.05
TOLERABLE = 0.06
"""A test at 5% that finds more often what is not there is limited."""

Code = Literal["single", "no_spread", "coverage", "too_few", "shape"]


@dataclass(frozen=True)
class Limit:
    """`code` tells one kind from another, `text` is a note for below a table.

    measured   the lowest coverage, or the highest share of false positives, that the calibration found at this n; None where
               the limit is another
    """

    code: Code
    text: str
    measured: float | None = None


def limits_of(found: Mean | Ratio | Share | PairedTest) -> tuple[Limit, ...]:
    """Everything that has to be said beside this number; the same text for the same n, so that a table says it once."""
    if isinstance(found, Share):
        return _of_rate(found.instances or found.n)
    if isinstance(found, PairedTest):
        return _of_test(found)
    if isinstance(found, Ratio):
        return _single() if found.pairs == 1 else _of_mean(found.pairs)
    if found.n > 1 and found.sd == 0.0:
        return (_no_spread(found.n),)
    return _single() if found.n == 1 else _of_mean(found.n)


def _single() -> tuple[Limit, ...]:
    return (Limit("single", "N=1: one value has no spread and no interval"),)


def _no_spread(n: int) -> Limit:
    """What never came up in n trials has a chance up to 1 - 0.05^(1/n), at 95% (Hanley and Lippman-Hand, JAMA 249, 1983)."""
    unseen = 1 - (1 - CONFIDENCE) ** (1 / n)
    text = f"N={n}: equal values show no spread; another value may still come up in as many as {unseen:.0%} of trials"
    return Limit("no_spread", text)


def _of_mean(n: int) -> tuple[Limit, ...]:
    if not n:
        return ()
    size = _calibrated(n, COVERAGE_OF_MEANS)
    found = COVERAGE_OF_MEANS[size]
    lowest = min(found.recorded, found.beyond)
    if lowest >= BEARABLE:
        return ()
    text = (
        f"N={n}: in simulated experiments of N={size} a 95% interval held the true mean in {found.recorded:.1%} at the "
        f"least for tokens like the recorded ones, in {found.beyond:.1%} where reruns are rarer or tokens more skewed"
    )
    return (Limit("coverage", text, lowest),)


def _of_rate(n: int) -> tuple[Limit, ...]:
    if not n:
        return ()
    size = _calibrated(n, COVERAGE_OF_RATES)
    lowest = COVERAGE_OF_RATES[size]
    if lowest >= BEARABLE:
        return ()
    text = f"N={n}: Wilson's 95% interval of N={size} holds the true rate in {lowest:.1%} of experiments at the worst rate"
    return (Limit("coverage", text, lowest),)


def _of_test(found: PairedTest) -> tuple[Limit, ...]:
    if found.least is None:
        return ()
    if found.least > LEVEL:
        return (Limit("too_few", f"N={found.pairs}: no p below {found.least:.3g} can come of so few pairs"),)
    share = FALSE_POSITIVES[_calibrated(found.pairs, FALSE_POSITIVES)]
    if share <= TOLERABLE:
        return ()
    text = (
        f"N={found.pairs}: the test of a difference finds unlike shapes as well: arms of equal means, one of which reruns "
        f"rarely, came out different at 5% in {share:.1%} of simulated experiments"
    )
    return (Limit("shape", text, share),)


def _calibrated(n: int, by_size: Mapping[int, object]) -> int:
    """The largest size calibrated that is not above n; below all of them the smallest, which flatters."""
    return max((size for size in by_size if size <= n), default=min(by_size))
