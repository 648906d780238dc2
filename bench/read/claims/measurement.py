"""Our number for a claim, with its interval, its test, and the N at which a verdict would be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.read.analysis import statistics
from bench.read.analysis.metrics import measure_of
from bench.read.analysis.statistics import Mean, Pair, PairedTest, Ratio, Share
from bench.read.claims.claim import CellClaim, Claim, DegradationClaim, DirectionClaim, PartClaim, RateClaim, RatioClaim, Side
from bench.read.claims.evidence import EvidenceItem, Missing, ModelResults, evidence, under
from bench.read.claims.published import Published
from bench.read.claims.ranges import PublishedRange, range_of
from bench.read.claims.sample_size import pairs_after_correction, trials_for_the_rate, trials_without_one, values_for_the_mean

LEVEL = 0.05


@dataclass(frozen=True)
class Measurement:
    """low, high: the 95% interval; None if there is none, as for one value.

    n           number of values, pairs or outputs
    needed      the n that would decide the claim if the truth were as measured; None if unknown
    test        of two architectures: could their difference be chance?
    otherwise   for a share claimed to be none or all: the number of counterexamples
    """

    basis: Mean | Ratio | Share
    value: float | None
    low: float | None
    high: float | None
    n: int
    needed: int | None = None
    test: PairedTest | None = None
    otherwise: int = 0

    def side_of(self, equality: float) -> int:
        """Return 1 if the whole interval lies above equality, -1 if it lies below, 0 otherwise."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > equality) - (self.high < equality)


def measured(source: ModelResults, claim: Claim, published: Published, family: int) -> Measurement | Missing:
    """Measure a claim. `family` is the number of comparisons over which a direction is corrected."""
    items = evidence(source, claim)
    if isinstance(items, Missing):
        return items
    result = _measurement(claim, items, published, family)
    return result if result.n else Missing("no pair of trials that both have a value")


def _measurement(claim: Claim, items: Sequence[EvidenceItem], published: Published, family: int) -> Measurement:
    match claim:
        case DirectionClaim():
            return _difference(*compared_values(claim, items), family, claim.measure)
        case RatioClaim():
            return _ratio(*compared_values(claim, items), family, claim.measure)
        case PartClaim():
            return _of_ratio(_ratio_of(*_sides(items)))
        case CellClaim() if claim.measure != "correct":
            return _mean(items, range_of(published, claim), claim.measure)
        case CellClaim() | RateClaim():
            return _share(claim, items, published)
        case DegradationClaim():
            return _difference(*compared_values(claim, items), family, "correct")


def _by_side(items: Sequence[EvidenceItem]) -> Mapping[str, Mapping[Pair, float]]:
    """Return side -> pair -> value."""
    values: dict[str, dict[Pair, float]] = {}
    for item in items:
        values.setdefault(item.side, {})[item.pair] = item.value
    return values


def _sides(items: Sequence[EvidenceItem]) -> tuple[Mapping[Pair, float], Mapping[Pair, float]]:
    first, second = _by_side(items).values()
    return first, second


def compared_values(
    claim: DirectionClaim | RatioClaim | DegradationClaim, items: Sequence[EvidenceItem]
) -> tuple[Mapping[Pair, float], Mapping[Pair, float]]:
    """Return the values of the two sides of a claim, by pair. A loss that the claim compares with no other loss is compared
    with 0."""
    if not isinstance(claim, DegradationClaim):
        return _sides(items)
    solved = _by_side(items)
    higher = _lost(claim.higher, solved)
    return higher, _lost(claim.lower, solved) if claim.lower else dict.fromkeys(higher, 0.0)


def _lost(side: Side, solved: Mapping[str, Mapping[Pair, float]]) -> Mapping[Pair, float]:
    """Return the loss of each pair that has a value under every plan."""
    control, *struck = (solved[under(*arm)] for arm in side.arms)
    both = (pair for pair in control if all(pair in values for values in struck))
    return {pair: control[pair] - fmean(values[pair] for values in struck) for pair in both}


def _difference(higher: Mapping[Pair, float], lower: Mapping[Pair, float], family: int, column: str) -> Measurement:
    mean = statistics.paired_difference(higher, lower, measure_of(column)).difference
    needed = pairs_after_correction(mean, family, LEVEL)
    return Measurement(mean, mean.mean, mean.low, mean.high, mean.n, needed, statistics.paired_test(higher, lower))


def _ratio(of: Mapping[Pair, float], to: Mapping[Pair, float], family: int, column: str) -> Measurement:
    """Measure a ratio. `needed` concerns only the direction, since a different size is a verdict too."""
    direction = _difference(of, to, family, column)
    return _of_ratio(_ratio_of(of, to), direction.needed, direction.test)


def _of_ratio(ratio: Ratio, needed: int | None = None, test: PairedTest | None = None) -> Measurement:
    return Measurement(ratio, ratio.ratio, ratio.low, ratio.high, ratio.pairs, needed, test)


def _ratio_of(of: Mapping[Pair, float], to: Mapping[Pair, float]) -> Ratio:
    above, below = (statistics.by_unit(side) for side in statistics.in_common(of, to))
    return statistics.ratio_of_means(above, below)


def _mean(items: Sequence[EvidenceItem], wanted: PublishedRange, column: str) -> Measurement:
    mean = statistics.amount_of(statistics.by_unit({item.pair: item.value for item in items}).values(), measure_of(column))
    return Measurement(mean, mean.mean, mean.low, mean.high, mean.n, values_for_the_mean(mean, wanted))


def _share(claim: CellClaim | RateClaim, items: Sequence[EvidenceItem], published: Published) -> Measurement:
    """Measure a share. The outputs of one trial depend on each other: with a single instance they cluster by repetition."""
    wanted = range_of(published, claim)
    clusters = [item.instance for item in items]
    if len(set(clusters)) == 1:
        clusters = [str(item.repetition) for item in items]
    share = statistics.share_by_instance(clusters, [bool(item.value) for item in items])
    if not isinstance(claim, RateClaim) or not claim.says_none_or_all:
        return _of_share(share, trials_for_the_rate(share, wanted))
    return _of_share(share, trials_without_one(published.judging.tolerance), share.n - share.k if wanted.value else share.k)


def _of_share(share: Share, needed: int | None, otherwise: int = 0) -> Measurement:
    return Measurement(share, share.rate, share.low, share.high, share.n, needed, None, otherwise)
