"""Two contracts: the arms of each pair differ in the contract alone, and a run without one of them is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.second_contract.study import contracts, under_both

CONFIG = ROOTS[0].parent / "studies" / "second_contract" / "config.toml"
FEW = {"scenarios": ["contract_renewal"], "instances": 2, "models": ["right"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_matrix(tmp_path_factory.mktemp("contracts"), build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))


def test_each_sentence_is_judged_under_both_contracts(run: Run) -> None:
    rows = under_both(run)
    assert [row.first.sentence for row in rows] == [row.second.sentence for row in rows] and len(rows) == 5
    assert {row.holds for row in rows} == {"neither"}  # two instances decide nothing


def test_the_contracts_differ_in_the_order_alone(run: Run) -> None:
    assert all(row.refused == "" or "pairs" in row.refused for row in contracts(run))


def test_a_run_of_a_single_contract_is_refused(run: Run) -> None:
    before = run.trials[run.trials["architecture"].astype(str).str.startswith("before")]
    with pytest.raises(ResultsError, match="needs variants of 'state_machine' and of 'repair_afterwards'"):
        under_both(replace(run, trials=before))
