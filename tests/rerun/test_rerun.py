"""A rerun with nothing mended is the trial: its models, rates of repair, formats and packs are those of the run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config as tiny_config
from experiment_runs import run
from records import recovered, trial
from scripted_server import ScriptedServer, Step, completion
from trials import ROOTS, TINY

from bench.common.errors import ConfigError
from bench.common.paths import PACKS
from bench.record.events import Called, Waited
from bench.record.reading import read_manifest, read_trials
from bench.record.record import latest
from bench.record.world_events import WorldBegan
from bench.rerun.rerun import difference_between, rerunnable_trials, why_not_rerun
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.trial import loop

ROOT = Path(__file__).parents[2]
BANKS = {name: f"{ROOT}/results/{name}-qwen2.5-coder-1.5b-instruct" for name in ("judgment_bank", "repair_bank")}
ERRS: Mapping[str, Any] = {"kind": "simulated", "error_rate": 0.5}
MODELS: Mapping[str, Mapping[str, Any]] = {
    "right": {"kind": "simulated"},
    "learns_as_measured": {**ERRS, "repairs": BANKS["repair_bank"]},
    "learns_as_assumed": {**ERRS, "right_after": {"typed": 0.1, "untyped": 0.0}},
    "of_a_bank": {"kind": "simulated", "bank": BANKS["judgment_bank"]},
    "exchanged": {"kind": "routed", "default": "learns_as_assumed", "after_crash": "right"},
    "exchanged_for_others": {"kind": "routed", "default": "right", "after_crash": "not_run"},
    "not_run": {**ERRS, "error_draws": 3, "right_after": {"typed": 0.0}},
    "asked_for_json": {**ERRS, "answer_format": "json"},
}
DIES = {"point": "process", "effect": "unacknowledged", "tool": "send_outreach", "attempts": [1]}


def test_a_rerun_of_a_trial_of_any_simulated_model_is_the_trial(tmp_path: Path) -> None:
    settings = Config.model_validate(
        {
            "name": "worlds",
            "scenarios": ["contract_renewal/case_12"],
            "architectures": ["checked"],
            "architecture": {"checked": {"base": "state_machine", "remedies": True, "strength": "business_rule"}},
            "models": [name for name in MODELS if name != "not_run"],
            "model": MODELS,
            "plans": ["dies"],
            "plan": {"dies": {"faults": [DIES]}},
            "answer_format": "schema",
            "repair": "reason",
            "repetitions": 2,
            "seed": 20260610,
        }
    )
    assert unlike(settings, tmp_path / "run", PACKS) == {}


def test_a_rerun_of_a_trial_of_a_recorded_model_is_the_trial(tmp_path: Path) -> None:
    assert unlike(tiny_config({"kind": "simulated", "failure_rate": 0.2}), tmp_path / "first", ROOTS) == {}
    assert unlike(tiny_config({"kind": "recorded", "run": str(tmp_path / "first")}), tmp_path / "again", ROOTS) == {}


def test_a_rerun_of_a_trial_of_a_model_that_sends_nothing_twice_is_the_trial(tmp_path: Path) -> None:
    def answer(body: Any) -> Step:
        name = re.findall(r"^# Task: (\w+)", body["messages"][-1]["content"], re.MULTILINE)
        return completion(json.dumps(TINY.reference[name[0]] if name else {}), usage=(1, 1))

    with ScriptedServer(answer) as server:
        entry = {"kind": "openai", "base_url": server.base_url, "cache": True}
        assert unlike(tiny_config(entry, plans=["none", "early"], repetitions=2), tmp_path / "run", ROOTS) == {}


@pytest.mark.endurance
@pytest.mark.parametrize(
    "path",
    sorted([*ROOT.glob("configs/*.toml"), *ROOT.glob("studies/*/*.toml")]),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_a_rerun_of_a_trial_of_each_config_is_the_trial(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    whole = load_config(path, {})
    simulated = [name for name in whole.models if whole.model[name].kind in ("simulated", "routed")]
    models = [name for name in simulated if all(whole.model[to].kind == "simulated" for to in whole.model[name].passes_on_to)]
    if not models:
        pytest.skip("no model of this config answers without a recording")
    last = {"architectures": whole.architectures[-1:], "plans": whole.plans[-1:], "models": models[-1:]}
    small = {**last, "instances": 1, "repetitions": 1, "study": None}
    try:
        given = [{**whole.model_dump(exclude_unset=True), **small, "scenarios": [name]} for name in whole.scenarios]
        settings = next(each for each in map(whole.model_validate, given) if build_matrix(each, PACKS, "code").specs)
        differing = unlike(settings, tmp_path / "run", PACKS)
    except ConfigError as error:
        pytest.skip(str(error))
    assert differing == {}


@pytest.mark.endurance
@pytest.mark.parametrize("path", sorted((ROOT / "results").glob("*.zip")), ids=lambda path: path.stem)
def test_a_rerun_of_a_trial_of_each_committed_run_is_the_trial(path: Path) -> None:
    folder = path.with_suffix("")
    manifest = read_manifest(folder)
    records = [record for record in latest(read_trials(folder)) if not why_not_rerun(record, manifest)]
    if not records:
        pytest.skip("its agents are not started from here")
    try:
        [original] = rerunnable_trials(folder, records[:1], PACKS)
    except ConfigError as error:
        pytest.skip(str(error))
    assert difference_between(original.record, loop.run(original.run_again()).record) == ""


def test_a_wait_for_a_slot_and_contracts_that_an_older_record_lacks_are_no_difference() -> None:
    again = trial(plan="paper", events=[WorldBegan("digest", 1, 0, tools="contracts"), *recovered()])
    began, *rest = again.events
    later = [
        replace(each, caused_by=each.caused_by + 1) if isinstance(each, Called) and each.caused_by else each for each in rest
    ]
    waited = replace(again, events=(began, Waited("slot", 0.1, 0.2), *later))
    assert difference_between(waited, again) == "" and difference_between(again, waited) == ""
    assert isinstance(began, WorldBegan)
    older = replace(waited, events=(replace(began, tools=""), *waited.events[1:]))
    assert difference_between(older, again) == ""
    assert difference_between(again, older) == "event 0 is another", "a rerun has contracts"
    backed_off = replace(again, events=(began, Waited("backoff", 0.1, 0.2), *rest))
    assert difference_between(backed_off, again) == "event 1 is another"
    other = replace(waited, events=(*waited.events[:-1],))
    assert "events in place of" in difference_between(other, again)
    assert difference_between(replace(waited, events=(began, Waited("slot", 0.1, 0.2), *rest)), again), "another call caused it"


def unlike(settings: Config, folder: Path, packs: Any) -> dict[str, str]:
    """Run the experiment, and each of its trials again: what differs, by the trial's model, plan and place."""
    records = run(settings, folder, packs)
    if any("no PostgreSQL server" in record.reason for record in records):
        pytest.skip("its agent needs a PostgreSQL server")
    assert all(record.outcome != "error" for record in records)
    return {
        f"{each.record.model} under {each.record.plan} on {each.record.instance}, {each.record.repetition}": why
        for each in rerunnable_trials(folder, records, packs)
        if (why := difference_between(each.record, loop.run(each.run_again()).record))
    }
