"""A verdict rests on arms that differ in the named thing alone, on pairs that could differ, and on units that are no copies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import config_in, edit_manifest, trial, write_run

import bench
from bench.read.analysis.factors import ArmName, VerdictEvidence, factors_between, reason_against_verdict
from bench.read.analysis.frames import Run

FORMS: dict[str, dict[str, Any]] = {
    "none": {"strength": "none"},
    "rules": {"strength": "business_rule"},
    "rules_unasked": {"strength": "business_rule", "approval": "never"},
    "keyed": {"strength": "none", "commit": "idempotent"},
    "plain": {"strength": "none", "commit": "plain"},
    "remedied": {"remedies": True},
    "bare": {},
    "patient": {"max_attempts": 9},
    "children": {"children": 3, "catches_up": True},
}
MODELS = {
    "right": {"kind": "simulated", "failure_rate": 0.0},
    "errs": {"kind": "simulated", "failure_rate": 0.0, "error_rate": 0.3, "learns": {"source": "a bank"}},
    "errs_less": {"kind": "simulated", "failure_rate": 0.0, "error_rate": 0.1, "learns": {"source": "another bank"}},
    "small": {"kind": "openai", "model": "a", "temperature": 0.0},
    "large": {"kind": "openai", "model": "b", "temperature": 1.0},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    write_run(folder, [trial(name, plan, model=model) for name in FORMS for plan in ("none", "paper") for model in MODELS])
    entries = {name: {"base": "state_machine", **form} for name, form in FORMS.items()}
    edit_manifest(folder, models=MODELS, config={**config_in(folder), "architecture": entries})
    return bench.load_run(folder)


def differ(run: Run, first: str, second: str, models: tuple[str, str] = ("right", "right")) -> tuple[str, ...]:
    return factors_between(run, ArmName(first, models[0], "none"), ArmName(second, models[1], "none"))


def test_a_check_that_asks_people_as_well_is_two_things(run: Run) -> None:
    assert differ(run, "none", "rules") == ("approval", "strength")
    assert differ(run, "none", "rules_unasked") == ("strength",)
    assert differ(run, "rules_unasked", "rules") == ("approval",)
    reason = reason_against_verdict(VerdictEvidence(differ(run, "none", "rules"), 60, 60, 20), "strength")
    assert reason == "the arms differ in approval and strength, and the sentence names strength alone"


def test_a_default_that_is_written_out_is_no_factor_and_what_follows_from_another_is_none(run: Run) -> None:
    assert differ(run, "none", "plain") == () and differ(run, "none", "keyed") == ("commit",)
    assert differ(run, "bare", "remedied") == ("remedies",), "the remedies set the boundary's parts"
    assert differ(run, "bare", "patient") == ("max_attempts",)
    assert differ(run, "bare", "children") == ("catches_up", "children")
    assert "do not differ in strength" in reason_against_verdict(VerdictEvidence((), 3, 3, 3), "strength")


def test_a_real_model_is_one_thing_and_a_simulated_one_is_what_is_declared_of_it(run: Run) -> None:
    assert differ(run, "bare", "bare", ("small", "large")) == ("model",)
    assert differ(run, "bare", "bare", ("right", "errs")) == ("error_rate",), "who never errs is never asked again"
    assert differ(run, "bare", "bare", ("errs_less", "errs")) == ("error_rate", "learns")
    arms = (ArmName("bare", "right", "none"), ArmName("bare", "right", "paper"))
    assert factors_between(run, *arms) == ("plan",)


@given(
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(sorted(MODELS)),
)
def test_factors_are_the_same_both_ways_and_an_arm_differs_from_itself_in_none(
    run: Run, first: str, second: str, model: str, other: str
) -> None:
    assert differ(run, first, second, (model, other)) == differ(run, second, first, (other, model))
    assert differ(run, first, first, (model, model)) == ()


def test_pairs_that_could_not_differ_bear_no_verdict() -> None:
    """Where nothing was rejected no signal was given."""
    assert reason_against_verdict(VerdictEvidence(("signal",), 720, 0, 20), "signal") == "none of 720 pairs could have differed"
    assert reason_against_verdict(VerdictEvidence(("signal",), 720, 220, 14), "signal") == ""


def test_harm_of_arms_that_were_not_struck_alike_is_told_for_each_fault() -> None:
    unlike = VerdictEvidence(("error_rate",), 60, 60, 20, fault_rates=(1.08, 0.84))
    assert "1.08 and 0.84 faults a trial, so harm is told for each fault" in reason_against_verdict(unlike, "error_rate")
    assert reason_against_verdict(VerdictEvidence(("error_rate",), 60, 60, 20, fault_rates=(1.08, 1.06)), "error_rate") == ""


def test_agreement_in_doing_nothing_bears_no_verdict() -> None:
    assert "neither side did anything" in reason_against_verdict(
        VerdictEvidence(("strength",), 60, 60, 20, without_idle=False), "strength"
    )
    assert reason_against_verdict(VerdictEvidence(("strength",), 60, 60, 20, without_idle=True), "strength") == ""


def test_copies_of_a_single_unit_bear_no_verdict() -> None:
    """An edit after which every test of a package fails is one edit, whatever the number of its tests."""
    assert (
        reason_against_verdict(VerdictEvidence(("edit",), 6954, 6954, 1), "edit")
        == "the 6954 pairs that could differ are copies of 1"
    )
