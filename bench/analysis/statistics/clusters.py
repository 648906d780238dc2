"""Several packs together: a statement about these packs, or about packs at large, which are two things.

Trials of one pack have its task in common. They say much about that pack and, all together, one thing about packs at large;
so there the pack is the unit, and a hundred repetitions do not make two packs three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from bench.analysis.statistics.intervals import CONFIDENCE, Mean, mean_of

FEWEST_PACKS = 5
"""Below, nothing is said of packs at large. Two packs bear an interval of nine of their standard deviations to each side
(t(1) / sqrt(2)), four one of 1.6, five one of 1.2; and that their means lie near enough to normal cannot be seen in so few."""


@dataclass(frozen=True)
class Refused:
    """A statement that the data do not bear; `reason` is one line for whoever asked for it."""

    reason: str


@dataclass(frozen=True)
class Pooled:
    """The mean of the packs' means, each pack weighing the same, with its 95% interval as a statement about these packs.

    n           values in all packs
    low, high   None where a pack has fewer than two values
    """

    packs: int
    n: int
    mean: float | None
    low: float | None
    high: float | None


def over_these_packs(by_pack: Mapping[str, Sequence[float]]) -> Pooled:
    """What the repetitions say of these packs: the spread between packs does not enter, as no other pack is spoken of.

    Sources: Welch, Biometrika 34 (1947), and Satterthwaite, Biometrics Bulletin 2 (1946), for the degrees of freedom.
    Raises ValueError for a value that is no finite number.
    """
    means = [mean_of(values) for values in by_pack.values()]
    centres = [one.mean for one in means if one.mean is not None]
    n = sum(one.n for one in means)
    if not means or len(centres) < len(means):
        return Pooled(len(means), n, None, None, None)
    centre = math.fsum(centres) / len(means)
    half = _half(means)
    return Pooled(len(means), n, centre, *((None, None) if half is None else (centre - half, centre + half)))


def _half(means: Sequence[Mean]) -> float | None:
    """Half the width of the interval; None where a pack has no spread to go by."""
    shares = [(one.sd / len(means)) ** 2 / one.n for one in means if one.sd is not None]
    if len(shares) < len(means):
        return None
    variance = math.fsum(shares)
    if not variance:
        return 0.0
    degrees = variance**2 / math.fsum(share**2 / (one.n - 1) for share, one in zip(shares, means, strict=True))
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees)) * math.sqrt(variance)


def over_packs_at_large(by_pack: Mapping[str, Sequence[float]]) -> Mean | Refused:
    """What the packs, taken as drawn at random, say of packs at large: Student's t on their means; `n` is the packs'.

    Source: Donald and Lang, Review of Economics and Statistics 89 (2007).
    Raises ValueError for a value that is no finite number.
    """
    means = [one.mean for one in map(mean_of, by_pack.values()) if one.mean is not None]
    if len(means) < FEWEST_PACKS:
        return Refused(
            f"{len(means)} packs with values: a statement about packs at large takes at least {FEWEST_PACKS}; "
            "what the repetitions support is a statement about these packs"
        )
    return mean_of(means)
