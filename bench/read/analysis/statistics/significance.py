"""Tests whether a difference could be chance: in pairs, between groups, between rates, and in several tests at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from bench.read.analysis.statistics.clusters import Pair
from bench.read.analysis.statistics.paired import differences_of
from bench.read.analysis.statistics.rates import Share

Key = TypeVar("Key", bound=Hashable)

SEED = 260515425
RESAMPLES = 9999
"""Resamples of a bootstrap, and random flips or permutations of a test that cannot list all."""


def generator() -> np.random.Generator:
    """Return a new generator with the declared seed. Every call without a generator draws the same numbers."""
    return np.random.default_rng(SEED)


# Pairs

DRAWN = 1 << 20
"""The most random signs, or places of units, in memory."""
BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[np.newaxis], axis=0)
"""The bits of each byte: bits down, bytes across."""


@dataclass(frozen=True)
class PairedTest:
    """A test whether a difference could be chance.

    p        two-sided; None without a pair
    least    the least p that this number of pairs can give: above 0.05 the test cannot find anything at that level
    """

    pairs: int
    p: float | None
    least: float | None


def paired_test(values: Mapping[Pair, float], others: Mapping[Pair, float], resamples: int = RESAMPLES) -> PairedTest:
    """Return the sign-flip test of the mean difference: exact up to thirteen pairs, beyond with `resamples` random flips.

    If the arms do not differ, each difference is as likely with the other sign. p is the share of all assignments of signs
    whose mean is at least as far from zero as the observed one. The test assumes symmetry, but no distribution. With several
    instances each one's mean difference counts once.

    Source: Fisher, The Design of Experiments (1935), section 21.
    """
    differences = np.asarray(differences_of(values, others), dtype=float)
    pairs = len(differences)
    if not pairs:
        return PairedTest(0, None, None)
    if 2**pairs <= resamples:
        return PairedTest(pairs, _by_all_flips(differences), 2 / 2**pairs)
    return PairedTest(pairs, _by_flips(differences.tobytes(), resamples), 2 / (resamples + 1))


def _by_all_flips(differences: np.ndarray) -> float:
    pairs = len(differences)
    flipped = np.arange(2**pairs)[:, np.newaxis] >> np.arange(pairs) & 1
    return _two_sided(differences, flipped @ differences, drawn=0)


@lru_cache(2)  # drawing takes longer than testing
def _flips(pairs: int, resamples: int) -> np.ndarray:
    """Return random assignments of signs: assignments across, eight pairs to a byte down, a bit for each difference that is
    flipped. The first bit of a random byte decides it."""
    rng, packed, at_once = generator(), [], max(1, DRAWN // pairs)
    for begun in range(0, resamples, at_once):
        count = min(at_once, resamples - begun)
        drawn = np.frombuffer(rng.bytes(count * pairs), np.uint8).reshape(count, pairs)
        packed.append(np.packbits(drawn > 127, axis=1).T)
    return np.concatenate(packed, axis=1)


@lru_cache(256)  # the claims of a report compare the same values many times
def _by_flips(values: bytes, resamples: int) -> float:
    """Return p by random assignments. The sum of eight flipped differences is looked up, by their byte."""
    differences = np.frombuffer(values)
    flips = _flips(len(differences), resamples)
    eights = np.zeros((len(flips), 8))
    eights.flat[: len(differences)] = differences
    turned = np.zeros(flips.shape[1])
    for sums, flipped in zip(eights @ BITS, flips, strict=True):
        turned += sums.take(flipped)
    return _two_sided(differences, turned, drawn=1)


def _two_sided(differences: np.ndarray, turned: np.ndarray, *, drawn: int) -> float:
    """Return the two-sided p. `turned` has the sum of the flipped differences for each assignment of signs. If the assignments
    are random, the observed assignment counts too (`drawn`). Sums that differ by no more than rounding are equal."""
    total = differences.sum()
    sums = total - 2 * turned
    near = 100 * np.finfo(float).eps * np.abs(differences).sum()
    beyond = min(np.count_nonzero(sums <= total + near), np.count_nonzero(sums >= total - near))
    return min(1.0, 2 * float(beyond + drawn) / (len(sums) + drawn))


# Groups without pairs: trials that were run again, and the rest


@dataclass(frozen=True)
class Groups:
    """A test whether two groups differ. All values are None if a group is empty.

    p       of the Mann-Whitney test, two-sided
    delta   Cliff's: the chance that a value of the first group is above a value of the other, less the chance that it is below
    """

    n: int
    others: int
    p: float | None
    delta: float | None


def groups_differ(values: Sequence[float], others: Sequence[float]) -> Groups:
    """Test whether `values` differ from `others`: the tokens of trials that were run again from the tokens of the rest, for
    instance.

    The test is by permutation, so it holds for small groups and for ties. It is exact if there are at most RESAMPLES ways to
    draw the groups, and otherwise takes that many random ones.

    Sources: Mann and Whitney, Annals of Mathematical Statistics 18 (1947); Cliff, Psychological Bulletin 114 (1993).
    """
    n, m = len(values), len(others)
    if not n or not m:
        return Groups(n, m, None, None)
    if min(n, m) == 1:  # scipy permutes groups of two at least
        alone, rest = (values[0], others) if n == 1 else (others[0], values)
        delta = _delta_of(alone, rest)
        return Groups(n, m, _p_of_one(alone, rest), delta if n == 1 else -delta)
    from scipy import stats  # noqa: PLC0415  it takes half a second, and most reports compare no such groups

    method = stats.PermutationMethod(n_resamples=RESAMPLES, rng=generator())
    result = stats.mannwhitneyu(values, others, method=method)
    return Groups(n, m, float(result.pvalue), 2 * float(result.statistic) / (n * m) - 1)


def _delta_of(alone: float, rest: Sequence[float]) -> float:
    return (sum(alone > other for other in rest) - sum(alone < other for other in rest)) / len(rest)


def _p_of_one(alone: float, rest: Sequence[float]) -> float:
    """Return p for a group of a single value: the share of all values that lie at least as far out."""
    pooled = [alone, *rest]
    deltas = [abs(_delta_of(value, pooled[:place] + pooled[place + 1 :])) for place, value in enumerate(pooled)]
    return sum(delta >= deltas[0] for delta in deltas) / len(pooled)


def rates_differ(share: Share, other: Share) -> float | None:
    """Return the two-sided p of Fisher's exact test of two unpaired rates. None if either has no values.

    Source: Fisher, Statistical Methods for Research Workers, 5th edition (1934), by scipy.
    """
    from scipy import stats  # noqa: PLC0415  as above

    if not share.n or not other.n:
        return None
    return float(stats.fisher_exact([[share.k, share.n - share.k], [other.k, other.n - other.k]]).pvalue)


# Several tests at once


def holm(p_values: Mapping[Key, float | None]) -> dict[Key, float | None]:
    """Return p-values adjusted so that the chance of any false finding in the family stays below the level.

    The family is what was declared: a test that could not be made (None) stays None and counts.
    In rising order the i-th of m becomes the greatest of (m - j + 1) p(j) over j <= i, at most 1.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    Raises ValueError for a p that is not within 0 and 1.
    """
    tested = {key: p for key, p in p_values.items() if p is not None}
    if not all(0 <= p <= 1 for p in tested.values()):
        raise ValueError("a p-value is not within 0 and 1")
    adjusted: dict[Key, float | None] = dict.fromkeys(p_values)
    highest = 0.0
    for rank, key in enumerate(sorted(tested, key=tested.__getitem__)):
        highest = min(1.0, max(highest, (len(p_values) - rank) * tested[key]))
        adjusted[key] = highest
    return adjusted
