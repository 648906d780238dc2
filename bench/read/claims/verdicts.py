"""Judge claims by the results of a run.

direction   holds if the 95% interval of the paired difference lies wholly on the claimed side *and* the sign-flip test
            finds it at 5% after Holm's correction; contradicted if both hold on the other side
ratio       its direction is judged the same way, by the interval of the ratio about 1; it holds if the published ratio also
            lies in that interval; if not: holds, size differs
none, all   a share that is claimed to be 0 or 1: counterexample found, or holds if there is none and the interval ends
            within the tolerance
by sizes    a direction or ratio of two rounds: decided by sizes if the closed form, which knows no model, has the side on
            which the interval lies, claimed or not
level       holds if our interval lies wholly within what counts as the published value (`ranges`), contradicted if it lies
            wholly outside; not comparable unless the model and the prompts are the paper's (`comparable`)

Everything else is inconclusive, and so is everything at N = 1. Nothing is concluded from an interval without width, which equal
values have: they do not show how far off they can be. Counting is different: one counterexample is one.

The family of the correction is every comparison of two architectures in the file, for each model separately, whether or not the
run holds its data. A ratio and a direction of the same values are one comparison. A fault at every attempt leaves no
comparison: no trial could come out otherwise. A claim without data in the run, or with 0 of 0, is not measured, with the
reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_ROUND
from bench.read.analysis.plans import run_again
from bench.read.claims.claim import ANYWHERE, Claim, DegradationClaim, DirectionClaim, RateClaim, RatioClaim, is_structural
from bench.read.claims.closed_forms import NEAR, has_side
from bench.read.claims.evidence import Missing, ModelResults, results_by_model
from bench.read.claims.measurement import LEVEL, Measurement, measured
from bench.read.claims.population import refused
from bench.read.claims.published import Paper, Published
from bench.read.claims.ranges import PublishedRange, range_of

SIMULATED = "simulated: its replies are made up by the suite, and say nothing about a model"
ON_SIMULATED = "judged on a simulated proposer, which is right: it tells what the runtime does, and nothing of a model"
ClaimVerdict = Literal[
    "holds",
    "holds, size differs",
    "contradicted",
    "decided by sizes",
    "counterexample found",
    "inconclusive",
    "not comparable",
    "not measured",
]
VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
Reasoned = tuple[ClaimVerdict, str]


@dataclass(frozen=True)
class Factor:
    """Our level divided by the published one, with its 95% interval."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim. `measured` is None if the claim was not measured.

    p       of a comparison of two architectures: adjusted
    floor   the least p that this many pairs can give, before the correction, if p is that
    tested  the verdict by the measurement alone, whatever sizes decide
    """

    claim: Claim
    model: str
    verdict: ClaimVerdict
    reason: str
    expected: PublishedRange
    measured: Measurement | None = None
    p: float | None = None
    floor: float | None = None
    tested: ClaimVerdict | None = None

    @property
    def in_words(self) -> str:
        """The verdict in words, with the count of counterexamples or with the side that sizes decide."""
        if self.verdict == "decided by sizes":
            return f"{self.verdict}, {'as claimed' if self.side > 0 else 'contrary'}"
        if self.verdict != "counterexample found" or self.measured is None:
            return self.verdict
        return f"{self.verdict} ({self.measured.otherwise} of {self.measured.n})"

    @property
    def stands(self) -> int:
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

    @property
    def factor(self) -> Factor | None:
        """Our level divided by the published level. None if nothing was measured, or if the published level is 0."""
        measured, published = self.measured, self.expected.value
        if measured is None or measured.value is None or not published:
            return None
        low, high = (None if bound is None else bound / published for bound in (measured.low, measured.high))
        return Factor(measured.value / published, low, high)


@dataclass(frozen=True)
class JudgedSource:
    published: Published
    judgements: tuple[Judgement, ...]


def judge_each(run: Run, sources: Sequence[Published], arms: Arms | None = None) -> tuple[JudgedSource, ...]:
    """Return the verdicts on the sources that the run can judge. Each source is a separate family."""
    return tuple(JudgedSource(source, judge_all(run, source, arms)) for source in sources if can_judge(run, source))


def can_judge(run: Run, published: Published) -> bool:
    """Return whether the run holds the data for any of the claims, in its plain packs or at the paper's sizes."""
    return any(_holds(run, size) for size in (published, *published.sized))


def _holds(run: Run, published: Published) -> bool:
    """Return whether the run has the scenario of any claim. A loss also needs one of its plans, and a claim about any world
    needs a world."""
    if any(claim.scenario == ANYWHERE for claim in published.claims):
        return bool(run.trials["lives"].notna().any())
    there = set(zip(run.trials["scenario"].tolist(), run.trials["plan"].tolist(), strict=True))
    scenarios = {scenario for scenario, _ in there}
    return any(
        any((claim.higher.told or claim.scenario, plan) in there for plan in claim.higher.plans)
        if isinstance(claim, DegradationClaim)
        else claim.scenario in scenarios
        for claim in published.claims
    )


def judge_all(
    run: Run, published: Published, arms: Arms | None = None, only: Callable[[Claim], bool] = lambda _: True
) -> tuple[Judgement, ...]:
    """Judge every claim, or `only` some, by every model of the run, in the file's order. If the run has the paper's sizes,
    judge the claims again at these sizes. Each of the two groups is corrected as one family."""
    judgements: list[Judgement] = []
    sources = results_by_model(run, arms)
    for size in sizes_in(run, published):
        claims = [claim for claim in size.claims if only(claim)]
        by_model = [_judge_model(source, claims, size) for source in sources]
        judgements += (judgement for same_claim in zip(*by_model, strict=True) for judgement in same_claim)
    return tuple(judgements)


def sizes_in(run: Run, published: Published) -> tuple[Published, ...]:
    """Return the claims with the plain packs and the claims at the paper's sizes, as far as the run holds their data. If it
    holds neither, return the claims with the plain packs."""
    return tuple(size for size in (published, *published.sized) if _holds(run, size)) or (published,)


def structural(judgements: Sequence[Judgement]) -> list[Judgement]:
    return [judgement for judgement in judgements if is_structural(judgement.claim)]


def levels(judgements: Sequence[Judgement]) -> list[Judgement]:
    return [judgement for judgement in judgements if not is_structural(judgement.claim)]


def counts(judgements: Sequence[Judgement]) -> dict[ClaimVerdict, int]:
    counted = Counter(judgement.verdict for judgement in judgements)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def family_of(published: Published) -> frozenset[Hashable]:
    """Return the comparisons of two architectures over which Holm's correction is made."""
    return frozenset(key for claim in published.claims if (key := _comparison(claim)) is not None)


def _judge_model(source: ModelResults, claims: Sequence[Claim], published: Published) -> list[Judgement]:
    family = family_of(published)
    by_id = {claim.id: measured(source, claim, published, len(family)) for claim in claims}
    raw: dict[Hashable, float | None] = dict.fromkeys(family)
    for claim in claims:
        measurement, key = by_id[claim.id], _comparison(claim)
        if key is not None and isinstance(measurement, Measurement) and measurement.test:
            raw[key] = measurement.test.p
    adjusted = statistics.holm(raw)
    return [_judge(source, claim, published, by_id[claim.id], adjusted) for claim in claims]


def _comparison(claim: Claim) -> Hashable | None:
    """Return a key for the two things that a claim compares, in any order. None if it compares none, or a fault strikes every
    attempt."""
    match claim:
        case DirectionClaim() | RatioClaim():
            return claim.scenario, claim.plan, claim.measure, frozenset(claim.pair)
        case DegradationClaim() if claim.strikes == "once":
            return claim.scenario, frozenset((claim.higher, claim.lower))
    return None


def _judge(
    source: ModelResults,
    claim: Claim,
    published: Published,
    measurement: Measurement | Missing,
    adjusted: Mapping[Hashable, float | None],
) -> Judgement:
    wanted = range_of(published, claim)
    if isinstance(measurement, Missing):
        return Judgement(claim, source.model, "not measured", measurement.reason, wanted)
    p, test = adjusted.get(_comparison(claim)), measurement.test
    floor = test.least if test and test.p is not None and test.least and math.isclose(test.p, test.least) else None
    tested, reason = _verdict(claim, measurement, wanted, p, len(adjusted))
    if in_the_way := obstacle(source.run, source.model, claim, published.paper) or refused(source, claim):
        tested, reason = "not comparable", in_the_way
    verdict: ClaimVerdict = tested
    if sized := _by_sizes(source, claim, measurement, wanted):
        verdict, reason = "decided by sizes", f"{sized}; by the measurement alone: {tested}"
    if source.run.is_simulated(source.model) and verdict != "not comparable":
        reason = f"{reason}; {ON_SIMULATED}"
    if verdict == "not comparable":
        p = floor = None
    return Judgement(claim, source.model, verdict, reason, wanted, measurement, p, floor, tested)


def obstacle(run: Run, model: str, claim: Claim, paper: Paper) -> str:
    """Return why this model cannot judge a claim; "" if it can.

    A simulated model judges no claim about a model's work, only claims that the runtime alone decides. A level is judged only
    with the paper's model at its temperature and its prompts.
    """
    if run.is_simulated(model):
        return "" if claim.about == "runtime" else SIMULATED
    return "" if is_structural(claim) else _unlike(run, model, claim.scenario, paper)


def _unlike(run: Run, model: str, scenario: str, paper: Paper) -> str:
    """Return how the model or its prompts differ from the paper's; "" if they do not."""
    differs = []
    settings = run.parameters_of(model)
    if (settings.model, settings.temperature) != (paper.model, paper.temperature):
        differs.append(f"another model than {paper.asked}")
    if run.pack(scenario).asked != paper.prompts.get(scenario):
        differs.append("other prompts than the paper's")
    return " and ".join(differs)


def ratio_by_sizes(source: ModelResults, claim: Claim) -> float | None:
    """Return the closed form's ratio of the two rounds that a claim names: the first divided by the second. A round of
    monolithic is its pass; of static, the calls from the struck subtask to the checkpoint; of runtime_structured, the struck
    call. So the sizes of calls, the shared context, the depth and the place of detection decide which round is dearer.

    None if the claim is not about rounds, the run has no fault-free trials that show the sizes of calls, the plan strikes no
    subtask's form, or the ratio is too near to 1 to decide anything.
    """
    if not isinstance(claim, DirectionClaim | RatioClaim) or claim.measure != FIRST_ROUND.tokens.name:
        return None
    prices, again = source.prices(claim.scenario), run_again(source.run, claim.scenario).get(claim.plan)
    if prices is None or again is None:
        return None
    above, below = (prices.round_of(name, again) for name in claim.pair)
    ratio = above / below if above and below else None
    return None if ratio is None or abs(ratio - 1) < NEAR else ratio


def _by_sizes(source: ModelResults, claim: Claim, measurement: Measurement, wanted: PublishedRange) -> str:
    """Return the closed form's reason if the closed form agrees with the measured side; else ""."""
    side = _side(claim, measurement, wanted)
    ratio = ratio_by_sizes(source, claim) if side else None
    if ratio is None:
        return ""
    above = not isinstance(claim, RatioClaim) or wanted.value > 1
    if not has_side(ratio, side if above else -side):
        return ""
    where = "claimed" if side > 0 else "other"
    return f"the closed form has {ratio:.2f}, on the {where} side as measured, for the sizes of these calls"


def _verdict(claim: Claim, measurement: Measurement, wanted: PublishedRange, p: float | None, family: int) -> Reasoned:
    if isinstance(claim, RateClaim) and claim.says_none_or_all:
        return _by_counting(measurement, wanted)
    if measurement.n == 1:
        return "inconclusive", "N=1: nothing is concluded from one"
    if measurement.low is None or measurement.high is None:
        return "inconclusive", "no interval: the mean to be divided by cannot be told from 0"
    if not statistics.has_width(measurement):
        return "inconclusive", f"the interval has no width: {measurement.n} equal values do not show how far off they may be"
    low, high, published = measurement.low, measurement.high, wanted.value
    if not isinstance(claim, DirectionClaim | RatioClaim | DegradationClaim):
        return _within(low, high, wanted)
    side, test = _side(claim, measurement, wanted), measurement.test
    if side and test and test.least is not None and test.least * family >= LEVEL:
        return "inconclusive", f"cannot be decided with {test.differ} pairs that differ, over {family} comparisons (floor)"
    if open_or_contrary := _on_a_side(side, p):
        return open_or_contrary
    if not isinstance(claim, RatioClaim):
        return "holds", "the interval lies on the claimed side"
    if low <= published <= high:
        return "holds", "the published ratio lies in the interval"
    return "holds, size differs", f"the interval lies on the claimed side, wholly {'above' if low > published else 'below'}"


def _side(claim: Claim, measurement: Measurement, wanted: PublishedRange) -> int:
    match claim:
        case DirectionClaim() | DegradationClaim():
            return measurement.side_of(0.0)
        case RatioClaim():
            return measurement.side_of(1.0) if wanted.value > 1 else -measurement.side_of(1.0)
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


def _within(low: float, high: float, wanted: PublishedRange) -> Reasoned:
    if wanted.low <= low and high <= wanted.high:
        return "holds", "the interval lies within what counts as the published value"
    if high < wanted.low or low > wanted.high:
        return "contradicted", "the interval lies wholly beyond what counts as the published value"
    return "inconclusive", "the interval holds values within what counts as the published value and beyond it"


def _by_counting(measurement: Measurement, wanted: PublishedRange) -> Reasoned:
    if measurement.otherwise:
        return "counterexample found", f"{measurement.otherwise} of {measurement.n} are otherwise"
    low, high = measurement.low, measurement.high
    if low is not None and high is not None and wanted.low <= low and high <= wanted.high:
        return "holds", f"none of {measurement.n} is otherwise, and the interval ends within the tolerance"
    return "inconclusive", f"none of {measurement.n} is otherwise, but so few leave more open than the tolerance"
