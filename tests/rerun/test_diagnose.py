"""A failed trial is laid to the parts of its agent that make it fail, and to no others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import run
from trials import ROOTS
from typer.testing import CliRunner

from bench.cli.commands.diagnose import sample_evenly
from bench.cli.main import app
from bench.common.errors import ConfigError
from bench.common.paths import PACKS
from bench.record.form import Form
from bench.rerun.diagnose import Diagnosis, FailedEntry, counts_by_verdict, diagnose, is_failed
from bench.rerun.diagnosis_text import as_json, diagnosis_lines, trial_lines
from bench.rerun.mended_parts import PARTS
from bench.rerun.mends import with_remedies
from bench.rerun.rerun import rerunnable_trials
from bench.run.experiment.config import Config
from bench.run.trial import loop

LATE_ANSWER = [
    {"point": "tool", "effect": "error", "tool": "send_outreach", "attempts": [1]},
    {"point": "tool", "effect": "lost_ack", "tool": "send_outreach", "attempts": [2]},
]
"""Together they double a letter that is sent without a key."""


def config(named: str, plans: Mapping[str, Sequence[Mapping[str, Any]]], **settings: Any) -> Config:
    values: dict[str, Any] = {
        "name": "failed",
        "scenarios": ["contract_renewal/case_12"],
        "architectures": [named],
        "models": ["m"],
        "plans": list(plans),
        "repetitions": 1,
        "seed": 20260601,
        "model": {"m": {"kind": "simulated"}},
        "plan": {name: {"faults": faults} for name, faults in plans.items()},
    }
    return Config.model_validate({**values, **settings})


def diagnosed(folder: Path, settings: Config, packs: Sequence[Path] = PACKS) -> dict[str, Diagnosis]:
    """By plan, each failed trial of this experiment."""
    records = [record for record in run(settings, folder, packs) if is_failed(record)]
    return {each.record.plan: loop.run(diagnose(each)) for each in rerunnable_trials(folder, records, packs)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("diagnose") / "failed"


@pytest.fixture(scope="module")
def bare(folder: Path) -> dict[str, Diagnosis]:
    return diagnosed(folder, config("bare_agent", {"none": [], "doubled": LATE_ANSWER}))


def minimal(diagnosis: Diagnosis) -> dict[FailedEntry, list[set[str]]]:
    return {entry.entry: [set(parts) for parts in entry.minimal] for entry in diagnosis.entries}


def test_each_thing_that_went_wrong_has_a_part_of_its_own_to_blame(bare: dict[str, Diagnosis]) -> None:
    assert minimal(bare["doubled"]) == {
        FailedEntry("doubled", "outreach to C-2124"): [{"commit"}],
        FailedEntry("unauthorised", "closing of C-2124"): [{"pattern"}],
    }


def test_parts_are_mended_from_where_the_trial_left_its_control(bare: dict[str, Diagnosis]) -> None:
    doubled, unauthorised = bare["doubled"].entries
    assert not doubled.in_control
    assert bare["doubled"].record.events[doubled.start.events].kind == "fault"  # type: ignore[union-attr]
    assert unauthorised.in_control


def test_a_trial_without_faults_is_diagnosed_as_well(bare: dict[str, Diagnosis]) -> None:
    assert minimal(bare["none"]) == {FailedEntry("unauthorised", "closing of C-2124"): [{"pattern"}]}


def test_either_of_two_parts_can_be_to_blame(tmp_path: Path) -> None:
    weak = {"weak": {"base": "state_machine", "remedies": True, "strength": "schema"}}
    settings = config("weak", {"none": []}, architecture=weak, model={"m": {"kind": "simulated", "error_rate": 0.6}})
    both = [
        entry
        for diagnosis in diagnosed(tmp_path / "run", settings.model_copy(update={"repetitions": 6})).values()
        for entry in diagnosis.entries
        if {frozenset({"proposer"}), frozenset({"verifier"})} == set(entry.minimal)
    ]
    assert both
    assert both[0].contributing == {"proposer", "verifier"}
    assert not both[0].necessary


def test_with_every_part_mended_from_the_start_a_trial_is_not_failed_by_its_agent(bare: dict[str, Diagnosis]) -> None:
    assert all(each.is_explained and each.asked == PARTS for each in bare.values())


def test_a_simulated_reply_proves_nothing(bare: dict[str, Diagnosis]) -> None:
    assert bare["none"].sources["simulated"] > 0
    assert not bare["none"].is_proved
    assert "0 of 2 explanations are proved" in "\n".join(diagnosis_lines("failed", 2, list(bare.values())))


def test_a_rerun_that_does_not_equal_its_original_is_not_diagnosable(folder: Path, bare: dict[str, Diagnosis]) -> None:
    [original] = rerunnable_trials(folder, [bare["doubled"].record], PACKS)
    other = replace(original, record=replace(original.record, events=original.record.events[:-1]))
    diagnosis = loop.run(diagnose(other))
    assert "a rerun with nothing mended is another trial" in diagnosis.undiagnosable
    assert not diagnosis.entries
    assert diagnosis_lines("failed", 1, [diagnosis])[0] == "None of 1 failed trials of failed can be diagnosed."


def test_a_trial_that_did_not_fail_is_refused(folder: Path, bare: dict[str, Diagnosis]) -> None:
    [original] = rerunnable_trials(folder, [bare["doubled"].record], PACKS)
    ended = [event for event in original.record.events if event.kind != "world_ended"]  # type: ignore[union-attr]
    whole = replace(original, record=replace(original.record, outcome="solved", events=tuple(ended)))
    with pytest.raises(ConfigError, match="it ended solved; name a trial that failed"):
        loop.run(diagnose(whole))


def test_outside_of_a_world_the_proposer_alone_can_be_mended(tmp_path: Path) -> None:
    model = {"m": {"kind": "simulated", "failure_rate": 1.0}}
    settings = config("runtime_structured", {"none": []}, scenarios=["tiny"], model=model)
    [diagnosis] = diagnosed(tmp_path / "run", settings, ROOTS).values()
    assert minimal(diagnosis) == {FailedEntry("ended", "gave_up"): [{"proposer"}]}
    assert set(diagnosis.not_asked) == set(PARTS) - {"proposer"}
    assert any(line.startswith("The commit could not be mended: the task has no world") for line in trial_lines(diagnosis))


def test_outside_of_a_world_the_screen_says_which_parts_were_not_asked_and_never_that_anything_is_proved(
    tmp_path: Path,
) -> None:
    model = {"m": {"kind": "simulated", "failure_rate": 1.0}}
    settings = config("runtime_structured", {"none": []}, scenarios=["tiny"], model=model)
    [diagnosis] = diagnosed(tmp_path / "run", settings, ROOTS).values()
    recorded = replace(diagnosis, sources=Counter({"recorded": 1}))
    lines = diagnosis_lines("failed", 1, [recorded])
    assert "  not asked in 1 of 1 trials: verifier, commit, signal, pattern" in lines
    assert lines[0].endswith("the proposer is to blame in 1; 1 of 1 are explained.")
    assert not recorded.is_proved
    assert "proved" not in "\n".join((*lines, *trial_lines(recorded)))


def test_what_nothing_explains_clears_no_part(bare: dict[str, Diagnosis]) -> None:
    whole = bare["doubled"]
    doubled, unauthorised = whole.entries
    nothing = replace(whole, entries=(replace(doubled, minimal=()),))
    assert not [line for line in diagnosis_lines("failed", 1, [nothing]) if "not to blame" in line]
    half = replace(whole, entries=(replace(doubled, minimal=()), unauthorised))
    assert "  not to blame for the 1 entries that are explained: proposer, verifier, commit, signal" in diagnosis_lines(
        "failed", 1, [half]
    )


def test_harm_of_a_fault_that_the_trial_never_met_blames_no_part(tmp_path: Path) -> None:
    """The proposer fails before the letter; mended, the trial goes on to a letter that is doubled."""
    settings = config(
        "bare_agent",
        {"doubled": LATE_ANSWER},
        model={"m": {"kind": "simulated", "failure_rate": 1.0}},
        scenarios=["contract_renewal/case_03"],
    )
    [diagnosis] = diagnosed(tmp_path / "run", settings).values()
    first = diagnosis.entries[0]
    assert first.minimal == (frozenset({"proposer"}),)
    assert first.later
    assert "to a fault that it had not met" in "\n".join(trial_lines(diagnosis))


def test_the_first_screen_has_twelve_lines_at_most_and_says_what_to_do(bare: dict[str, Diagnosis]) -> None:
    lines = diagnosis_lines("failed", 2, list(bare.values()))
    assert lines[0] == "2 failed trials of failed: the pattern is to blame in 2, and alone in 1 of them; 2 of 2 are explained."
    assert "  not to blame: proposer, verifier, signal" in lines
    assert any(line.startswith("What to do about the pattern: ") for line in lines)
    assert len(lines) <= 12


def test_the_json_holds_every_set(bare: dict[str, Diagnosis]) -> None:
    value = json.loads(as_json("failed", 2, list(bare.values())))
    [doubled] = [entry for trial in value["trials"] for entry in trial["entries"] if entry["kind"] == "doubled"]
    assert (doubled["minimal"], doubled["necessary"]) == ([["commit"]], ["commit"])
    assert value["counts"] == counts_by_verdict(list(bare.values()))


def test_remedies_leave_the_boundary_as_it_is() -> None:
    assert with_remedies(Form()) == Form(True, "schema", "plain", "typed")
    assert with_remedies(Form(True, commit="plain")) == Form(True, "business_rule", "plain", "typed")


def test_of_many_trials_some_are_picked_evenly(bare: dict[str, Diagnosis]) -> None:
    records = [replace(bare["none"].record, repetition=number) for number in range(10)]
    assert [record.repetition for record in sample_evenly(records, 3)] == [0, 3, 6]


@pytest.mark.parametrize(("more", "code"), [([], 0), (["--trial", "worst"], 0)])
def test_the_command_ends_with_0_where_all_is_explained(
    folder: Path, bare: dict[str, Diagnosis], more: list[str], code: int
) -> None:
    assert bare
    assert CliRunner().invoke(app, ["explain", "diagnose", str(folder), *more]).exit_code == code
