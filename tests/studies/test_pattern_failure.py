"""Pattern × failure: what is shown, what is mended, and which patterns are not told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import exact_share
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.pattern_failure.pattern_behaviour import retries, undone_as_done
from studies.pattern_failure.study import (
    MENDED,
    NOT_PROVOKED,
    ONLY_REMEDIED,
    SHOWN,
    TOO_FEW,
    WITHSTOOD,
    Weakness,
    not_told_apart,
    weaknesses,
)

CONFIG = ROOTS[0].parent / "studies" / "pattern_failure" / "config.toml"
FEW = {
    "scenarios": ["contract_renewal"],
    "instances": 2,
    "plans": ["none", "lost_answer", "tool_down"],
    "architectures": [
        *("bare_agent", "bare_agent_remedied", "state_machine", "state_machine_remedied"),
        *("hierarchical_delegation", "hierarchical_delegation_remedied"),
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_matrix(tmp_path_factory.mktemp("patterns"), build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))


def test_a_lost_answer_doubles_what_has_no_key_and_the_remedy_mends_it(run: Run) -> None:
    by_pattern = {weakness.pattern: weakness for weakness in weaknesses(run) if weakness.failure == "lost_answer"}
    assert {weakness.verdict for weakness in by_pattern.values()} == {MENDED}
    assert (by_pattern["state_machine"].bare.k, by_pattern["state_machine"].remedied.k) == (2, 0)


def test_a_childs_retries_multiply_bare_and_are_the_parents_budget_with_remedies(run: Run) -> None:
    tried = {each.pattern: (each.bare.value, each.remedied.value) for each in retries(run)}
    assert tried == {"bare_agent": (2, 7), "state_machine": (2, 7), "hierarchical_delegation": (5, 7)}


def test_patterns_with_the_same_damage_in_every_pair_are_not_told_apart(run: Run) -> None:
    alike = not_told_apart(run)
    assert {"bare_agent", "hierarchical_delegation"} <= set(alike["bare"][0])
    assert len(alike["with remedies"][0]) == 3


@pytest.mark.parametrize(
    ("bare", "remedied", "verdict", "on_copies"),
    [
        ((3, 5), (0, 5), MENDED, SHOWN),
        ((3, 5), (1, 5), SHOWN, SHOWN),
        ((0, 5), (0, 5), WITHSTOOD, TOO_FEW),
        ((0, 5), (2, 5), ONLY_REMEDIED, ONLY_REMEDIED),
        ((0, 0), (0, 0), NOT_PROVOKED, NOT_PROVOKED),
    ],
)
def test_a_verdict_follows_from_both_forms_and_none_rests_on_copies_that_show_nothing(
    bare: tuple[int, int], remedied: tuple[int, int], verdict: str, on_copies: str
) -> None:
    weakness = Weakness("s", "m", "f", "p", exact_share(*bare), exact_share(*remedied))
    assert weakness.verdict == verdict
    assert replace(weakness, refused=("copies", "copies")).verdict == on_copies


def test_no_remedy_is_proved_by_the_trials_of_one_instance(tmp_path: Path) -> None:
    repeated = FEW | {"instances": 1, "repetitions": 2, "plans": ["none", "lost_answer"]}
    run = run_of_matrix(tmp_path / "run", build_matrix(load_config(CONFIG, repeated), ROOTS[:1], "code"))
    assert {(weakness.remedied.k, weakness.remedied.n, weakness.verdict) for weakness in weaknesses(run)} == {(0, 2, SHOWN)}


def test_a_saga_that_undoes_in_the_order_of_doing_leaves_a_migration_behind(tmp_path_factory: pytest.TempPathFactory) -> None:
    config = load_config(
        CONFIG.with_stem("pattern_failure_undo"), {"scenarios": ["service_upgrade/case_04", "service_upgrade/case_02"]}
    )
    run = run_of_matrix(tmp_path_factory.mktemp("undo"), build_matrix(config, ROOTS[:1], "code"))
    [order] = undone_as_done(run)
    assert order.form == "scatter_gather_saga_as_done"
    assert (order.uncompensated.value, order.lost.value) == (0.5, -0.5), (
        "it stays where it ought to go, and where it ought to stay"
    )
