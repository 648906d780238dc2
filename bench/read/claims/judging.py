"""The published claims as reports show them, and the tables of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bench.read.analysis.arms import Arms, Condition
from bench.read.analysis.claim import DirectionClaim, RateClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import Metric
from bench.read.analysis.published import published_for
from bench.read.claims.counted import COUNTED, IN_ALL, over_whole_rounds
from bench.read.claims.retries import retry_findings, rounds_ask_the_same
from bench.read.claims.table import claims_tables, verdict_finding
from bench.read.claims.verdicts import Judgement, can_judge, judge_all
from bench.read.report.results import Results
from bench.read.report.summary import SummaryFinding
from bench.read.report.table_part import TablePart


def judge_paper(of: Results) -> tuple[Judgement, ...]:
    """Return the verdicts on the paper's claims. Empty if the run can judge none."""
    published = of.published
    if not can_judge(of.run, published):
        return ()
    judged = judge_all(of.run, published, of.arms)
    rounds = judge_all(of.run, over_whole_rounds(published), of.arms)
    wholes = {(each.model, each.claim.id): each for each in rounds}
    return tuple(_with_whole_round(of, each, wholes) for each in judged)


def _with_whole_round(of: Results, judgement: Judgement, wholes: Mapping[tuple[str, str], Judgement]) -> Judgement:
    """Return the judgement of a retry with the judgement over the whole round, and any other as it is."""
    claim = judgement.claim
    if isinstance(claim, RateClaim) or claim.measure != COUNTED.name or judgement.measured is None:
        return judgement
    named = of.arms[Condition(claim.scenario, judgement.model, claim.plan)]
    same_calls = rounds_ask_the_same(of.run, *(named[name] for name in claim.pair))
    return replace(judgement, whole=wholes[judgement.model, claim.id], same_calls=same_calls)


def findings(of: Results) -> Iterator[SummaryFinding]:
    """Yield the summary's sentences on the paper: what its retries took, and how many claims hold."""
    paper = of.once(judge_paper)
    directions = {
        (each.claim.scenario, each.claim.plan, each.model, frozenset(each.claim.pair)): each
        for each in paper
        if isinstance(each.claim, DirectionClaim) and each.whole
    }

    def verdict(at: Condition, first: str, second: str, measure: Metric) -> str:
        judgement = directions.get((at.scenario, at.plan, at.model, frozenset((first, second))))
        judged = judgement and (judgement if measure is COUNTED else judgement.whole)
        return judged.in_words if judged else ""

    yield from retry_findings(of.run, of.arms, of.published, verdict)
    if finding := verdict_finding(of.run, paper):
        yield finding


def claims_sentence(of: Results) -> str:
    """Return a sentence on how many of the paper's claims come out as the paper says, with its title; "" if none was judged."""
    measured = [each for each in of.once(judge_paper) if each.measured and each.verdict != "not comparable"]
    if not measured:
        return ""
    sides = Counter(judgement.support for judgement in measured)
    sized = sum(judgement.support == 1 and judgement.verdict == "decided by sizes" for judgement in measured)
    by_sizes = f" ({sized} of these by the sizes of calls alone)" if sized else ""
    paper = of.published.paper
    title = f"{paper.title} ({paper.source})"
    as_it_says = f"{sides[1]} of {len(measured)} claims come out as the paper says{by_sizes}"
    return f"{title}: {as_it_says}, {sides[-1]} against it, {sides[0]} open.{_whole_round_sentence(measured)}"


def _whole_round_sentence(judged: Sequence[Judgement]) -> str:
    """Return a sentence on how many claims on retries come out as the paper says over the whole round; "" without a retry."""
    wholes = [0 if each.same_calls else each.whole.support for each in judged if each.whole]
    counted = (
        f" Of the {len(wholes)} on a retry, {wholes.count(1)} come out so over {IN_ALL}, and {wholes.count(-1)} against it."
    )
    return counted if wholes else ""


def short_claims_sentence(run: Run, arms: Arms) -> str:
    """Return the verdicts on the paper's claims in a sentence; "" if none was judged."""
    paper = published_for(run)
    finding = verdict_finding(run, judge_all(run, paper, arms) if can_judge(run, paper) else ())
    return finding.text if finding else ""


TABLES = (TablePart("claims", lambda of: claims_tables(of.run, of.once(judge_paper)), "verdicts", says_limits=False),)
