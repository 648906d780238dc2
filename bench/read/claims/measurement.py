"""Our number for a claim, with its interval, its test, and the N at which a verdict would be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.read.analysis import statistics
from bench.read.analysis.claim import Claim, DirectionClaim, RateClaim, RatioClaim
from bench.read.analysis.metrics import measure_of
from bench.read.analysis.statistics import Mean, Pair, PairedTest, Ratio, Share
from bench.read.claims.evidence import EvidenceItem, Missing, ModelResults, evidence
from bench.read.claims.sample_size import pairs_after_correction, trials_without_counterexample

LEVEL, TOLERANCE = 0.05, 0.1
"""The significance level of a test, and the greatest upper bound of a share that confirms a claimed share of 0."""


@dataclass(frozen=True)
class Measurement:
    """Our number for a claim.

    basis       the mean, ratio or share that was measured
    low, high   its 95% interval; None if there is none, as for a single value
    n           the number of values, pairs or outputs
    needed      the n that would decide the claim if the truth were as measured; None if unknown
    test        for two architectures: the test whether their difference could be chance
    counterexamples   for a claimed share of 0: their number
    """

    basis: Mean | Ratio | Share
    value: float | None
    low: float | None
    high: float | None
    n: int
    needed: int | None = None
    test: PairedTest | None = None
    counterexamples: int = 0

    def side_of(self, value: float) -> int:
        """Return 1 if the whole interval is above this value, -1 if it is below, 0 otherwise."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > value) - (self.high < value)


def measurement_of(source: ModelResults, claim: Claim, family: int) -> Measurement | Missing:
    """Return our number for a claim, or why there is none. `family` is the number of comparisons over which the test is
    corrected."""
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
    """Return the difference of two architectures, or their ratio. For a ratio, `needed` is the n that decides its direction:
    then "holds, size differs" is a verdict too."""
    mean = statistics.paired_difference(first, second, measure_of(claim.measure)).difference
    needed, test = pairs_after_correction(mean, family, LEVEL), statistics.paired_test(first, second)
    if isinstance(claim, DirectionClaim):
        return Measurement(mean, mean.mean, mean.low, mean.high, mean.n, needed, test)
    numerator, denominator = (statistics.by_unit(values) for values in statistics.in_common(first, second))
    ratio = statistics.ratio_of_means(numerator, denominator)
    return Measurement(ratio, ratio.ratio, ratio.low, ratio.high, ratio.pairs, needed, test)


def _share(items: Sequence[EvidenceItem]) -> Measurement:
    """Return a share of the items. They cluster by instance, or by repetition if there is a single instance, since the outputs
    of one trial depend on each other."""
    clusters = [item.instance for item in items]
    if len(set(clusters)) == 1:
        clusters = [str(item.repetition) for item in items]
    share = statistics.share_by_instance(clusters, [bool(item.value) for item in items])
    return Measurement(
        share, share.rate, share.low, share.high, share.n, trials_without_counterexample(TOLERANCE), None, share.k
    )
