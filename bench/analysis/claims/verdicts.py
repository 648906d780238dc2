"""Claims judged by a run.

    direction   reproduced where the 95% interval of the paired difference lies wholly on the claimed side *and* the sign-flip
                test finds it at 5% after Holm's correction; contradicted where both hold on the other side
    others      reproduced where our 95% interval lies wholly within what counts as the published value (`ranges`);
                contradicted where it lies wholly outside

and inconclusive otherwise, as is everything at N = 1. The family of the correction is every direction claim of the file, for
each model by itself, whether or not the run holds its data. Cells, ratios and rates are each judged at 95% by themselves:
among forty of them two may be contradicted by chance alone.

Means and ratios of tokens, seconds and calls price work that led to an answer: every trial of the paper did. Where more than
half of an arm's trials gave up they price failing, and no number of repetitions makes one the other: inconclusive, with that
as the reason. A claim whose data the run does not hold is not measured, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bench.analysis import statistics
from bench.analysis.arms import Arms
from bench.analysis.claims.claim import CellClaim, Claim, DirectionClaim, PartClaim, RateClaim, RatioClaim
from bench.analysis.claims.evidence import Item, Missing, ModelResults, evidence, results_by_model
from bench.analysis.claims.published import Published
from bench.analysis.claims.ranges import PublishedRange, range_of
from bench.analysis.claims.sample_size import (
    pairs_for_the_family,
    pairs_for_the_ratio,
    trials_for_the_rate,
    values_for_the_mean,
)
from bench.analysis.frames import Run
from bench.analysis.statistics import Mean, Pair, PairedTest, Share

ClaimVerdict = Literal["reproduced", "contradicted", "inconclusive", "not measured"]
VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
LEVEL = 0.05
MOSTLY = 0.5
"""An arm of which more trials than this share gave up tells nothing of what work costs that leads to an answer."""


@dataclass(frozen=True)
class Measurement:
    """Our number. low, high: its 95% interval; None where there is none, as of one value.

    n        the values, pairs or outputs that it is made of
    needed   as many as would decide the claim, were the truth what was found; None where none can be told
    test     of a direction alone
    """

    basis: Mean | statistics.Ratio | Share
    value: float | None
    low: float | None
    high: float | None
    n: int
    needed: int | None
    test: PairedTest | None = None


@dataclass(frozen=True)
class Judgement:
    """measured is None where the claim was not measured; p is adjusted, and of a direction alone."""

    claim: Claim
    model: str
    verdict: ClaimVerdict
    reason: str
    expected: PublishedRange | None = None
    measured: Measurement | None = None
    p: float | None = None


def can_judge(run: Run, published: Published) -> bool:
    """Whether any of the scenarios that the claims are about is in the run."""
    return bool({claim.scenario for claim in published.claims} & set(run.names("scenario")))


def judge_all(run: Run, published: Published, arms: Arms | None = None) -> tuple[Judgement, ...]:
    """Every claim by every model of the run, in the file's order."""
    by_model = [_judge_model(source, published) for source in results_by_model(run, arms)]
    return tuple(judgement for same_claim in zip(*by_model, strict=True) for judgement in same_claim)


def _judge_model(source: ModelResults, published: Published) -> list[Judgement]:
    family = [claim.id for claim in published.claims if isinstance(claim, DirectionClaim)]
    first = [_judge(source, claim, published, len(family)) for claim in published.claims]
    adjusted = statistics.holm({one.claim.id: _p_of(one) for one in first if one.claim.id in family})
    return [_corrected(one, adjusted[one.claim.id]) if one.claim.id in family else one for one in first]


def _p_of(judgement: Judgement) -> float | None:
    measured = judgement.measured
    return measured.test.p if measured and measured.test else None


def _judge(source: ModelResults, claim: Claim, published: Published, family: int) -> Judgement:
    """The verdict, a direction's before the correction."""
    wanted = range_of(published, claim)
    items = evidence(source, claim)
    if isinstance(items, Missing):
        return Judgement(claim, source.model, "not measured", items.reason, wanted)
    if wanted is None:
        return Judgement(claim, source.model, "not measured", "nothing was published to compare it with")
    found = _measurement(claim, items, wanted, family)
    judgement = Judgement(claim, source.model, *_verdict(claim, found, wanted), wanted, found)
    gave_up = _mostly_given_up(source, claim, items)
    if not gave_up:
        return judgement
    return replace(judgement, verdict="inconclusive", reason=gave_up, measured=replace(found, needed=None))


def _verdict(claim: Claim, found: Measurement, wanted: PublishedRange) -> tuple[ClaimVerdict, str]:
    if found.low is None or found.high is None or found.n == 1:
        return "inconclusive", _NO_INTERVAL.get(found.n, "no interval: the mean to be divided by cannot be told from 0")
    if isinstance(claim, DirectionClaim):
        return _on_a_side(found.low, found.high)
    if wanted.low <= found.low and found.high <= wanted.high:
        return "reproduced", "the interval lies within the bounds"
    if found.high < wanted.low or found.low > wanted.high:
        return "contradicted", "the interval lies wholly beyond the bounds"
    return "inconclusive", "the interval holds values within the bounds and beyond them"


_NO_INTERVAL = {0: "no pair of trials that both have a value", 1: "N=1: nothing is concluded from one"}


def _on_a_side(low: float, high: float) -> tuple[ClaimVerdict, str]:
    if low > 0:
        return "reproduced", "the interval lies on the claimed side"
    if high < 0:
        return "contradicted", "the interval lies on the other side"
    return "inconclusive", "the interval of the paired difference holds 0"


def _corrected(judgement: Judgement, p: float | None) -> Judgement:
    if judgement.verdict in ("reproduced", "contradicted") and (p is None or p > LEVEL):
        shown = "n/a" if p is None else f"{p:.2g}"
        reason = f"{judgement.reason}, but its p is {shown} after Holm's correction"
        return replace(judgement, verdict="inconclusive", reason=reason, p=p)
    return replace(judgement, p=p)


def _mostly_given_up(source: ModelResults, claim: Claim, items: Sequence[Item]) -> str:
    """Why the values price failing; '' where they do not, or where the claim is about no price."""
    if isinstance(claim, RateClaim | PartClaim) or claim.measure in ("correct", "score"):
        return ""
    all_of = Counter(item.side for item in items)
    gave_up = Counter(item.side for item in items if source.outcomes[item.trial] == "gave_up")
    named = [f"{gave_up[side]} of {n} trials{_of(claim, side)}" for side, n in all_of.items() if gave_up[side] > MOSTLY * n]
    return f"{' and '.join(named)} gave up: what they took prices failing, not an answer" if named else ""


def _of(claim: Claim, side: str) -> str:
    return "" if isinstance(claim, CellClaim) else f" of {side}"


# Our numbers


def _measurement(claim: Claim, items: Sequence[Item], wanted: PublishedRange, family: int) -> Measurement:
    match claim:
        case DirectionClaim():
            return _difference(*_sides(items), family)
        case RatioClaim() | PartClaim():
            return _ratio(*_sides(items), wanted)
        case CellClaim() if claim.measure != "correct":
            return _mean(items, wanted)
        case CellClaim() | RateClaim():
            return _share(items, wanted)


def _sides(items: Sequence[Item]) -> tuple[Mapping[Pair, float], Mapping[Pair, float]]:
    """The values of either side by what tells the pairs."""
    by_side: dict[str, dict[Pair, float]] = {}
    for item in items:
        by_side.setdefault(item.side, {})[item.pair] = item.value
    first, second = by_side.values()
    return first, second


def _difference(higher: Mapping[Pair, float], lower: Mapping[Pair, float], family: int) -> Measurement:
    mean = statistics.paired_difference(higher, lower).difference
    needed = pairs_for_the_family(mean, family, LEVEL)
    return Measurement(mean, mean.mean, mean.low, mean.high, mean.n, needed, statistics.paired_test(higher, lower))


def _ratio(of: Mapping[Pair, float], to: Mapping[Pair, float], wanted: PublishedRange) -> Measurement:
    above, below = (statistics.by_unit(side) for side in statistics.in_common(of, to))
    ratio = statistics.ratio_of_means(above, below)
    return Measurement(ratio, ratio.ratio, ratio.low, ratio.high, ratio.pairs, pairs_for_the_ratio(above, below, wanted))


def _mean(items: Sequence[Item], wanted: PublishedRange) -> Measurement:
    mean = statistics.mean_of(statistics.by_unit({item.pair: item.value for item in items}).values())
    return Measurement(mean, mean.mean, mean.low, mean.high, mean.n, values_for_the_mean(mean, wanted))


def _share(items: Sequence[Item], wanted: PublishedRange) -> Measurement:
    share = statistics.share_by_instance([item.instance for item in items], [bool(item.value) for item in items])
    return Measurement(share, share.rate, share.low, share.high, share.n, trials_for_the_rate(share, wanted))


def counts(judgements: Sequence[Judgement]) -> dict[ClaimVerdict, int]:
    """How many of each verdict; every verdict is there."""
    found = Counter(one.verdict for one in judgements)
    return {verdict: found[verdict] for verdict in VERDICTS}
