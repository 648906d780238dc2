"""Findings of other sources are judged as directions, by what faults cost, and only where a run has their pack."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from records import run_of, trial

from bench.common.errors import ResultsError
from bench.read.analysis.decided_ahead import NO_ANSWER
from bench.read.analysis.frames import Run
from bench.read.claims.claim import DegradationClaim
from bench.read.claims.published import Published, load_others, load_published
from bench.read.claims.trace import claim_named, source_of, trace
from bench.read.claims.verdicts import SIMULATED, Judgement, family_of, judge_all, judge_each
from bench.read.report.report import report_of
from bench.record.config import FAULT_FREE
from bench.run.experiment.config import load_config

AGENTCHAOS = load_others()[0]
ALL = [claim for claim in AGENTCHAOS.claims if isinstance(claim, DegradationClaim)]
CLAIMS = [each for each in ALL if each.strikes == "once"]
"""Those of which a trial can come out one way or the other."""
ARCHITECTURES = ("monolithic", "static", "runtime_structured")
PLANS = load_config(Path(__file__).parents[3] / "studies" / "comparisons" / "chaos.toml", {}).plans
EARLY = "agentchaos.early-above-late.static"
N = 12

Solved = Callable[[str, str, int], bool]
"""Whether the trial of this architecture, fault plan and repetition is solved."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of every arm, in which all is solved and every fault was delivered."""
    arms = [(name, plan, n) for name in ARCHITECTURES for plan in PLANS for n in range(1, N + 1)]
    records = [trial(name, plan, n, scenario="humaneval", timing="live") for name, plan, n in arms]
    run = run_of(tmp_path_factory.mktemp("base") / "run", records)
    return delivered(run, lambda plan, _: plan != FAULT_FREE)


def where(run: Run, solved: Solved) -> Run:
    """The run as if these trials alone had been solved."""
    places = zip(*(run.trials[column] for column in ("architecture", "plan", "repetition")), strict=True)
    correct = pd.Series([solved(*place) for place in places], index=run.trials.index, dtype="boolean")
    outcome = correct.map({True: "solved", False: "wrong"}).astype("str")
    return replace(run, trials=run.trials.assign(correct=correct, outcome=outcome))


def delivered(run: Run, whether: Callable[[str, int], bool]) -> Run:
    """The run as if faults had been delivered where this says so, by plan and repetition."""
    places = zip(run.trials["plan"], run.trials["repetition"], strict=True)
    return replace(run, trials=run.trials.assign(faults_delivered=[int(whether(*place)) for place in places]))


def judged(run: Run, name: str) -> Judgement:
    [judgement] = judge_all(run, AGENTCHAOS, only=lambda claim: claim.id == name)
    return judgement


def losing(claim: DegradationClaim, inverted: bool) -> Solved:
    """The higher side loses all its tasks but one and the lower none; inverted, the other way round. Where there is no lower
    side, faults help."""
    arms = set(claim.higher.arms[1:])
    others = set(claim.lower.arms[1:]) if claim.lower else {claim.higher.arms[0]}

    def solved(architecture: str, plan: str, n: int) -> bool:
        return n == N or (architecture, plan, "") not in (others if inverted else arms)

    return solved


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_inverted_data_invert_the_verdict(claim: DegradationClaim, base: Run) -> None:
    straight, inverted = (judged(where(base, losing(claim, way)), claim.id) for way in (False, True))
    assert (straight.verdict, inverted.verdict) == ("holds", "contradicted")
    assert straight.measured and inverted.measured and straight.measured.value == -inverted.measured.value  # type: ignore[operator]
    assert straight.p == inverted.p is not None


def test_a_loss_is_that_of_each_pair_and_over_several_plans_their_mean(base: Run) -> None:
    """By hand: of 12 pairs one is never solved, and one of two single faults spoils six others: 6 / 12 / 2."""
    claim = claim_named(AGENTCHAOS, "agentchaos.degrades-single.static")
    assert isinstance(claim, DegradationClaim) and len(claim.higher.plans) == 2
    spoilt = claim.higher.plans[0]
    measured = judged(where(base, lambda _, plan, n: n != 1 and not (plan == spoilt and n > 6)), claim.id).measured
    assert measured and measured.n == N and measured.value == pytest.approx(6 / 12 / 2)


def test_what_a_fault_at_every_attempt_costs_is_not_judged_however_much_that_is(base: Run) -> None:
    apart = {each.id for each in ALL if each.strikes == "every"}
    lost = where(base, lambda _, plan, __: "persistent" not in plan)
    judgements = [judged(lost, name) for name in sorted(apart)]
    assert {(judgement.verdict, judgement.reason) for judgement in judgements} == {("not measured", NO_ANSWER)}
    assert {each.id for each in ALL if any("persistent" in plan for side in each.sides for plan in side.plans)} == apart
    assert all(claim.strikes == "once" for claim in CLAIMS) and len(apart) == 11


def test_a_pair_whose_fault_was_not_delivered_is_left_out(base: Run) -> None:
    some = delivered(base, lambda plan, n: plan != FAULT_FREE and (plan, n) != ("missing_field_last", 3))
    none = delivered(base, lambda plan, _: plan not in (FAULT_FREE, "missing_field_last"))
    assert judged(some, EARLY).measured.n == N - 1  # type: ignore[union-attr]
    assert (judged(none, EARLY).verdict, judged(none, EARLY).reason) == (
        "not measured",
        "no fault of plan missing_field_last was delivered to static",
    )


def test_a_simulated_model_is_judged_by_nothing_and_a_missing_plan_is_named(base: Run) -> None:
    simulated = replace(base, trials=base.trials.assign(timing="simulated"))
    judgements = [judgement for judgement in judge_all(simulated, AGENTCHAOS) if judgement.claim in CLAIMS]
    assert {(judgement.verdict, judgement.reason) for judgement in judgements} == {("not comparable", SIMULATED)}
    lacking = replace(base, trials=base.trials[base.trials["plan"] != "missing_field_last"])
    assert judged(lacking, EARLY).reason == "the run has no fault plan missing_field_last"


@pytest.mark.usefixtures("unmade")
def test_a_source_stands_only_in_reports_of_its_pack_under_its_faults(base: Run, tmp_path: Path) -> None:
    chosen = where(base, lambda _, plan, n: plan == FAULT_FREE or n == N)
    report = report_of(chosen)
    table = report.files["tables/claims_agentchaos.md"].decode()
    assert all(claim.id in table for claim in AGENTCHAOS.claims) and AGENTCHAOS.paper.source in table
    assert any(
        re.match(r"Of the \d+ claims of AgentChaos that were measured, ", finding.text) for finding in report.summary.findings
    )
    lines = report.verdicts[report.verdicts.index("AgentChaos:") :]
    assert lines[1].startswith("m, 20 claims of directions")
    assert "tables/claims.md" not in report.files and "levels" not in "".join(lines)
    other_faults = [trial(plan=plan, scenario="humaneval") for plan in (FAULT_FREE, "wrong_value")]
    for name, records in {"other_pack": [trial(scenario="k8s_oomkill")], "other_faults": other_faults}.items():
        other = run_of(tmp_path / name, records)
        shown = report_of(other)
        assert "AgentChaos:" not in shown.verdicts and "tables/claims_agentchaos.md" not in shown.files
        assert judge_each(other, [AGENTCHAOS]) == ()


def test_a_claim_of_any_source_is_traced_to_the_trials_of_every_arm(base: Run) -> None:
    sources = (load_published(), AGENTCHAOS)
    assert source_of(sources, EARLY) is AGENTCHAOS and source_of(sources, "natural.rca") is sources[0]
    with pytest.raises(ResultsError, match=r"did you mean 'agentchaos\.early-above-late\.static'"):
        source_of(sources, "agentchaos.early-above-late.statik")
    [(_, result)] = trace(base, claim_named(AGENTCHAOS, EARLY))
    assert isinstance(result, tuple) and len(result) == 3 * N
    assert {each.item.side for each in result} == {
        f"static under {plan}" for plan in ("none", "missing_field_first", "missing_field_last")
    }


def test_each_claim_names_plans_of_the_config_and_is_of_a_family_of_its_own() -> None:
    assert len(ALL) == len(AGENTCHAOS.claims) == 20 and len(CLAIMS) == len(family_of(AGENTCHAOS)) == 9
    assert {plan for each in ALL for side in each.sides for plan in side.plans} <= set(PLANS)
    assert {side.architecture for each in ALL for side in each.sides} == set(ARCHITECTURES)
    assert not {claim.id for claim in CLAIMS} & {claim.id for claim in load_published().claims}


def test_a_level_needs_the_model_that_it_was_measured_with() -> None:
    written = load_published().model_dump()
    written["paper"] |= {"model": None}
    with pytest.raises(ValueError, match=r"paper\.model: is missing, and a level is claimed"):
        Published.model_validate(written)
    assert AGENTCHAOS.paper.model is None
