"""Momentum: when damage began, by hand, and what of it two sets of draws differ in."""

from __future__ import annotations

from math import inf

import pandas as pd
import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.read.analysis.frames import Run
from bench.record.damage import Harm
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.momentum.study import damaged_by, hazard, onset_of, onsets, variance_of_call

CONFIG = ROOTS[0].parent / "studies" / "momentum" / "config.toml"
FEW = {
    "scenarios": ["payment_run:5"],
    "instances": 2,
    "architectures": ["state_machine", "full"],
    "models": ["right", "errs_40_1", "errs_40_2"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_matrix(tmp_path_factory.mktemp("momentum"), build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))


@pytest.mark.parametrize(
    ("harms", "failed", "onset"),
    [
        ({"stale": [Harm("b", 1, (7,))]}, None, 2),
        ({"doubled": [Harm("a", 1, (3, 9))]}, None, 3),
        ({"lost": [Harm("d", 1, ())]}, None, 3),
        ({"lost": [Harm("d", 1, ())]}, 1, 1),
        ({"lost": [Harm("d", 1, ())]}, 0, 1),
        ({"lost": [Harm("d", 1, ())], "stale": [Harm("b", 1, (7,))]}, None, 2),
        ({"stale": []}, None, inf),
    ],
)
def test_damage_is_dated_by_the_effect_that_did_it(harms: dict[str, list[Harm]], failed: int | None, onset: float) -> None:
    assert onset_of(harms, [3, 7, 9], failed) == onset


def of(*rows: tuple[str, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["instance", "model", "onset"]).assign(repetition=1, effects=80)


def test_a_trial_is_damaged_by_an_effect_once_its_damage_began() -> None:
    trials = of(("a", "m", 5), ("b", "m", inf))
    assert [damaged_by(trials, horizon).value for horizon in (4, 5, 80)] == [0.0, 0.5, 0.5]


def test_the_hazard_counts_a_trial_up_to_its_first_damage() -> None:
    begun, at_risk, share = hazard(of(("a", "m", 20), ("b", "m", inf)))
    assert (begun, at_risk, share.value) == (1, 100, 0.01)


def test_the_variance_of_the_call_is_over_the_sets_of_draws_under_the_same_faults() -> None:
    trials = of(("a", "one", 5), ("a", "two", inf), ("b", "one", 5), ("b", "two", 5))
    variance = variance_of_call(trials, 80)
    assert variance is not None and variance.value == 0.25
    assert variance_of_call(of(("a", "one", 5)), 80) is None


def test_two_sets_of_draws_err_elsewhere_and_a_right_proposer_under_no_fault_does_no_damage(run: Run) -> None:
    trials = onsets(run)
    errs = trials[(trials["architecture"] == "state_machine") & trials["rate"].gt(0)]
    by_draws = errs.pivot(index="instance", columns="model", values="onset")
    assert (by_draws.iloc[:, 0] != by_draws.iloc[:, 1]).any()
    assert trials[(trials["architecture"] == "full") & trials["rate"].eq(0)]["onset"].eq(inf).all()
