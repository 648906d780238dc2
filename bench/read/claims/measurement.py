"""Our number for a claim, with its interval, its test, and the N at which a verdict would be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.read.analysis import statistics
from bench.read.analysis.claim import Claim, DirectionClaim, RateClaim, RatioClaim
from bench.read.analysis.metrics import measure_of
from bench.read.analysis.statistics import Mean, Pair, PairedTest, Ratio, Share
from bench.read.claims.evidence import EvidenceItem, Missing, ModelResults, evidence
from bench.read.claims.sample_size import pairs_after_correction, trials_without_one

LEVEL, TOLERANCE = 0.05, 0.1
"""Of a test, and of a share that is claimed to be 0."""


@dataclass(frozen=True)
class Measurement:
    """low, high: the 95% interval; None if there is none, as for one value.

    n           number of values, pairs or outputs
    needed      the n that would decide the claim if the truth were as measured; None if unknown
    test        of two architectures: could their difference be chance?
    otherwise   for a share claimed to be none: the number of counterexamples
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


def measurement_of(source: ModelResults, claim: Claim, family: int) -> Measurement | Missing:
    """Measure a claim. `family` is the number of comparisons over which a direction is corrected."""
    items = evidence(source, claim)
    if isinstance(items, Missing):
        return items
    result = _share(items) if isinstance(claim, RateClaim) else _comparison(claim, *compared_values(items), family)
    return result if result.n else Missing("no pair of trials that both have a value")


def compared_values(items: Sequence[EvidenceItem]) -> tuple[Mapping[Pair, float], Mapping[Pair, float]]:
    """Return the values of the two architectures of a claim, by pair."""
    values: dict[str, dict[Pair, float]] = {}
    for item in items:
        values.setdefault(item.side, {})[item.pair] = item.value
    first, second = values.values()
    return first, second


def _comparison(
    claim: DirectionClaim | RatioClaim, first: Mapping[Pair, float], second: Mapping[Pair, float], family: int
) -> Measurement:
    """Measure the difference of two architectures, or their ratio. Of a ratio `needed` concerns only the direction, since a
    different size is a verdict too."""
    mean = statistics.paired_difference(first, second, measure_of(claim.measure)).difference
    needed, test = pairs_after_correction(mean, family, LEVEL), statistics.paired_test(first, second)
    if isinstance(claim, DirectionClaim):
        return Measurement(mean, mean.mean, mean.low, mean.high, mean.n, needed, test)
    above, below = (statistics.by_unit(side) for side in statistics.in_common(first, second))
    ratio = statistics.ratio_of_means(above, below)
    return Measurement(ratio, ratio.ratio, ratio.low, ratio.high, ratio.pairs, needed, test)


def _share(items: Sequence[EvidenceItem]) -> Measurement:
    """Measure a share. The outputs of one trial depend on each other: with a single instance they cluster by repetition."""
    clusters = [item.instance for item in items]
    if len(set(clusters)) == 1:
        clusters = [str(item.repetition) for item in items]
    share = statistics.share_by_instance(clusters, [bool(item.value) for item in items])
    return Measurement(share, share.rate, share.low, share.high, share.n, trials_without_one(TOLERANCE), None, share.k)
