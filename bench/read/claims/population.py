"""The population of a claim: the trials that the claim is about, the unit that counts once, and the arms that are compared.

Two arms that differ in several aspects are no evidence for one of these aspects. A claim about two arms says in what they
differ, and whether the run has an arm between them that differs from each in fewer aspects.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.read.analysis.arms import instances_by_scenario
from bench.read.analysis.aspects import ASKING_ASPECT, aspects_between, structure_of
from bench.read.analysis.claim import Claim, RateClaim
from bench.read.analysis.factors import (
    ARCHITECTURE,
    ArmName,
    VerdictEvidence,
    factor_could_act,
    factors_between,
    pairs_that_could_differ,
    reason_against_verdict,
)
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import by_unit
from bench.read.claims.evidence import Missing, ModelResults, evidence, values_with_copies
from bench.read.claims.measurement import compared_values

COUNTED_TEXTS = {
    "valid_but_wrong": "distinct replies to first attempts that were found wrong, by form or by a check",
    "wrong_answers": "trials that ended with an answer",
}


@dataclass(frozen=True)
class Population:
    """The trials on which a claim is judged.

    among     the trials, replies or answers, in words
    unit      the unit that counts once, in words
    arms      each arm, as architecture and plan
    differ    the aspects in which the two architectures differ, if the claim compares two whose structure is known
    between   the run's architectures that differ from each of the two in fewer aspects
    """

    among: str
    unit: str
    arms: tuple[str, ...]
    differ: tuple[str, ...] = ()
    between: tuple[str, ...] = ()


def population_of(run: Run, claim: Claim) -> Population:
    """Return the trials on which a claim is judged, and in what its arms differ."""
    several = len(instances_by_scenario(run).get(claim.scenario, ())) > 1
    cluster = "instance" if several else "repetition"
    if isinstance(claim, RateClaim):
        unit = f"{'reply' if claim.counted == 'valid_but_wrong' else 'trial'}, clustered by {cluster}"
        if claim.counted == "silent_corruption":
            among = f"graded trials in which {claim.effect} was delivered, under plans that leave an answer"
            return Population(among, unit, (f"{claim.architecture} under any plan",))
        return Population(COUNTED_TEXTS[claim.counted], unit, (f"{claim.architecture} under {claim.plan}",))
    differ = aspects_between(run, *claim.pair)
    if claim.measure.startswith("first_pass"):
        differ = tuple(aspect for aspect in differ if aspect == ASKING_ASPECT)
    between = tuple(name for name in run.names("architecture") if _lies_between(run, name, *claim.pair)) if differ else ()
    among = f"pairs of trials under plan {claim.plan} that both have {claim.measure}"
    return Population(among, cluster, tuple(f"{name} under {claim.plan}" for name in claim.pair), differ, between)


def reason_against(source: ModelResults, claim: Claim) -> str:
    """Return why this run can give no verdict on a claim: the claim's arms differ in more than the claim names, no pair of
    trials could have differed, or all pairs are copies of one pair. "" if the run can give a verdict.

    A claim names two architectures, and so all aspects in which their code differs (`population_of`). Apart from these, or if
    they are variants of one architecture, they may differ in one factor only.
    """
    if isinstance(claim, RateClaim):
        return ""
    run = source.run
    with_copies, without_copies = values_with_copies(source, claim), evidence(source, claim)
    if isinstance(with_copies, Missing) or isinstance(without_copies, Missing):
        return ""  # the claim is not measured
    first_arm, second_arm = (ArmName(name, source.model, claim.plan) for name in claim.pair)
    factors = factors_between(run, first_arm, second_arm)
    trials = run.trials[run.trials["trial"].isin({item.trial for item in with_copies})]
    affected_trials = set(trials.loc[factor_could_act(trials, factors), "trial"].tolist())
    first, second = compared_values(with_copies)
    could_differ = pairs_that_could_differ(first, second, {item.pair for item in with_copies if item.trial in affected_trials})
    first_counted, second_counted = compared_values(without_copies)
    units = by_unit({pair: 0.0 for pair in first_counted if pair in second_counted})
    basis = VerdictEvidence(factors, len(first.keys() & second.keys()), len(could_differ), len(units))
    return reason_against_verdict(basis, ARCHITECTURE if ARCHITECTURE in factors or not factors else factors[0])


def _lies_between(run: Run, name: str, first: str, second: str) -> bool:
    """Whether an architecture is neither of two others, and differs from each in fewer aspects than they differ from each
    other."""
    if name in (first, second) or not structure_of(run, name):
        return False
    pairs = ((first, second), (name, first), (name, second))
    between_both, *from_each = (len(aspects_between(run, *pair)) for pair in pairs)
    return all(0 < number < between_both for number in from_each)
