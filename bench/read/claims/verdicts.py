"""The verdicts on claims, by the results of a run.

A claimed direction holds if the 95% interval of the paired difference is wholly on the claimed side *and* the sign-flip test
finds the difference at 5% after Holm's correction. It is contradicted if both are true of the other side.

A claimed ratio has a direction, which is judged in the same way by the interval of the ratio about 1. If the direction holds,
the ratio holds if the published ratio is in that interval; if not, it holds but its size differs.

A claimed share of 0 is refuted by a counterexample. It holds if there is none and the interval ends within the tolerance.

A direction or ratio of two rounds is decided by sizes if the closed form, which knows no model, is on the same side as the
interval, whether that is the claimed side or not.

A direction or ratio that is not decided cannot be decided with so few pairs if even their least possible p is not below 5%
after the correction. Every other claim is inconclusive, and so is every direction or ratio at N = 1. An interval without width,
which equal values have, decides nothing: it does not show how far off the values can be.

Holm's correction is over all comparisons of two architectures in the file of claims, for each model separately, whether or not
the run has their data. A ratio and a direction of the same values are one comparison. A claim without data in the run, or with
0 of 0, is not measured, with the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, get_args

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arms
from bench.read.analysis.claim import Claim, DirectionClaim, RateClaim, RatioClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_ROUND
from bench.read.analysis.plans import subtasks_of_round
from bench.read.analysis.published import Published
from bench.read.claims.closed_forms import MIN_RATIO_GAP, agrees_with_side
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
VerdictAndReason = tuple[ClaimVerdict, str]


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim.

    expected   the published value
    measured   our number; None if the claim was not measured
    p          for a comparison of two architectures: the test's p after Holm's correction
    floor      the smallest p that this many pairs can give, if the uncorrected p equals it; else None
    tested     the verdict by the measured difference alone, whatever the sizes of the calls
    whole      for a claim about a retry, measured as the paper counts: the same claim judged by all calls of the round
    same_calls   whether the two architectures make the same calls in the whole round, so that a difference follows from the
               code
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
        return f"{self.verdict} ({self.measured.counterexamples} of {self.measured.n})"

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
    """Whether the run has the data of any claim, in its plain packs or at the paper's sizes."""
    return any(_has_data(run, size) for size in (published, *published.sized))


def _has_data(run: Run, published: Published) -> bool:
    """Whether the run has the scenario of any claim."""
    return not {claim.scenario for claim in published.claim}.isdisjoint(run.names("scenario"))


def judge_all(run: Run, published: Published, arms: Arms | None = None) -> tuple[Judgement, ...]:
    """Return the judgement on every claim for every model of the run, in the file's order. If the run has the paper's sizes,
    the claims are judged again at these sizes. Holm's correction is made for each model and each size separately."""
    judgements: list[Judgement] = []
    sources = results_by_model(run, arms)
    for size in sizes_in(run, published):
        by_model = [_judge_model(source, size) for source in sources]
        judgements += chain.from_iterable(zip(*by_model, strict=True))  # claim by claim, a judgement for each model
    return tuple(judgements)


def sizes_in(run: Run, published: Published) -> tuple[Published, ...]:
    """Return the claims for the plain packs and the claims at the paper's sizes, each only if the run has their data. If it
    has neither, return the claims for the plain packs."""
    return tuple(size for size in (published, *published.sized) if _has_data(run, size)) or (published,)


def counts(judgements: Sequence[Judgement]) -> dict[ClaimVerdict, int]:
    """Return the number of claims by verdict, in the order of VERDICTS."""
    counted = Counter(judgement.verdict for judgement in judgements)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def family_of(claims: Iterable[Claim]) -> frozenset[Hashable]:
    """Return the comparisons of two architectures that these claims make, over which Holm's correction is made."""
    return frozenset(key for claim in claims if (key := _comparison(claim)) is not None)


def _judge_model(source: ModelResults, published: Published) -> list[Judgement]:
    """Return one model's judgement on each claim."""
    family, claims = family_of(published.claim), published.claim
    measurements = {claim.id: measurement_of(source, claim, len(family)) for claim in claims}
    uncorrected: dict[Hashable, float | None] = dict.fromkeys(family)
    for claim in claims:
        measurement, key = measurements[claim.id], _comparison(claim)
        if key is not None and isinstance(measurement, Measurement) and measurement.test:
            uncorrected[key] = measurement.test.p
    tests = _CorrectedTests(len(family), statistics.holm(uncorrected))
    return [_judge(source, claim, published, measurements[claim.id], tests) for claim in claims]


@dataclass(frozen=True)
class _CorrectedTests:
    """Each comparison's p after Holm's correction. `family` is the number of comparisons."""

    family: int
    adjusted: Mapping[Hashable, float | None]


def _comparison(claim: Claim) -> Hashable | None:
    """Return what a claim compares, as a key: its two architectures, whatever their order, and its measure. None for a claim
    about a share, which compares nothing."""
    return None if isinstance(claim, RateClaim) else (claim.scenario, claim.plan, claim.measure, frozenset(claim.pair))


def _judge(
    source: ModelResults,
    claim: Claim,
    published: Published,
    measurement: Measurement | Missing,
    tests: _CorrectedTests,
) -> Judgement:
    """Return the judgement on a claim.

    The measurement and its corrected test give the verdict `tested`. An objection replaces it by "not comparable". If the sizes
    of calls predict the measured direction, the verdict is "decided by sizes", even against an objection.
    """
    expected = published.value_of(claim) or 0.0
    if isinstance(measurement, Missing):
        return Judgement(claim, source.model, "not measured", measurement.reason, expected)
    p, test = tests.adjusted.get(_comparison(claim)), measurement.test
    floor = test.least if test and test.p is not None and test.least and math.isclose(test.p, test.least) else None
    tested, reason = _verdict(claim, measurement, expected, p)
    if tested == "inconclusive" and test and statistics.beyond_reach(test.least, tests.family):
        tested = "cannot be decided"
        reason = f"{reason}; no values of {test.pairs} pairs give a p below {LEVEL} after Holm's correction"
    is_simulated = source.run.is_simulated(source.model)
    objection = SIMULATED if is_simulated else reason_against(source, claim)
    if objection:
        tested, reason = "not comparable", objection
    verdict: ClaimVerdict = tested
    if reason_by_sizes := _reason_by_sizes(source, claim, measurement, expected):
        verdict, reason = "decided by sizes", f"{reason_by_sizes}; by the measurement alone: {tested}"
    if is_simulated and verdict != "not comparable":
        reason = f"{reason}; {ON_SIMULATED}"
    if verdict == "not comparable":
        p = floor = None
    return Judgement(claim, source.model, verdict, reason, expected, measurement, p, floor, tested)


def ratio_by_sizes(source: ModelResults, claim: Claim) -> float | None:
    """Return the closed form's ratio of the two rounds that a claim compares: the first round's tokens / the second's.

    A round of monolithic is its pass. A round of another architecture has the calls that the paper counts. A whole round has
    the calls from the struck subtask to the checkpoint for static, and the struck call for runtime_structured. So the sizes of
    calls, the shared context, the depth and the place of detection decide which round is dearer.

    None if the claim is not about rounds, the run has no fault-free trials that show the sizes of calls, it is not known what a
    round asks for, or the ratio is too near to 1 to decide anything (MIN_RATIO_GAP).
    """
    if not isinstance(claim, DirectionClaim | RatioClaim):
        return None
    prices, asked_again = source.prices(claim.scenario), _asked_again(source, claim)
    if prices is None or not asked_again:
        return None
    first, second = (prices.round_of(name, asked_again) for name in claim.pair)
    ratio = first / second if first and second else None
    return None if ratio is None or abs(ratio - 1) < MIN_RATIO_GAP else ratio


def _asked_again(source: ModelResults, claim: DirectionClaim | RatioClaim) -> Mapping[str, Sequence[str]]:
    """Return architecture -> the subtasks that its round asks for again; empty if the claim is not about rounds. If the fault
    plan does not determine the subtasks, the recorded rounds do: an architecture whose rounds asked for different subtasks is
    left out."""
    if claim.measure == COUNTED.name:
        return counted_calls(claim.scenario, claim.plan)
    if claim.measure != FIRST_ROUND.tokens.name:
        return {}
    if subtasks := subtasks_of_round(source.run, claim.scenario).get(claim.plan, ()):
        return {"static": subtasks, "runtime_structured": subtasks[:1]}
    calls = source.run.calls
    calls = calls[calls["in_first_round"] & calls["model"].eq(source.model)]
    calls = calls[calls["scenario"].eq(claim.scenario) & calls["plan"].eq(claim.plan)]
    rounds = calls.groupby(["architecture", "trial"], sort=False)["subtask"].agg(tuple)
    by_architecture = {str(name): group.tolist() for name, group in rounds.groupby(level=0)}
    return {name: subtasks[0] for name, subtasks in by_architecture.items() if len(set(subtasks)) == 1}


def _reason_by_sizes(source: ModelResults, claim: Claim, measurement: Measurement, expected: float) -> str:
    """Return a sentence which says that the sizes of calls alone predict the measured direction, be it the claimed direction
    or the opposite. "" if no direction was measured, or the sizes do not predict it."""
    side = _side(claim, measurement, expected)
    ratio = ratio_by_sizes(source, claim) if side else None
    if ratio is None:
        return ""
    claims_first_dearer = not isinstance(claim, RatioClaim) or expected > 1
    if not agrees_with_side(ratio, side if claims_first_dearer else -side):
        return ""
    where = "claimed" if side > 0 else "other"
    return f"the closed form has {ratio:.2f}, on the {where} side as measured, for the sizes of these calls"


def _verdict(claim: Claim, measurement: Measurement, expected: float, p: float | None) -> VerdictAndReason:
    """Return the verdict by the measurement alone, and its reason. `p` is the test's p after Holm's correction."""
    if isinstance(claim, RateClaim):
        return _share_verdict(measurement)
    if measurement.n == 1:
        return "inconclusive", "N=1: nothing is concluded from one"
    if measurement.low is None or measurement.high is None:
        return "inconclusive", "no interval: the mean to be divided by cannot be told from 0"
    if not statistics.has_width(measurement):
        return "inconclusive", f"the interval has no width: {measurement.n} equal values do not show how far off they may be"
    low, high = measurement.low, measurement.high
    if not_confirmed := _direction_verdict(_side(claim, measurement, expected), p):
        return not_confirmed
    if not isinstance(claim, RatioClaim):
        return "holds", "the interval lies on the claimed side"
    if low <= expected <= high:
        return "holds", "the published ratio lies in the interval"
    return "holds, size differs", f"the interval lies on the claimed side, wholly {'above' if low > expected else 'below'}"


def _side(claim: Claim, measurement: Measurement, expected: float) -> int:
    """Return 1 if the interval is wholly on the claimed side, -1 if it is wholly on the other side, 0 otherwise."""
    match claim:
        case DirectionClaim():
            return measurement.side_of(0.0)
        case RatioClaim():
            return measurement.side_of(1.0) if expected > 1 else -measurement.side_of(1.0)
    return 0


def _direction_verdict(side: int, p: float | None) -> VerdictAndReason | None:
    """Return the verdict on a direction that does not hold, with its reason; None if it holds."""
    if not side:
        return "inconclusive", "the interval does not exclude that the two are equal"
    if p is None or p > LEVEL:
        p_text = "n/a" if p is None else f"{p:.2g}"
        where = "claimed" if side > 0 else "other"
        return "inconclusive", f"the interval lies on the {where} side, but its p is {p_text} after Holm's correction"
    return None if side > 0 else ("contradicted", "the interval lies on the other side")


def _share_verdict(measurement: Measurement) -> VerdictAndReason:
    """Return the verdict on a claimed share of 0, with its reason."""
    if measurement.counterexamples:
        return "counterexample found", f"{measurement.counterexamples} of {measurement.n} are otherwise"
    if measurement.high is not None and measurement.high <= TOLERANCE:
        return "holds", f"none of {measurement.n} is otherwise, and the interval ends within the tolerance"
    return "inconclusive", f"none of {measurement.n} is otherwise, but so few leave more open than the tolerance"
