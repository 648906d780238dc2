"""The answer format of a run: said by the config or by a model's entry, the same for all architectures, kept with the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from pydantic import ValidationError
from scripted_server import ScriptedServer, completion
from trials import ROOTS, events, matrix_of, run_all

import bench
from bench.common.errors import ConfigError
from bench.read.analysis.merge import merge
from bench.read.analysis.results import Results
from bench.read.render.labels import model_label
from bench.read.report.page import as_markdown, page_of
from bench.record.events import Called
from bench.record.reading import read_manifest
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.recording import recorded_entries
from bench.run.packs import load_pack

WORKSHOP = "workshop"
FENCED = {"kind": "simulated", "answer_format": "fenced"}


def workshop(**models: dict[str, Any]) -> Config:
    return config({}, scenarios=[WORKSHOP], plans=["none"], plan={}, repetitions=1, models=list(models), model=models)


def asked(matrix: Matrix) -> dict[str, set[str]]:
    """Model -> the last message of each call that asks for code."""
    texts: dict[str, set[str]] = {}
    for result in run_all(matrix):
        calls = [call for call in events(result, Called) if "ship" in call.subtasks]
        texts.setdefault(result.record.model, set()).update(result.texts[call.messages[-1].content] for call in calls)
    return texts


def test_all_architectures_of_a_model_ask_in_its_format_and_each_model_in_its_own() -> None:
    matrix = build_matrix(workshop(words={"kind": "simulated"}, blocks=FENCED), ROOTS, "code")
    prompts = asked(matrix)
    assert all("edits[0].replace:\n```python\n" in text for text in prompts["blocks"])
    assert not any("edits[0].replace:" in text for text in prompts["words"])


def test_a_models_own_format_takes_the_place_of_the_experiments() -> None:
    as_json = workshop(words={"kind": "simulated", "answer_format": "json"}, other={"kind": "simulated"})
    changed = as_json.model_copy(update={"answer_format": "fenced"})
    assert [changed.format_of(name) for name in changed.models] == ["json", "fenced"]
    assert Config.model_fields["answer_format"].default == "json"


def test_the_format_is_part_of_a_trials_identity_where_it_changes_nothing_else() -> None:
    ids = [matrix_of("tiny", answer_format=form).specs[0].id for form in ("json", "schema", "fenced")]
    assert len(set(ids)) == 3


def test_what_json_and_schema_ask_is_the_same_and_so_is_fenced_where_there_is_no_code() -> None:
    def texts(pack: str, answer_format: str) -> list[str]:
        results = run_all(matrix_of(pack, answer_format=answer_format, model={"wrapping": False}))
        return [
            result.texts[message.content] for result in results for call in events(result, Called) for message in call.messages
        ]

    assert texts(WORKSHOP, "json") == texts(WORKSHOP, "schema") != texts(WORKSHOP, "fenced")
    assert texts("k8s_oomkill", "json") == texts("k8s_oomkill", "fenced")


def test_what_later_subtasks_read_is_the_same_in_every_format() -> None:
    """The JSON with its code in it: a format is about the answer that is asked for, not about what is read."""

    def read(answer_format: str) -> set[str]:
        results = run_all(matrix_of(WORKSHOP, answer_format=answer_format, architectures=["static"]))
        asked = [result.texts[call.messages[-1].content] for result in results for call in events(result, Called)]
        return {part for text in asked for part in text.split("\n\n# ") if part.startswith("Input: draft")}

    assert len(read("json")) == 1
    assert read("json") == read("fenced")


# The endpoint


def bodies(**entry: Any) -> list[Any]:
    reference = load_pack("tiny", ROOTS).reference

    def answer(body: Any) -> Any:
        name = next((name for name in reference if f"# Task: {name}" in body["messages"][-1]["content"]), "")
        return completion(json.dumps(reference.get(name, {"ok": True})))

    with ScriptedServer(answer) as server:
        experiment = config(
            {"kind": "openai", "base_url": server.base_url, **entry}, architectures=["static"], plans=["none"], plan={}
        )
        for result in run_all(build_matrix(experiment, ROOTS, "code")):
            assert result.record.outcome == "solved"
    return server.bodies


@pytest.mark.parametrize(
    ("entry", "sent"),
    [
        ({}, None),
        ({"answer_format": "fenced"}, None),
        ({"answer_format": "schema"}, "json_schema"),
        ({"answer_format": "schema", "response_format": "json_object"}, "json_object"),
    ],
)
def test_an_endpoint_holds_the_model_to_the_schema_where_the_format_is_schema(entry: dict[str, str], sent: str | None) -> None:
    assert {body.get("response_format", {}).get("type") for body in bodies(**entry)} == {sent}


# What is refused


def refusal(**settings: Any) -> str:
    with pytest.raises((ConfigError, ValidationError)) as refused:
        matrix_of("tiny", **settings)
    return str(refused.value)


def test_how_an_endpoint_is_told_means_nothing_where_nothing_is_to_be_held() -> None:
    with pytest.raises(ValidationError, match='add answer_format = "schema", or leave it out'):
        config({"kind": "openai", "response_format": "json_schema"})
    config({"kind": "openai", "response_format": "json_schema"}, answer_format="schema")


def test_a_routed_model_and_its_targets_are_asked_in_one_format() -> None:
    route = {"kind": "routed", "default": "small", "subtasks": {"total": "small"}, "answer_format": "fenced"}
    with pytest.raises(
        ValidationError, match="'route' is asked for fenced answers and routes to 'small', which is asked for json"
    ):
        config({}, models=["route"], model={"small": {"kind": "simulated"}, "route": route})


@pytest.mark.parametrize(
    ("architecture", "answer_format", "words"),
    [
        ("reflexion", "schema", "architecture 'reflexion' makes its calls itself, and nothing holds them to a schema"),
        ("dspy", "fenced", "architecture 'dspy' asks for JSON in words of its own"),
    ],
)
def test_a_system_that_could_not_be_asked_alike_is_refused(architecture: str, answer_format: str, words: str) -> None:
    if architecture == "dspy":
        pytest.importorskip("dspy")
    assert refusal(architectures=["static", architecture], answer_format=answer_format).startswith(words)


# What is kept and shown


def test_the_manifest_the_report_and_the_labels_say_the_format(tmp_path: Path) -> None:
    run(workshop(words={"kind": "simulated"}, other=FENCED), tmp_path / "run")
    models = read_manifest(tmp_path / "run").models
    assert (models["words"].answer_format, models["other"].answer_format) == ("json", "fenced")
    read = bench.load_run(tmp_path / "run")
    assert model_label(read, "other") == "other, fenced (SIMULATED)"
    assert model_label(read, "words") == "words (SIMULATED)"
    page = as_markdown(page_of(Results(read), [], []))
    assert "- Answer format: json (words); fenced (other)\n" in page


def test_a_recording_is_asked_in_the_format_in_which_it_was_made(tmp_path: Path) -> None:
    recorded = run(workshop(words={"kind": "simulated"}, other=FENCED), tmp_path / "recorded")
    entries = recorded_entries(tmp_path / "recorded")
    assert {name: entry["answer_format"] for name, entry in entries.items()} == {"words": "json", "other": "fenced"}
    again = run(workshop(**entries), tmp_path / "again")
    assert {trial.outcome for trial in again} == {"solved"}
    assert sum(trial.tokens for trial in again) == sum(trial.tokens for trial in recorded)
    models = read_manifest(tmp_path / "again").models
    assert (models["words"].answer_format, models["other"].answer_format) == ("json", "fenced")


def test_runs_of_one_model_in_two_formats_stand_side_by_side_each_with_its_name(tmp_path: Path) -> None:
    experiment = workshop(m={"kind": "simulated"})
    run(experiment, tmp_path / "json")
    run(experiment.model_copy(update={"answer_format": "fenced"}), tmp_path / "fenced")
    merged = merge([bench.load_run(tmp_path / folder) for folder in ("json", "fenced")])
    names = merged.names("model")
    assert [model_label(merged, name) for name in names] == ["m (SIMULATED)", f"{names[1]} (SIMULATED)"]
    assert names == ["m", "m (fenced)"]
    assert any("differ in the config's answer_format" in note for note in merged.notes)


def test_a_json_runs_manifest_is_what_it_was_before_there_were_formats() -> None:
    manifest = manifest_of(matrix_of(), "run")
    assert "answer_format" not in manifest.models["m"].shown
