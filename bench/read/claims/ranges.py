"""The published value of a claim, and the range in which our level counts as the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.read.analysis.statistics import share_of
from bench.read.analysis.statistics.intervals import t_quantile
from bench.read.claims.claim import CellClaim, Claim, DegradationClaim, DirectionClaim, PartClaim, RateClaim, RatioClaim
from bench.read.claims.published import MeanAndSd, Published


@dataclass(frozen=True)
class PublishedRange:
    """The published value. `low` and `high` bound the levels that count as the same. For directions and ratios both are the
    value itself."""

    value: float
    low: float
    high: float


def range_of(published: Published, claim: Claim) -> PublishedRange:
    """Return the published range. For a direction it is the difference, of which the verdict takes only the sign. For a
    degradation it is 0, which the claim says is exceeded.

    A level can differ by the tolerance, or by the half width of the published mean's own 95% interval if that is wider: ten
    runs of theirs leave as much open as ten of ours.
    """
    match claim:
        case DirectionClaim():
            return _exactly(_mean(published, claim, claim.higher) - _mean(published, claim, claim.lower))
        case RatioClaim():
            return _exactly(_mean(published, claim, claim.of) / _mean(published, claim, claim.to))
        case CellClaim():
            return _cell(published, claim.measure, published.cell(claim.scenario, claim.row, claim.architecture))
        case PartClaim():
            margin = published.judging.tolerance * claim.published
            return PublishedRange(claim.published, claim.published - margin, claim.published + margin)
        case RateClaim():
            return _rate(published, claim)
        case DegradationClaim():
            return _exactly(0.0)


def _mean(published: Published, claim: DirectionClaim | RatioClaim, architecture: str) -> float:
    return published.cell(claim.scenario, claim.row, architecture).mean


def _exactly(value: float) -> PublishedRange:
    return PublishedRange(value, value, value)


def _cell(published: Published, measure: str, value: MeanAndSd) -> PublishedRange:
    if measure == "correct":
        return _share(value.mean, published.judging.tolerance)
    runs = published.paper.runs or 1
    half_width = t_quantile(runs - 1) * value.sd / math.sqrt(runs) if value.sd and runs > 1 else 0.0
    margin = max(published.judging.tolerance * abs(value.mean), half_width)
    return PublishedRange(value.mean, value.mean - margin, value.mean + margin)


def _rate(published: Published, claim: RateClaim) -> PublishedRange:
    """Return the bounds of a published rate: Wilson's bounds for counts, or the tolerance if the claim says all or none."""
    if claim.published is not None:
        return _share(claim.published, published.judging.tolerance)
    [natural] = (natural for natural in published.natural_failures if natural.scenario == claim.scenario)
    share = share_of(natural.failures, natural.executions)
    return PublishedRange(share.rate or 0.0, share.low or 0.0, 1.0 if share.high is None else share.high)


def _share(value: float, tolerance: float) -> PublishedRange:
    return PublishedRange(value, max(0.0, value - tolerance), min(1.0, value + tolerance))
