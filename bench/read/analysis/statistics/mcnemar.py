"""Which of two arms solves which pairs, and how many instances would show that the arms differ."""

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
    """The number of pairs in which a condition held for both arms, only for the first, only for the second, or for neither."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def pairs(self) -> int:
        """The number of all pairs."""
        return self.both + self.first + self.second + self.neither


def two_by_two(first: Mapping[Pair, bool], second: Mapping[Pair, bool]) -> TwoByTwo:
    """Count the pairs that both arms have by the result of each arm."""
    of_first, other = in_common(first, second)
    outcomes = [(bool(of_first[pair]), bool(other[pair])) for pair in of_first]
    return TwoByTwo(*(outcomes.count(held) for held in ((True, True), (True, False), (False, True), (False, False))))


def mcnemar_test(first: Mapping[Pair, bool], second: Mapping[Pair, bool]) -> PairedTest:
    """Test whether the difference of two rates could be chance.

    If each instance has one pair this is McNemar's exact test: by chance each discordant pair is as likely to be the one arm's
    as the other's. Several pairs of an instance are alike, so the signs of the instances' mean differences are flipped
    (`paired_test`). With one pair each, this is the same test.

    Sources: McNemar, Psychometrika 12 (1947), exact by the binomial distribution; Fisher, The Design of Experiments (1935),
    section 21, for flips by cluster, whatever is alike within one.
    """
    of_first, other = in_common(first, second)
    if len(by_unit(of_first)) < len(of_first):
        return paired_test(of_first, other)
    table = two_by_two(of_first, other)
    discordant = table.first + table.second
    if not table.pairs:
        return PairedTest(0, None, None)
    if not discordant:
        return PairedTest(table.pairs, 1.0, 1.0)
    as_one_sided = sum(math.comb(discordant, fewer) for fewer in range(min(table.first, table.second) + 1))
    return PairedTest(table.pairs, min(1.0, 2 * as_one_sided / 2**discordant), min(1.0, 2 / 2**discordant))


@dataclass(frozen=True)
class RequiredInstances:
    """A number of instances, with the 95% interval that follows from the observed share of discordant pairs."""

    number: int
    low: int
    high: int


def required_instances(
    first: Mapping[Pair, bool], second: Mapping[Pair, bool], difference: float = TEN_POINTS, power: float = POWER
) -> RequiredInstances | None:
    """Return the number of instances at which McNemar's test at 5% finds a true `difference` of two rates with this power. This
    assumes as large a share of discordant instances, and as many pairs of each, as were observed.

    An instance's discordance is the square of its mean difference, which is 0 or 1 for one pair. The mean of these has Wilson's
    interval for a rate, which for values between 0 and 1 is the wider one. No share below the difference is used, because at
    least as many pairs are discordant as differ; for several pairs this is cautious. None without a pair.

    Source: Connor, Biometrics 43 (1987): (z(a/2) sqrt(s) + z(b) sqrt(s - d^2))^2 / d^2 for a discordant share s.
    """
    squares = [difference**2 for difference in differences_of(first, second)]
    if not squares:
        return None
    share = math.fsum(squares) / len(squares)
    return RequiredInstances(
        *(_connor(max(discordant, difference), difference, power) for discordant in (share, *wilson(share, len(squares))))
    )


def _connor(discordant: float, difference: float, power: float) -> int:
    level, reached = (float(special.ndtri(probability)) for probability in ((1 + CONFIDENCE) / 2, power))
    spread = level * math.sqrt(discordant) + reached * math.sqrt(discordant - difference**2)
    return math.ceil((spread / difference) ** 2)
