"""The comparison of two arms by which pairs each solves: McNemar's test, and how many instances would show a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy import special

from bench.read.analysis.statistics.clusters import Pair, by_unit, in_common
from bench.read.analysis.statistics.intervals import CONFIDENCE
from bench.read.analysis.statistics.paired import differences_of
from bench.read.analysis.statistics.power import POWER
from bench.read.analysis.statistics.rates import wilson
from bench.read.analysis.statistics.significance import PairedTest, paired_test

TEN_POINTS = 0.10


@dataclass(frozen=True)
class TwoByTwo:
    """The number of pairs in which a condition is true of both arms, only of the first, only of the second, or of neither."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def pairs(self) -> int:
        """The number of all pairs."""
        return self.both + self.first + self.second + self.neither


def two_by_two(first: Mapping[Pair, bool], second: Mapping[Pair, bool]) -> TwoByTwo:
    """Return the counts of the pairs that both arms have, by the result of each arm."""
    ours, theirs = in_common(first, second)
    results = [(bool(ours[pair]), bool(theirs[pair])) for pair in ours]
    return TwoByTwo(*map(results.count, ((True, True), (True, False), (False, True), (False, False))))


def mcnemar_test(first: Mapping[Pair, bool], second: Mapping[Pair, bool]) -> PairedTest:
    """Return the test whether the difference of two rates could be chance.

    If each instance has one pair this is McNemar's exact test: by chance each discordant pair is as likely to be the one arm's
    as the other's. Several pairs of an instance are not independent, so the signs of the instances' mean differences are
    flipped (`paired_test`), which for one pair each is the same test.

    Sources: McNemar, Psychometrika 12 (1947), exact by the binomial distribution; Fisher, The Design of Experiments (1935),
    section 21, for flips by cluster, which need no independence within a cluster.
    """
    ours, theirs = in_common(first, second)
    if len(by_unit(ours)) < len(ours):
        return paired_test(ours, theirs)
    table = two_by_two(ours, theirs)
    discordant = table.first + table.second
    if not table.pairs:
        return PairedTest(0, None, None)
    if not discordant:
        return PairedTest(table.pairs, 1.0, 1.0)
    extreme_assignments = sum(math.comb(discordant, fewer) for fewer in range(min(table.first, table.second) + 1))
    return PairedTest(table.pairs, min(1.0, 2 * extreme_assignments / 2**discordant), min(1.0, 2 / 2**discordant))


@dataclass(frozen=True)
class RequiredInstances:
    """A number of instances, with the 95% interval that follows from the observed share of discordant pairs."""

    number: int
    low: int
    high: int


def required_instances(
    first: Mapping[Pair, bool], second: Mapping[Pair, bool], difference: float = TEN_POINTS, power: float = POWER
) -> RequiredInstances | None:
    """Return the number of instances with which McNemar's test at 5% finds a true `difference` of two rates with this power.
    None if the arms have no pair in common. The share of discordant instances, and the pairs of each, are assumed as observed.

    An instance's discordance is the square of its mean difference, which is 0 or 1 for one pair. The mean of these has Wilson's
    interval for a rate, which is wide enough for values between 0 and 1. No share below the difference is used, because at
    least that share of pairs is discordant; for several pairs this is cautious.

    Source: Connor, Biometrics 43 (1987): (z(a/2) sqrt(s) + z(b) sqrt(s - d^2))^2 / d^2 for a discordant share s.
    """
    squares = [difference**2 for difference in differences_of(first, second)]
    if not squares:
        return None
    share = math.fsum(squares) / len(squares)
    shares = (share, *wilson(share, len(squares)))
    return RequiredInstances(*(_connor(max(discordant, difference), difference, power) for discordant in shares))


def _connor(discordant: float, difference: float, power: float) -> int:
    """Return the number of instances by Connor's formula for this share of discordant instances."""
    z_level, z_power = float(special.ndtri((1 + CONFIDENCE) / 2)), float(special.ndtri(power))
    spread = z_level * math.sqrt(discordant) + z_power * math.sqrt(discordant - difference**2)
    return math.ceil((spread / difference) ** 2)
