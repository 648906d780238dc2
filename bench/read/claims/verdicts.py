"""Judge claims by the results of a run.

direction   holds if the 95% interval of the paired difference lies wholly on the claimed side *and* the sign-flip test
            finds it at 5% after Holm's correction; contradicted if both hold on the other side
ratio       its direction is judged the same way, by the interval of the ratio about 1; it holds if the published ratio also
            lies in that interval; if not: holds, size differs
none        a share that is claimed to be 0: counterexample found, or holds if there is none and the interval ends within
            the tolerance
by sizes    a direction or ratio of two rounds: decided by sizes if the closed form, which knows no model, has the side on
            which the interval lies, claimed or not

A direction or ratio that nothing decides is not inconclusive but cannot be decided with so few pairs, if even the least p that
they can give is not below 5% after the correction.

Everything else is inconclusive, and so is everything at N = 1. Nothing is concluded from an interval without width, which equal
values have: they do not show how far off they can be. Counting is different: one counterexample is one.

The family of the correction is every comparison of two architectures in the file, for each model separately, whether or not the
run holds its data. A ratio and a direction of the same values are one comparison. A claim without data in the run, or with 0 of
0, is not measured, with the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arms
from bench.read.analysis.claim import Claim, DirectionClaim, RateClaim, RatioClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_ROUND
from bench.read.analysis.plans import subtasks_of_round
from bench.read.analysis.published import Published
from bench.read.claims.closed_forms import NEAR, agrees_with_side
from bench.read.claims.counted import COUNTED, counted_calls
from bench.read.claims.evidence import Missing, ModelResults, results_by_model
from bench.read.claims.measurement import LEVEL, TOLERANCE, Measurement, measurement_of
from bench.read.claims.population import reason_against

SIMULATED = "simulated: its replies are made up by the suite, and say nothing about a model"
ON_SIMULATED = "judged on a simulated proposer, which is right: it tells what the runtime does, and nothing of a model"
ClaimVerdict = Literal[
    "holds",
    "holds, size differs",
    "contradicted",
    "decided by sizes",
    "counterexample found",
    "inconclusive",
    "cannot be decided",
    "not comparable",
    "not measured",
]
VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
Reasoned = tuple[ClaimVerdict, str]


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim. `measured` is None if the claim was not measured.

    p       of a comparison of two architectures: adjusted
    floor   the least p that this many pairs can give, before the correction, if p is that
    tested  the verdict by the measurement alone, whatever sizes decide
    whole   of a retry that is counted as the paper counts: the judgement over the whole round
    same_calls   the two whole rounds make the same calls, so that their difference follows from the code
    """

    claim: Claim
    model: str
    verdict: ClaimVerdict
    reason: str
    expected: float
    measured: Measurement | None = None
    p: float | None = None
    floor: float | None = None
    tested: ClaimVerdict | None = None
    whole: Judgement | None = None
    same_calls: bool = False

    @property
    def in_words(self) -> str:
        """The verdict in words, with the count of counterexamples or with the side that sizes decide."""
        if self.verdict == "decided by sizes":
            return f"{self.verdict}, {'as claimed' if self.side > 0 else 'contrary'}"
        if self.verdict == "cannot be decided" and self.measured is not None and self.measured.test:
            return statistics.floor_verdict(self.measured.test.pairs)
        if self.verdict != "counterexample found" or self.measured is None:
            return self.verdict
        return f"{self.verdict} ({self.measured.otherwise} of {self.measured.n})"

    @property
    def support(self) -> int:
        """1 if the verdict is as claimed, -1 if it contradicts the claim, 0 if it leaves the claim open."""
        if self.verdict == "decided by sizes":
            return 1 if self.side > 0 else -1
        if self.verdict in ("contradicted", "counterexample found"):
            return -1
        return int(self.verdict in ("holds", "holds, size differs"))

    @property
    def side(self) -> int:
        """1 if the interval of two architectures lies on the claimed side, -1 if it lies on the other side, 0 otherwise."""
        return _side(self.claim, self.measured, self.expected) if self.measured else 0


def can_judge(run: Run, published: Published) -> bool:
    """Return whether the run holds the data for any of the claims, in its plain packs or at the paper's sizes."""
    return any(_holds(run, size) for size in (published, *published.sized))


def _holds(run: Run, published: Published) -> bool:
    """Return whether the run has the scenario of any claim."""
    return not {claim.scenario for claim in published.claim}.isdisjoint(run.names("scenario"))


def judge_all(run: Run, published: Published, arms: Arms | None = None) -> tuple[Judgement, ...]:
    """Judge every claim by every model of the run, in the file's order. If the run has the paper's sizes, judge the claims
    again at these sizes. Each of the two groups is corrected as one family."""
    judgements: list[Judgement] = []
    sources = results_by_model(run, arms)
    for size in sizes_in(run, published):
        by_model = [_judge_model(source, size) for source in sources]
        judgements += (judgement for same_claim in zip(*by_model, strict=True) for judgement in same_claim)
    return tuple(judgements)


def sizes_in(run: Run, published: Published) -> tuple[Published, ...]:
    """Return the claims with the plain packs and the claims at the paper's sizes, as far as the run holds their data. If it
    holds neither, return the claims with the plain packs."""
    return tuple(size for size in (published, *published.sized) if _holds(run, size)) or (published,)


def counts(judgements: Sequence[Judgement]) -> dict[ClaimVerdict, int]:
    """Return the number of claims by verdict, in the order of VERDICTS."""
    counted = Counter(judgement.verdict for judgement in judgements)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def family_of(claims: Iterable[Claim]) -> frozenset[Hashable]:
    """Return the comparisons of two architectures over which Holm's correction is made."""
    return frozenset(key for claim in claims if (key := _comparison(claim)) is not None)


def _judge_model(source: ModelResults, published: Published) -> list[Judgement]:
    family, claims = family_of(published.claim), published.claim
    by_id = {claim.id: measurement_of(source, claim, len(family)) for claim in claims}
    raw: dict[Hashable, float | None] = dict.fromkeys(family)
    for claim in claims:
        measurement, key = by_id[claim.id], _comparison(claim)
        if key is not None and isinstance(measurement, Measurement) and measurement.test:
            raw[key] = measurement.test.p
    tests = _Corrected(len(family), statistics.holm(raw))
    return [_judge(source, claim, published, by_id[claim.id], tests) for claim in claims]


@dataclass(frozen=True)
class _Corrected:
    """The p of each comparison after Holm's correction over a family of so many."""

    family: int
    adjusted: Mapping[Hashable, float | None]


def _comparison(claim: Claim) -> Hashable | None:
    """Return a key for the two things that a claim compares, in any order. None if it compares none."""
    return None if isinstance(claim, RateClaim) else (claim.scenario, claim.plan, claim.measure, frozenset(claim.pair))


def _judge(
    source: ModelResults,
    claim: Claim,
    published: Published,
    measurement: Measurement | Missing,
    tests: _Corrected,
) -> Judgement:
    wanted = published.value_of(claim) or 0.0
    if isinstance(measurement, Missing):
        return Judgement(claim, source.model, "not measured", measurement.reason, wanted)
    p, test = tests.adjusted.get(_comparison(claim)), measurement.test
    floor = test.least if test and test.p is not None and test.least and math.isclose(test.p, test.least) else None
    tested, reason = _verdict(claim, measurement, wanted, p)
    if tested == "inconclusive" and test and statistics.beyond_reach(test.least, tests.family):
        tested, reason = (
            "cannot be decided",
            f"{reason}; no values of {test.pairs} pairs give a p below {LEVEL} after Holm's correction",
        )
    if in_the_way := SIMULATED if source.run.is_simulated(source.model) else reason_against(source, claim):
        tested, reason = "not comparable", in_the_way
    verdict: ClaimVerdict = tested
    if sized := _by_sizes(source, claim, measurement, wanted):
        verdict, reason = "decided by sizes", f"{sized}; by the measurement alone: {tested}"
    if source.run.is_simulated(source.model) and verdict != "not comparable":
        reason = f"{reason}; {ON_SIMULATED}"
    if verdict == "not comparable":
        p = floor = None
    return Judgement(claim, source.model, verdict, reason, wanted, measurement, p, floor, tested)


def ratio_by_sizes(source: ModelResults, claim: Claim) -> float | None:
    """Return the closed form's ratio of the two rounds that a claim names: the first divided by the second. A round of
    monolithic is its pass. The others' hold the calls that the paper counts; in a whole round they are the calls from the
    struck subtask to the checkpoint for static, and the struck call for runtime_structured. So the sizes of calls, the shared
    context, the depth and the place of detection decide which round is dearer.

    None if the claim is not about rounds, the run has no fault-free trials that show the sizes of calls, it is not known what a
    round asks for, or the ratio is too near to 1 to decide anything.
    """
    if not isinstance(claim, DirectionClaim | RatioClaim):
        return None
    prices, again = source.prices(claim.scenario), _asked_again(source.run, claim)
    if prices is None or not again:
        return None
    above, below = (prices.round_of(name, again) for name in claim.pair)
    ratio = above / below if above and below else None
    return None if ratio is None or abs(ratio - 1) < NEAR else ratio


def _asked_again(run: Run, claim: DirectionClaim | RatioClaim) -> Mapping[str, Sequence[str]]:
    """Return architecture -> the subtasks that a round of it asks for again. Where what a fault strikes does not tell, they are
    those that each of its rounds asked for."""
    if claim.measure == COUNTED.name:
        return counted_calls(claim.scenario, claim.plan)
    if claim.measure != FIRST_ROUND.tokens.name:
        return {}
    if again := subtasks_of_round(run, claim.scenario).get(claim.plan, ()):
        return {"static": again, "runtime_structured": again[:1]}
    calls = run.calls[run.calls["in_first_round"] & run.calls["scenario"].eq(claim.scenario) & run.calls["plan"].eq(claim.plan)]
    rounds = calls.groupby(["architecture", "trial"], sort=False)["subtask"].agg(tuple)
    asked = {str(name): set(of_arm) for name, of_arm in rounds.groupby(level=0)}
    return {name: next(iter(each)) for name, each in asked.items() if len(each) == 1}


def _by_sizes(source: ModelResults, claim: Claim, measurement: Measurement, wanted: float) -> str:
    """Return the closed form's reason if the closed form agrees with the measured side; else ""."""
    side = _side(claim, measurement, wanted)
    ratio = ratio_by_sizes(source, claim) if side else None
    if ratio is None:
        return ""
    above = not isinstance(claim, RatioClaim) or wanted > 1
    if not agrees_with_side(ratio, side if above else -side):
        return ""
    where = "claimed" if side > 0 else "other"
    return f"the closed form has {ratio:.2f}, on the {where} side as measured, for the sizes of these calls"


def _verdict(claim: Claim, measurement: Measurement, wanted: float, p: float | None) -> Reasoned:
    if isinstance(claim, RateClaim):
        return _by_counting(measurement)
    if measurement.n == 1:
        return "inconclusive", "N=1: nothing is concluded from one"
    if measurement.low is None or measurement.high is None:
        return "inconclusive", "no interval: the mean to be divided by cannot be told from 0"
    if not statistics.has_width(measurement):
        return "inconclusive", f"the interval has no width: {measurement.n} equal values do not show how far off they may be"
    low, high = measurement.low, measurement.high
    if open_or_contrary := _on_a_side(_side(claim, measurement, wanted), p):
        return open_or_contrary
    if not isinstance(claim, RatioClaim):
        return "holds", "the interval lies on the claimed side"
    if low <= wanted <= high:
        return "holds", "the published ratio lies in the interval"
    return "holds, size differs", f"the interval lies on the claimed side, wholly {'above' if low > wanted else 'below'}"


def _side(claim: Claim, measurement: Measurement, wanted: float) -> int:
    match claim:
        case DirectionClaim():
            return measurement.side_of(0.0)
        case RatioClaim():
            return measurement.side_of(1.0) if wanted > 1 else -measurement.side_of(1.0)
    return 0


def _on_a_side(side: int, p: float | None) -> Reasoned | None:
    """Return the verdict on a direction. None means that the direction holds."""
    if not side:
        return "inconclusive", "the interval does not exclude that the two are equal"
    if p is None or p > LEVEL:
        shown = "n/a" if p is None else f"{p:.2g}"
        where = "claimed" if side > 0 else "other"
        return "inconclusive", f"the interval lies on the {where} side, but its p is {shown} after Holm's correction"
    return None if side > 0 else ("contradicted", "the interval lies on the other side")


def _by_counting(measurement: Measurement) -> Reasoned:
    if measurement.otherwise:
        return "counterexample found", f"{measurement.otherwise} of {measurement.n} are otherwise"
    if measurement.high is not None and measurement.high <= TOLERANCE:
        return "holds", f"none of {measurement.n} is otherwise, and the interval ends within the tolerance"
    return "inconclusive", f"none of {measurement.n} is otherwise, but so few leave more open than the tolerance"
