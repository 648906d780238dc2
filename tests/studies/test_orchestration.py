"""Who orchestrates: only arms that differ in one thing are compared, and copies stand in one row."""

from __future__ import annotations

import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.read.analysis.frames import Run
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.orchestration.study import pattern_pairs

CONFIG = ROOTS[0].parent / "studies" / "orchestration" / "config.toml"
FEW = {"scenarios": ["support_desk"], "instances": 2, "plans": ["none", "lost_ack"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_matrix(tmp_path_factory.mktemp("leads"), build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))


def test_no_two_arms_are_compared_that_differ_in_pattern_and_form(run: Run) -> None:
    arms = [pair.split(" less ") for each in pattern_pairs(run) for pair in each.arms]
    assert arms and all(
        first.removesuffix("_remedied") == second.removesuffix("_remedied")
        or first.endswith("_remedied") == second.endswith("_remedied")
        for first, second in arms
    )


def test_a_model_that_leads_rightly_does_as_code_that_leads(run: Run) -> None:
    same = {pair for each in pattern_pairs(run) if not each.differs for pair in each.arms}
    assert "delegation_by_model less plan_and_replan" in same
    lost = [each for each in pattern_pairs(run) if each.plan == "lost_ack" and each.differs and each.outcome == "damage"]
    assert [len(each.arms) for each in lost] == [3]
