"""How many values would decide a claim at 5% with a power of 80%, if the measured effect were the true effect. Where several
questions are corrected together, the correction is taken into account.

Spreads are taken cautiously (`statistics.required_pairs`), because a pilot's spread is too small about half the time. None if
the number is unknown: only one value, values without spread, or a value that lies on a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from scipy import special

from bench.read.analysis.statistics import CONFIDENCE, Mean, Share, required_pairs
from bench.read.analysis.statistics.power import POWER
from bench.read.claims.ranges import PublishedRange


def pairs_after_correction(difference: Mean, family: int, level: float) -> int | None:
    """Return the pairs at which a test in a family of this size finds this difference: enough for its size at the first step of
    Holm's correction, level / family, and enough for a sign-flip p of that size, 2 / 2^n <= level / family."""
    level /= max(1, family)
    enough = required_pairs(difference.mean, difference, level=level) if difference.mean else None
    return max(math.ceil(math.log2(2 / level)), enough.cautious) if enough else None


def values_for_the_mean(mean: Mean, wanted: PublishedRange) -> int | None:
    """Return the number of values at which the mean can be told apart from these bounds."""
    return _most(_cautious(None if mean.mean is None else mean.mean - bound, mean) for bound in (wanted.low, wanted.high))


def trials_for_the_rate(share: Share, wanted: PublishedRange) -> int | None:
    """Return the number of trials at which Wilson's interval can be told apart from these bounds. The bounds 0 and 1 hold for
    every rate and are ignored.

    Source: Fleiss, Statistical Methods for Rates and Proportions, 2nd edition (1981), section 2.
    """
    bounds = [bound for bound in (wanted.low, wanted.high) if 0 < bound < 1]
    return _most(None if share.rate is None else _for_rate(share.rate, bound) for bound in bounds)


def trials_without_one(tolerance: float) -> int:
    """Return the number of independent trials after which Wilson's interval ends within the tolerance of 0, if no trial is a
    counterexample."""
    z2 = float(special.ndtri((1 + CONFIDENCE) / 2)) ** 2
    return math.ceil(z2 * (1 - tolerance) / tolerance)


def _for_rate(rate: float, bound: float) -> int | None:
    if rate == bound:
        return None
    level, power = float(special.ndtri((1 + CONFIDENCE) / 2)), float(special.ndtri(POWER))
    spread = level * math.sqrt(bound * (1 - bound)) + power * math.sqrt(rate * (1 - rate))
    return max(2, math.ceil((spread / (rate - bound)) ** 2))


def _cautious(distance: float | None, pilot: Mean) -> int | None:
    pairs = required_pairs(distance, pilot) if distance else None
    return pairs.cautious if pairs else None


def _most(numbers: Iterable[int | None]) -> int | None:
    """Return the greatest of these numbers, since the value must be told apart from both bounds. None if one of them is
    None."""
    known = list(numbers)
    return max((number for number in known if number is not None), default=None) if None not in known else None
