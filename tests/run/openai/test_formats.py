"""Structured output: the schema of what is asked for reaches the endpoint in the form that it takes, and its effect is seen."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openai
import pytest
from scripted_server import ScriptedServer, Step, completion, status
from trials import ROOTS, run_all, scripted

import bench
from bench.common.errors import EndpointError
from bench.read.analysis.results import Results
from bench.read.report.tables import all_tables
from bench.record.store import RunWriter
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.openai.formats import close_schema, response_format
from bench.run.openai.model import OpenAIModel
from bench.run.openai.settings import OpenAISettings, ResponseFormat
from bench.run.packs import load_pack
from bench.run.trial.schema import answer_schema
from bench.scenario import CODE, Subtask

CONFIG = ROOTS[0].parent / "studies" / "answer_format" / "config.toml"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
CLOSED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
SUBTASKS = [subtask for pack in ("multi_file_debugging", "k8s_oomkill") for subtask in load_pack(pack, ROOTS).task.subtasks]


def without_titles(schema: Any) -> Any:
    """Titles say nothing about what fits, and the SDK's way of naming them is its own; nor does our own word for code."""
    if isinstance(schema, Mapping):
        untitled = {key: value for key, value in schema.items() if not (key in ("title", CODE) and isinstance(value, str))}
        return {key: without_titles(value) for key, value in untitled.items()}
    return [without_titles(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        (None, None),
        ("json_object", {"type": "json_object"}),
        ("json_schema", {"type": "json_schema", "json_schema": {"name": "answer", "schema": CLOSED, "strict": True}}),
        ("json_object_schema", {"type": "json_object", "schema": CLOSED}),
    ],
)
def test_each_endpoint_is_told_the_schema_in_its_own_form(wanted: ResponseFormat | None, sent: object) -> None:
    assert response_format(wanted, SCHEMA) == sent
    assert response_format(wanted, None) == (sent if wanted == "json_object" else None)


@pytest.mark.parametrize("subtask", SUBTASKS, ids=lambda subtask: subtask.name)
def test_a_closed_schema_is_what_openais_own_sdk_makes_strict(subtask: Subtask) -> None:
    theirs = openai.pydantic_function_tool(subtask.output)["function"]["parameters"]
    assert without_titles(close_schema(answer_schema([subtask]))) == without_titles(theirs)


def test_several_subtasks_are_asked_for_as_an_object_with_one_required_property_each() -> None:
    several = [subtask for subtask in SUBTASKS if subtask.name in ("analysis", "fix_generation")]
    schema = answer_schema(several)
    assert list(schema["properties"]) == schema["required"] == ["analysis", "fix_generation"]
    for subtask in several:
        definition = schema["$defs"][schema["properties"][subtask.name]["$ref"].rsplit("/", 1)[-1]]
        assert definition["properties"] == subtask.output.model_json_schema()["properties"]
    assert answer_schema(several) is answer_schema(list(several)), "the same subtasks have one schema, made once"


def test_our_own_word_for_code_is_not_told_to_an_endpoint() -> None:
    schema = answer_schema(load_pack("workshop", ROOTS).task.subtasks)
    assert CODE in json.dumps(schema) and CODE not in json.dumps(close_schema(schema))


@pytest.mark.parametrize("architecture", ["monolithic", "static", "runtime_structured"])
def test_every_request_of_a_trial_carries_the_schema_of_what_it_asks_for(architecture: str) -> None:
    _, model = scripted(architecture)
    tiny = load_pack("tiny", ROOTS).task
    assert model.requests
    for request in model.requests:
        assert request.schema == answer_schema([tiny.subtask(name) for name in request.context.subtasks])


def probe(wanted: ResponseFormat | None, *steps: Step) -> Any:
    """What `prepare` sent to an endpoint that answers so; raises what it raised."""

    async def prepare(url: str) -> None:
        model = OpenAIModel("small", OpenAISettings(base_url=url, response_format=wanted))
        try:
            await model.prepare()
        finally:
            await model.close()

    with ScriptedServer(steps) as server:
        asyncio.run(prepare(server.base_url))
    return server.bodies[0]


def test_the_probe_asks_for_the_format_with_a_schema_of_its_own() -> None:
    body = probe("json_schema")
    assert body["response_format"]["json_schema"]["schema"]["properties"] == {"ok": {"type": "boolean"}}
    assert "JSON" in body["messages"][0]["content"]
    assert "response_format" not in probe(None)


@pytest.mark.parametrize("code", [400, 422])
def test_an_endpoint_that_refuses_the_format_is_named_before_a_run(code: int) -> None:
    with pytest.raises(EndpointError) as refused:
        probe("json_schema", status(code))
    assert 'it may not offer response_format = "json_schema"' in str(refused.value)
    assert "127.0.0.1" in str(refused.value) and "\n" not in str(refused.value)


def test_the_effect_on_natural_failures_stands_in_their_table_by_model(tmp_path: Path) -> None:
    """A server that forgets a field unless it is held to the schema."""
    reference = load_pack("k8s_oomkill", ROOTS).reference

    def answer(body: Any) -> Step:
        asked = body["messages"][-1]["content"]
        name = next(name for name in reference if f"# Task: {name}" in asked)
        output = dict(reference[name])
        if "json_schema" not in body.get("response_format", {}):
            output.popitem()
        return completion(json.dumps(output))

    with ScriptedServer(answer) as server:
        written = tomllib.loads(CONFIG.read_text())
        real = {name: table for name, table in written["model"].items() if table["kind"] == "openai"}
        asked = {name: {**table, "base_url": server.base_url} for name, table in real.items()}
        changes = {"scenarios": ["k8s_oomkill"], "architectures": ["runtime_structured"], "repetitions": 1}
        changes |= {"models": list(asked), "model": asked}
        matrix = build_matrix(Config.model_validate({**written, **changes}), ROOTS, "code")
        writer = RunWriter(tmp_path / "run", manifest_of(matrix, "run"))
        for result in run_all(matrix):
            writer.add(result.record, result.texts)
        writer.close()
    run = bench.load_run(tmp_path / "run")
    [table] = [table for table in all_tables(Results(run)) if table.name == "natural_failures"]
    shares = {row[1]: row[5] for row in table.texts() if (row[2], row[4]) == ("every call", "form: a missing field")}
    assert shares["qwen-json"].startswith("3/3 = 100.0%") and shares["qwen-fenced"].startswith("3/3 = 100.0%")
    assert shares["qwen-schema"].startswith(f"0/{len(reference)} = 0.0%")
    sent = {json.dumps(body.get("response_format", {}).get("type")) for body in server.bodies}
    assert sent == {"null", '"json_schema"'}
