"""What approval buys: what is prevented, what is paid for it, and that it is compared with nobody being asked."""

from __future__ import annotations

import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.approval.study import CAREFUL, Purchase, purchases

CONFIG = ROOTS[0].parent / "studies" / "approval" / "config.toml"
FEW = {
    "instances": 4,
    "scenarios": ["contract_renewal"],
    "models": ["right"],
    "plans": ["none", "says_yes", "never_answers"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_matrix(tmp_path_factory.mktemp("approval"), build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))


def bought(run: Run) -> dict[tuple[str, str], Purchase]:
    return {(each.asking, each.reviewer): each for each in purchases(run)}


def test_each_variant_that_asks_is_compared_with_the_one_that_asks_nobody_by_kind_of_reviewer(run: Run) -> None:
    kinds = (CAREFUL, "says yes", "never answers")
    assert list(bought(run)) == [(asking, kind) for asking in ("risky", "always") for kind in kinds]
    assert {each.prevented.instances for each in purchases(run)} == {4}


def test_whoever_says_yes_takes_the_unapproved_effects_away_and_nothing_else(run: Run) -> None:
    yes = bought(run)["risky", "says yes"]
    assert yes.prevented.value == yes.unapproved.value == 0.5
    assert yes.minutes.value == bought(run)["risky", CAREFUL].minutes.value


def test_who_never_answers_does_damage_where_every_effect_waits_for_an_answer(run: Run) -> None:
    always = bought(run)["always", "never answers"]
    assert always.prevented.value is not None and always.prevented.value < -5
    assert always.solved.value is not None and always.solved.value < 0


def test_a_run_in_which_nobody_is_the_one_who_asks_nobody_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = load_config(CONFIG, {**FEW, "architectures": ["risky", "always"], "plans": ["none"], "instances": 1})
    only = run_of_matrix(tmp_path_factory.mktemp("asking"), build_matrix(rows, ROOTS[:1], "code"))
    with pytest.raises(ResultsError, match="two variants that differ in `approval` alone"):
        purchases(only)
