"""ReliabilityBench's findings: what the runtime alone decides is judged on a simulated proposer, what a model does is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from records import run_of, trial

from bench.read.analysis.frames import Run
from bench.read.claims.claim import DegradationClaim, Side
from bench.read.claims.published import load_others
from bench.read.claims.verdicts import ON_SIMULATED, SIMULATED, Judgement, family_of, judge_all
from bench.record.config import FAULT_FREE
from bench.run.experiment.config import load_config

SOURCE = load_others()[-1]
CLAIMS = [claim for claim in SOURCE.claims if isinstance(claim, DegradationClaim)]
CONFIG = load_config(Path(__file__).parents[3] / "studies" / "reliability_surface" / "config.toml", {})
PLANS = (
    FAULT_FREE,
    *dict.fromkeys(plan for claim in CLAIMS for side in claim.sides for plan in side.plans if plan != FAULT_FREE),
)
N = 12

Place = tuple[str, str, str]
"""(scenario, architecture, fault plan)"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of every arm that a claim is about, in which all is solved and every fault was delivered."""
    arms = [(scenario, name, plan) for scenario in CONFIG.scenarios for name in CONFIG.architectures for plan in PLANS]
    records = [trial(name, plan, n, scenario=scenario, timing="live") for scenario, name, plan in arms for n in range(1, N + 1)]
    run = run_of(tmp_path_factory.mktemp("base") / "run", records)
    struck = (run.trials["plan"] != FAULT_FREE).astype(int)
    return replace(run, trials=run.trials.assign(faults_delivered=struck))


def losing(run: Run, lost: set[Place]) -> Run:
    """The run as if these arms had solved none but their last pair."""
    columns = ("scenario", "architecture", "plan", "repetition")
    rows = zip(*(run.trials[column] for column in columns), strict=True)
    solved = [n == N or (scenario, name, plan) not in lost for scenario, name, plan, n in rows]
    correct = pd.Series(solved, index=run.trials.index, dtype="boolean")
    outcome = correct.map({True: "solved", False: "wrong"}).astype("str")
    return replace(run, trials=run.trials.assign(correct=correct, outcome=outcome))


def places(claim: DegradationClaim, side: Side) -> set[Place]:
    return {(arm.told or claim.scenario, arm.architecture, arm.plan) for arm in side.arms[1:]}


def judged(run: Run, claim: DegradationClaim) -> Judgement:
    [judgement] = judge_all(run, SOURCE, only=lambda other: other.id == claim.id)
    return judgement


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_inverted_data_invert_the_verdict(claim: DegradationClaim, base: Run) -> None:
    """Where there is no lower side, nothing is solved but what is told otherwise."""
    worse = places(claim, claim.higher)
    better = places(claim, claim.lower) if claim.lower else {(claim.scenario, claim.higher.architecture, FAULT_FREE)}
    straight, inverted = (judged(losing(base, lost), claim) for lost in (worse, better))
    assert (straight.verdict, inverted.verdict) == ("holds", "contradicted")


def test_on_a_simulated_proposer_the_runtimes_claims_are_judged_and_say_so_and_a_models_are_not(base: Run) -> None:
    simulated = replace(base, trials=base.trials.assign(timing="simulated"))
    for claim in CLAIMS:
        judgement = judged(losing(simulated, places(claim, claim.higher)), claim)
        if claim.about == "model":
            assert (judgement.verdict, judgement.reason) == ("not comparable", SIMULATED)
        else:
            assert judgement.verdict == "holds" and judgement.reason.endswith(ON_SIMULATED)


def test_only_what_is_told_otherwise_is_about_a_model() -> None:
    assert {claim.about for claim in CLAIMS if claim.higher.told} == {"model"}
    assert {claim.about for claim in CLAIMS if not claim.higher.told} == {"runtime"}


def test_each_claim_names_what_the_config_has_and_is_a_comparison_of_its_own() -> None:
    assert len(CLAIMS) == len(SOURCE.claims) == len(family_of(SOURCE))
    assert set(PLANS) <= set(CONFIG.plans)
    assert {side.architecture for claim in CLAIMS for side in claim.sides} <= set(CONFIG.architectures)
    scenarios = {claim.scenario for claim in CLAIMS} | {side.told for claim in CLAIMS for side in claim.sides} - {""}
    assert scenarios <= set(CONFIG.scenarios)
