"""A manifest says what a run is: the same for the same, and nothing of where it was made."""

from __future__ import annotations

import getpass
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from trials import ROOTS

from bench.record.manifest import Manifest, manifest_in
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.new_manifest import manifest_of

KEY = "sk-a-key-that-is-nowhere"
ENTRIES: dict[str, dict[str, Any]] = {
    "simulated": {"kind": "simulated"},
    "openai": {"kind": "openai", "base_url": "https://api.example.com/v1", "api_key_env": "MY_SECRET_VARIABLE"},
}


def of(settings: Any) -> Manifest:
    return manifest_of(build_matrix(settings, ROOTS, "code"), "run")


@pytest.mark.parametrize("architecture", ["static", "runtime_structured", "reflexion", f"{__name__}:mine"])
def test_two_runs_of_one_config_have_equal_manifests_but_for_when_they_began(architecture: str) -> None:
    first, second = (of(config(ENTRIES["simulated"], architectures=[architecture])) for _ in range(2))
    assert len(first.architectures[architecture]) == 20
    assert first.model_copy(update={"started": second.started}) == second


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_manifest_is_read_as_what_was_written(entry: str) -> None:
    written = of(config(ENTRIES[entry], architecture={"mute": {"base": "static", "repair": "none"}}, architectures=["mute"]))
    assert manifest_in(written.text.encode()).text == written.text


def test_a_plan_whose_effect_is_not_known_here_is_read_and_a_further_key_stays_beside() -> None:
    value = json.loads(of(config(ENTRIES["simulated"], plans=["none", "early"])).text)
    [fault] = value["config"]["plan"]["early"]["faults"]
    value["config"]["plan"]["early"]["faults"] = [{**fault, "effect": "of_a_later_version", "later": 1}]
    read = manifest_in(json.dumps({**value, "later": {"key": 2}}).encode())
    assert read.config.faults_of("early")[0].effect == "of_a_later_version"
    assert json.loads(read.text)["later"] == {"key": 2}


def test_a_run_of_fewer_instances_says_of_each_that_it_asks_the_same() -> None:
    every, some = (of(config(ENTRIES["simulated"], scenarios=["orchard"], plans=["none"], instances=n)) for n in (None, 2))
    [asked], [fewer] = (manifest.scenarios.values() for manifest in (every, some))
    assert asked.asked != fewer.asked and len(fewer.asked_by_instance) == 2
    assert fewer.asked_by_instance.items() <= asked.asked_by_instance.items()


async def mine(_: object, __: object) -> None:
    pass


@pytest.fixture(params=["simulated", "openai", "recorded", "cached"])
def manifest(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    monkeypatch.setenv("MY_SECRET_VARIABLE", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    earlier = tmp_path / "earlier"
    run(config(ENTRIES["simulated"]), earlier)
    more: dict[str, dict[str, Any]] = {
        "recorded": {"kind": "recorded", "run": earlier},
        "cached": {**ENTRIES["openai"], "cache": True, "cache_from": [earlier]},
    }
    return of(config({**ENTRIES, **more}[request.param], architectures=["static", f"{__name__}:mine"]))


def test_no_path_no_key_and_no_name_of_this_machine_is_in_it(manifest: Manifest, tmp_path: Path) -> None:
    text = manifest.text
    for secret in (KEY, "MY_SECRET_VARIABLE", str(tmp_path), str(Path.home()), str(Path(__file__).parents[2])):
        assert secret not in text
    texts = [value.lower() for value in _texts(json.loads(text))]
    assert platform.node().lower() not in texts and getpass.getuser().lower() not in texts
    assert not [value for value in texts if value.startswith(("/", "~", "file:"))]


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in (str(key), *_texts(item))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [str(value)]


def test_it_holds_the_reference_only_where_that_determines_a_trial() -> None:
    wrong = {"wrong": {"faults": [{"point": "state", "effect": "wrong_value", "attempts": [1], "subtask": "total"}]}}
    live = ENTRIES["openai"]
    held = {
        name: of(settings).scenarios["tiny"].reference is not None
        for name, settings in {
            "simulated": config(ENTRIES["simulated"]),
            "live": config(live),
            "wrong": config(live, plans=["none", "wrong"], plan=wrong),
        }.items()
    }
    assert held == {"simulated": True, "live": False, "wrong": True}
