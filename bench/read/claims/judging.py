"""The verdicts on the paper's claims as a report shows them: sentences, findings and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bench.read.analysis.arms import Arms, Condition
from bench.read.analysis.claim import DirectionClaim, RateClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import Metric
from bench.read.analysis.published import published_for
from bench.read.analysis.results import Results
from bench.read.claims.counted import COUNTED, WHOLE_ROUND, over_whole_rounds
from bench.read.claims.retries import retry_findings, rounds_ask_the_same
from bench.read.claims.table import claims_tables, verdict_finding
from bench.read.claims.verdicts import Judgement, can_judge, judge_all
from bench.read.render.finding import SummaryFinding
from bench.read.render.table_part import TablePart


def judge_paper(results: Results) -> tuple[Judgement, ...]:
    """Return the verdicts on the paper's claims. Empty if the run has the data of no claim."""
    run, published, arms = results.run, results.published, results.arms
    if not can_judge(run, published):
        return ()
    whole_rounds = {
        (judgement.model, judgement.claim.id): judgement for judgement in judge_all(run, over_whole_rounds(published), arms)
    }
    return tuple(_with_whole_round(results, judgement, whole_rounds) for judgement in judge_all(run, published, arms))


def _with_whole_round(results: Results, judgement: Judgement, wholes: Mapping[tuple[str, str], Judgement]) -> Judgement:
    """Return a judgement on a retry with the judgement over the whole round beside it; any other judgement as it is. `wholes`
    has the judgements over whole rounds by model and claim."""
    claim = judgement.claim
    if isinstance(claim, RateClaim) or claim.measure != COUNTED.name or judgement.measured is None:
        return judgement
    by_architecture = results.arms[Condition(claim.scenario, judgement.model, claim.plan)]
    same_calls = rounds_ask_the_same(results.run, *(by_architecture[name] for name in claim.pair))
    return replace(judgement, whole=wholes[judgement.model, claim.id], same_calls=same_calls)


def findings(results: Results) -> Iterator[SummaryFinding]:
    """Yield the summary's findings on the paper: what its retries took, and how many claims hold."""
    judgements = results.once(judge_paper)
    directions = {
        (judgement.claim.scenario, judgement.claim.plan, judgement.model, frozenset(judgement.claim.pair)): judgement
        for judgement in judgements
        if isinstance(judgement.claim, DirectionClaim) and judgement.whole
    }

    def verdict(condition: Condition, first: str, second: str, measure: Metric) -> str:
        """Return the verdict on the claimed direction of two retries, in words; "" if none was claimed."""
        judgement = directions.get((condition.scenario, condition.plan, condition.model, frozenset((first, second))))
        if judgement and measure is not COUNTED:
            judgement = judgement.whole
        return judgement.in_words if judgement else ""

    yield from retry_findings(results.run, results.arms, results.published, verdict)
    if finding := verdict_finding(results.run, judgements):
        yield finding


def claims_sentence(results: Results) -> str:
    """Return a sentence, begun by the paper's title, on how many of its claims come out as it says; "" if none was judged."""
    measured = [
        judgement for judgement in results.once(judge_paper) if judgement.measured and judgement.verdict != "not comparable"
    ]
    if not measured:
        return ""
    by_support = Counter(judgement.support for judgement in measured)  # 1: as claimed; -1: against the claim; 0: open
    by_size_count = sum(judgement.support == 1 and judgement.verdict == "decided by sizes" for judgement in measured)
    by_sizes = f" ({by_size_count} of these by the sizes of calls alone)" if by_size_count else ""
    paper = results.published.paper
    title = f"{paper.title} ({paper.source})"
    as_claimed = f"{by_support[1]} of {len(measured)} claims come out as the paper says{by_sizes}"
    return f"{title}: {as_claimed}, {by_support[-1]} against it, {by_support[0]} open.{_whole_round_sentence(measured)}"


def _whole_round_sentence(judgements: Sequence[Judgement]) -> str:
    """Return a sentence on how many claims on retries come out as the paper says over the whole round; "" without a retry.
    A difference that follows from the code, because both rounds make the same calls, counts as open."""
    supports = [0 if judgement.same_calls else judgement.whole.support for judgement in judgements if judgement.whole]
    as_claimed, contrary = supports.count(1), supports.count(-1)
    text = f" Of the {len(supports)} on a retry, {as_claimed} come out so over {WHOLE_ROUND}, and {contrary} against it."
    return text if supports else ""


def short_claims_sentence(run: Run, arms: Arms) -> str:
    """Return a sentence on how many of the paper's claims hold; "" if none was judged."""
    paper = published_for(run)
    finding = verdict_finding(run, judge_all(run, paper, arms) if can_judge(run, paper) else ())
    return finding.text if finding else ""


TABLES = (
    TablePart("claims", lambda results: claims_tables(results.run, results.once(judge_paper)), "verdicts", says_limits=False),
)
