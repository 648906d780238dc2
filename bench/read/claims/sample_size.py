"""The number of values that would decide a claim at 5% with a power of 80%, if the measured effect were the true effect.

The correction for several comparisons is taken into account. A pilot's spread is too small about half the time, so a wider
spread is assumed (`statistics.required_pairs`). The number is None if it is unknown: for one value, or values without spread.
"""

from __future__ import annotations

import math

from scipy import special

from bench.read.analysis.statistics import CONFIDENCE, Mean, required_pairs


def pairs_after_correction(difference: Mean, family: int, level: float) -> int | None:
    """Return the number of pairs with which a test in a family of this size finds this difference; None if it is unknown.

    The test's level is that of the first step of Holm's correction, level / family. The pairs are enough for the difference's
    size, and for a sign-flip p at that level: 2 / 2^n <= level / family.
    """
    level /= max(1, family)
    required = required_pairs(difference.mean, difference, level=level) if difference.mean else None
    return max(math.ceil(math.log2(2 / level)), required.cautious) if required else None


def trials_without_counterexample(tolerance: float) -> int:
    """Return the number of independent trials after which Wilson's interval ends within the tolerance of 0, if no trial is a
    counterexample."""
    z2 = float(special.ndtri((1 + CONFIDENCE) / 2)) ** 2
    return math.ceil(z2 * (1 - tolerance) / tolerance)
