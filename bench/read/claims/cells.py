"""The cells of a verdict's row: the measured number and the published one."""

from __future__ import annotations

from bench.read.analysis.metrics import METRICS
from bench.read.analysis.statistics import Share
from bench.read.claims.claim import Claim, DegradationClaim, PartClaim, RateClaim, RatioClaim
from bench.read.claims.verdicts import Judgement
from bench.read.render.cells import NOTHING, BoundedNumber, Cell, Number, Rate


def ours(judgement: Judgement) -> Cell:
    measured = judgement.measured
    if measured is None:
        return NOTHING
    if isinstance(measured.basis, Share):
        return Rate(measured.basis)
    return BoundedNumber(measured.value, measured.low, measured.high, *_form(judgement.claim), measured.basis)


def theirs(judgement: Judgement) -> Cell:
    if isinstance(judgement.claim, DegradationClaim):
        return judgement.claim.published or "–"
    return Number(judgement.expected.value, *_form(judgement.claim))


def by_published(judgement: Judgement) -> Cell:
    factor = judgement.factor
    if factor is None:
        return NOTHING
    return BoundedNumber(factor.value, factor.low, factor.high, 4 if 0 < factor.value < 0.1 else 2)


def number_of(judgement: Judgement) -> int:
    return judgement.measured.n if judgement.measured else 0


def to_decide(judgement: Judgement) -> Cell:
    if judgement.measured is None or judgement.verdict != "inconclusive":
        return "–"
    return NOTHING if judgement.measured.needed is None else judgement.measured.needed


def measure_of(claim: Claim) -> str:
    if isinstance(claim, DegradationClaim):
        return "correct"
    return claim.counted if isinstance(claim, RateClaim) else claim.measure


def _form(claim: Claim) -> tuple[int, bool]:
    """Return the number of digits after the point, and whether the number is a percentage."""
    if isinstance(claim, RateClaim | PartClaim):
        return (3 if isinstance(claim, PartClaim) else 1), True
    if isinstance(claim, RatioClaim):
        return 3, False
    column = measure_of(claim)
    if column not in METRICS or not METRICS[column].title:
        return 3, False
    metric = METRICS[column]
    return (1, True) if metric.percent else (max(metric.digits, metric.published_digits), False)
