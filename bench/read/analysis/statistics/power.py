"""The power of a paired t test: how many pairs find a difference, and what difference so many pairs find."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from bench.read.analysis.statistics.intervals import CONFIDENCE, Mean

POWER = 0.8
SPREAD_CONFIDENCE = 0.8
"""The confidence of the upper limit of the spread that `RequiredPairs.cautious` assumes."""
MIN_APPROXIMATED_PAIRS = 1000
"""From this number of pairs on, the corrected normal approximation errs by less than one pair in a thousand."""


@dataclass(frozen=True)
class RequiredPairs:
    """The number of pairs that a test needs. `plain` assumes that the spread of the pilot's pairs is the true spread.
    `cautious` assumes a larger spread, which the true spread exceeds only one time in five."""

    plain: int
    cautious: int


def required_pairs(difference: float, pilot: Mean, power: float = POWER, level: float = 1 - CONFIDENCE) -> RequiredPairs | None:
    """Return the number of pairs with which a paired t test at this level finds a true mean `difference` with this power. None
    if the difference is 0 or the pilot has no spread.

    `pilot` is the mean of paired differences. Only its spread is used. About every second pilot has less spread than the truth,
    so the plain number is too small about every second time: plan with the cautious number.

    Sources: the power of the t test by the noncentral t distribution, Cohen, Statistical Power Analysis (1988), chapter 2; the
    upper limit of the spread, Browne, On the use of a pilot sample, Statistics in Medicine 14 (1995).
    Raises ValueError unless 0.05 < power < 1.
    """
    if not 1 - CONFIDENCE < power < 1:
        raise ValueError(f"a power of {power} cannot be planned for")
    if not difference or not pilot.sd:
        return None
    degrees = pilot.n - 1
    upper = pilot.sd * math.sqrt(degrees / float(2 * special.gammaincinv(degrees / 2, 1 - SPREAD_CONFIDENCE)))
    return RequiredPairs(_pairs(abs(difference) / pilot.sd, power, level), _pairs(abs(difference) / upper, power, level))


def found_difference(margin: float, spread: float, pairs: int, power: float = POWER, level: float = 1 - CONFIDENCE) -> float:
    """Return the least true mean difference of which this many pairs show, with this power, that it is greater than 0, by a
    paired t test at this level, and that it is measured as greater than the margin."""
    error = spread / math.sqrt(pairs)
    threshold = max(margin, float(special.stdtrit(pairs - 1, 1 - level / 2)) * error)
    return threshold + float(special.stdtrit(pairs - 1, power)) * error


def _pairs(effect: float, power: float, level: float) -> int:
    """Return the number of pairs that find an `effect`: the difference divided by its standard deviation."""
    z = float(special.ndtri(1 - level / 2))
    pairs = ((z + float(special.ndtri(power))) / effect) ** 2
    if pairs > MIN_APPROXIMATED_PAIRS:
        return math.ceil(pairs + z**2 / 2)
    n = max(2, math.floor(pairs))
    while power_of(effect, n, level) < power:
        n += 1
    return n


def power_of(effect: float, pairs: int, level: float = 1 - CONFIDENCE) -> float:
    """Return the power of a two-sided paired t test at this level for a true `effect`: the difference divided by its standard
    deviation."""
    critical = float(special.stdtrit(pairs - 1, 1 - level / 2))
    shift = effect * math.sqrt(pairs)
    return float(special.nctdtr(pairs - 1, -shift, -critical) + special.nctdtr(pairs - 1, shift, -critical))
