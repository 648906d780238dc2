"""What a published figure allows ours to be: its value, and how far from it counts as the same."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scipy import stats

from bench.analysis.claims.claim import CellClaim, Claim, DirectionClaim, PartClaim, RateClaim, RatioClaim
from bench.analysis.claims.published import Published, Value
from bench.analysis.statistics import CONFIDENCE, share_of


@dataclass(frozen=True)
class PublishedRange:
    """`low` and `high` bound what counts as the published value; `sd` where one was published."""

    value: float
    low: float
    high: float
    sd: float | None = None


def range_of(published: Published, claim: Claim) -> PublishedRange | None:
    """Of a direction it is the published difference, which its verdict does not look at. None where nothing was published.

    A mean may lie off by the tolerance, or by the half-width of the published mean's own 95% interval where that is wider: ten
    runs of theirs leave as much open as ten of ours. Of a ratio of published means that half-width is the delta method's.
    """
    match claim:
        case DirectionClaim():
            values = _values(published, claim, claim.higher, claim.lower)
            return _exactly(values[0].mean - values[1].mean) if values else None
        case RatioClaim():
            values = _values(published, claim, claim.of, claim.to)
            return _ratio(published, *values) if values else None
        case CellClaim():
            values = _values(published, claim, claim.architecture)
            return _cell(published, claim, *values) if values else None
        case PartClaim():
            margin = published.judging.tolerance * claim.published
            return PublishedRange(claim.published, claim.published - margin, claim.published + margin)
        case RateClaim():
            return _rate(published, claim)


def _values(published: Published, claim: DirectionClaim | RatioClaim | CellClaim, *architectures: str) -> list[Value]:
    """The published values of these; none where one is not there."""
    found = [published.cell(claim.scenario, claim.measure, name) for name in architectures]
    return [one for one in found if one is not None] if None not in found else []


def _exactly(value: float) -> PublishedRange:
    return PublishedRange(value, value, value)


def _cell(published: Published, claim: CellClaim, value: Value) -> PublishedRange:
    if claim.measure == "correct":
        return _share(value.mean, published.judging.tolerance)
    margin = _margin(published, value.mean, [value])
    return PublishedRange(value.mean, value.mean - margin, value.mean + margin, value.sd)


def _ratio(published: Published, of: Value, to: Value) -> PublishedRange:
    ratio = of.mean / to.mean
    margin = _margin(published, ratio, [of, to])
    return PublishedRange(ratio, ratio - margin, ratio + margin)


def _margin(published: Published, value: float, parts: Iterable[Value]) -> float:
    relative = math.sqrt(sum((one.sd / one.mean) ** 2 for one in parts if one.sd and one.mean) / published.paper.runs)
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, published.paper.runs - 1)) if published.paper.runs > 1 else 0.0
    return abs(value) * max(published.judging.tolerance, quantile * relative)


def _rate(published: Published, claim: RateClaim) -> PublishedRange | None:
    """Of counts the bounds are Wilson's for them; of a share that is said to be all or none, the tolerance."""
    if claim.published is not None:
        return _share(claim.published, published.judging.tolerance)
    natural = published.natural(claim.scenario)
    if natural is None:
        return None
    share = share_of(natural.failures, natural.executions)
    return PublishedRange(share.rate or 0.0, share.low or 0.0, 1.0 if share.high is None else share.high)


def _share(value: float, tolerance: float) -> PublishedRange:
    return PublishedRange(value, max(0.0, value - tolerance), min(1.0, value + tolerance))
