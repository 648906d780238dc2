"""The advice as a few lines for the terminal, and as the validation artifact, a page that says what would refute the advice."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

from bench.read.analysis.statistics import Share
from bench.read.claims.break_even import NOT_MEASURED, rate_in_words
from bench.rerun.advice import Advice, ArmEvidence, HeldOutResult
from bench.rerun.evidence import Evidence
from bench.rerun.workload import WorkloadEntry

NOTHING = "nothing is demanded"
HEAD = """| arm | compared with | damaged effects, in trials | damaged effects of the other | cheaper from so many failures |
| --- | --- | --- | --- | --- |"""


def advice_lines(workload: WorkloadEntry, advice: Advice, evidence: Evidence, outcome: HeldOutResult | None) -> Iterator[str]:
    """Yield the advice in at most eleven lines, one fact per line."""
    verb = "did no damage" if not advice.damaged.k else "did the least damage"
    yield f"{workload.name}: build {advice.arm}. It {verb}, in {share(advice.damaged)} trials."
    yield f"measured in {evidence.scenario} of {evidence.run}{', SIMULATED: no model answered' if evidence.simulated else ''}"
    yield f"1. runtime: {advice.runtime}"
    for letter, demand in zip(ascii_lowercase, advice.demands, strict=False):
        yield f"2{letter}. {demand.dimension}: {demand.mechanism or NOTHING}, since {demand.reason}"
    yield f"3. patterns that supply the state and then the rest: {', '.join(advice.matching)}"
    if advice.comparisons:
        yield f"4. {evidence_line(advice.comparisons[0])}"
    else:
        yield f"4. {advice.arm}: {NOT_MEASURED} beside another arm"
    alike = f"; {len(advice.equally_cheap)} other arms take as much" if advice.equally_cheap else ""
    yield f"   a run takes {advice.price:,.0f} tokens with its failures{alike}"
    unmeasured = [f"{NOT_MEASURED} of {', '.join(advice.unmeasured)}"] if advice.unmeasured else []
    if doubts := [*_doubts(advice), *unmeasured]:
        yield f"   {'; '.join(doubts)}"
    if outcome:
        yield held_out_line(outcome)


def _doubts(advice: Advice) -> Iterator[str]:
    """Yield a line if damage contradicts the steps, and a line if damage does not distinguish the advised arm from others."""
    if advice.arm_by_steps != advice.arm:
        harm = " and ".join(f"{arm} {advice.harm[arm]:.2f}" for arm in (advice.arm_by_steps, advice.arm))
        yield f"the steps lead to {advice.arm_by_steps}, which did more damage: in a run {harm} effects"
    if count := len(advice.indistinguishable):
        yield f"it does not know: damage does not tell {advice.arm} from {count} of {len(advice.harm) - 1} others"


def share(value: Share) -> str:
    """Return a share as a count, a total and its interval."""
    bounds = f" [{value.low:.0%}, {value.high:.0%}]" if value.low is not None and value.high is not None else ""
    return f"{value.k}/{value.n}{bounds}"


def evidence_line(comparison: ArmEvidence) -> str:
    """Return a line on two arms: their damage, and the number of failures from which the first is cheaper."""
    sides = zip((comparison.ours, comparison.theirs), comparison.damaged, comparison.effects, strict=True)
    damaged = ", ".join(f"{arm} damaged {effects} effects in {share(rate)} trials" for arm, rate, effects in sides)
    rates = ", ".join(f"{name} {rate_in_words(rate)}" for name, rate in comparison.break_even.items())
    return f"{damaged}; failures in a run from which {comparison.ours} is cheaper: {rates or NOT_MEASURED}"


def held_out_line(outcome: HeldOutResult) -> str:
    """Return a line with the result of the advice on the held-out run."""
    verdict = "holds" if outcome.holds else "does not hold"
    lowest = f"{outcome.ratio:.2f} times the lowest price" if outcome.ratio else "no price to compare"
    price = f"{lowest} of the {outcome.harmless} of {outcome.arms} arms without damage"
    damaged = f"damage in {share(outcome.damaged)} trials"
    harm = ", ".join(f"{name} {value:.2f}" for name, value in harm_of_named_arms(outcome))
    return (
        f"held-out run {outcome.run}, plan {outcome.plan}: {damaged}; {price}; damaged effects for each fault: {harm}; "
        f"the advice {verdict}"
    )


def harm_of_named_arms(outcome: HeldOutResult) -> Iterator[tuple[str, float]]:
    """Yield the damage per delivered fault of four arms: the advised arm, the best, the worst, and an arm drawn at random."""
    yield "advised", outcome.harm[outcome.arm]
    yield f"best ({outcome.best})", outcome.harm[outcome.best]
    yield f"worst ({outcome.worst})", outcome.harm[outcome.worst]
    yield "a coin", outcome.mean_harm


def artifact_of(workload: WorkloadEntry, advice: Advice, evidence: Evidence, outcome: HeldOutResult | None) -> str:
    """Return the validation artifact, in Markdown.

    Args:
        workload: The workload that the advice is on.
        advice: The advice, with its comparisons.
        evidence: The measurements that the advice used.
        outcome: The result of the advice in a held-out run; None if there is no such run.
    """
    work = ", ".join(f"{key} = {value}" for key, value in workload.work.model_dump().items())
    failures = ", ".join(f"{name} {count:g}" for name, count in workload.failures.items()) or "none"
    simulated = " All of it is SIMULATED: no model answered." if evidence.simulated else ""
    dimensions = "; ".join(
        f"{demand.dimension}: {demand.mechanism or NOTHING}, since {demand.reason}" for demand in advice.demands
    )
    text = [
        f"# Advice: {workload.name}",
        f"Build **{advice.arm}**.{simulated}",
        f"The work: {work}. Failures in a run: {failures}.",
        f"Measured in `{evidence.scenario}` of `{evidence.run}`, seed {evidence.config.seed}, {len(evidence.trials):,} trials.",
        "## The five steps",
        f"1. **Runtime**: {advice.runtime}.",
        f"2. **Dimensions**: {dimensions}.",
        "3. **State first**: the patterns that supply the state, and then the rest: " + ", ".join(advice.matching) + ".",
        _choice_line(advice),
        "5. **Artifact**: this page.",
        "## What it rests on",
        "\n".join((HEAD, *(_row(comparison) for comparison in advice.comparisons))),
        *(f"- {doubt}." for doubt in _doubts(advice)),
        *([f"- Not told from it by damage: {', '.join(advice.indistinguishable)}."] if advice.indistinguishable else []),
        *(f"- {name}: {NOT_MEASURED}." for name in advice.unmeasured),
        "## What would refute it",
        f"A run of this work in which {advice.arm} damages something, or in which an arm without damage takes fewer than "
        f"{advice.price / 1.1:,.0f} tokens.",
        *([held_out_line(outcome) + "."] if outcome else ["It was not judged on a run that it has not seen."]),
    ]
    return "\n\n".join(text) + "\n"


def _choice_line(advice: Advice) -> str:
    """Return the line about the choice of the arm."""
    failures = ", ".join(advice.measured) or "any failure that was measured"
    chosen = f"{len(advice.harmless)} of their arms, bare and with remedies, damaged nothing in a pass or under {failures}"
    alike = f" No price tells it from {', '.join(advice.equally_cheap)}." if advice.equally_cheap else ""
    rank = "cheapest" if advice.harmless else "least harmful"
    return f"4. **Predicates**: {chosen}. The advised one is the {rank}, at {advice.price:,.0f} tokens a run.{alike}"


def _row(comparison: ArmEvidence) -> str:
    """Return a table row about a comparison of two arms."""
    rates = "; ".join(f"{name}: {rate_in_words(rate)}" for name, rate in comparison.break_even.items()) or NOT_MEASURED
    first_damage, second_damage = (
        f"{effects} in {share(rate)}" for rate, effects in zip(comparison.damaged, comparison.effects, strict=True)
    )
    return f"| {comparison.ours} | {comparison.theirs} | {first_damage} | {second_damage} | {rates} |"
