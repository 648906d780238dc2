"""How many values would decide a claim at 5% with a power of 80%, if the measured effect were the true effect. Where several
questions are corrected together, the correction is taken into account.

Spreads are taken cautiously (`statistics.required_pairs`), because a pilot's spread is too small about half the time. None if
the number is unknown: only one value, values without spread, or a value that lies on a bound.
"""

from __future__ import annotations

import math

from scipy import special

from bench.read.analysis.statistics import CONFIDENCE, Mean, required_pairs


def pairs_after_correction(difference: Mean, family: int, level: float) -> int | None:
    """Return the pairs at which a test in a family of this size finds this difference: enough for its size at the first step of
    Holm's correction, level / family, and enough for a sign-flip p of that size, 2 / 2^n <= level / family."""
    level /= max(1, family)
    enough = required_pairs(difference.mean, difference, level=level) if difference.mean else None
    return max(math.ceil(math.log2(2 / level)), enough.cautious) if enough else None


def trials_without_one(tolerance: float) -> int:
    """Return the number of independent trials after which Wilson's interval ends within the tolerance of 0, if no trial is a
    counterexample."""
    z2 = float(special.ndtri((1 + CONFIDENCE) / 2)) ** 2
    return math.ceil(z2 * (1 - tolerance) / tolerance)
