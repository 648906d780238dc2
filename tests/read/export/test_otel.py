"""A run as OpenTelemetry's spans: each call once, with its tokens and faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from records import called, trial, write_with_texts

from bench.read.analysis.frames import Run, load_run
from bench.read.report.export_part import EXPORTS, export

pytest.importorskip("opentelemetry.exporter.otlp.proto.common")
Span = dict[str, Any]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(config({"kind": "simulated", "failure_rate": 0.2}, plans=["none", "early", "cut"], repetitions=2), folder)
    return load_run(folder)


@pytest.fixture(scope="module")
def spans(recorded: Run, tmp_path_factory: pytest.TempPathFactory) -> list[Span]:
    [path] = export(recorded, EXPORTS["otel"], tmp_path_factory.mktemp("out"))
    return [span for line in path.read_text(encoding="utf-8").splitlines() for span in spans_in(json.loads(line))]


def spans_in(request: Any) -> Iterator[Span]:
    return (span for resource in request["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"])


def attributes(span: Span) -> dict[str, Any]:
    return {attribute["key"]: next(iter(attribute["value"].values()), None) for attribute in span["attributes"]}


def chats(spans: list[Span]) -> list[Span]:
    return [span for span in spans if span["name"].startswith("chat ")]


def test_each_trial_is_a_trace_and_each_call_a_span_in_it_with_its_tokens(recorded: Run, spans: list[Span]) -> None:
    roots = {span["spanId"]: span for span in spans if "parentSpanId" not in span}
    assert len(roots) == len({span["traceId"] for span in spans}) == len(recorded.trials)
    assert len({(span["traceId"], span["spanId"]) for span in spans}) == len(spans)
    assert {(len(span["traceId"]), len(span["spanId"])) for span in spans} == {(32, 16)}
    calls = chats(spans)
    assert len(calls) == len(recorded.calls)
    for call in calls:
        root = roots[call["parentSpanId"]]
        assert root["traceId"] == call["traceId"]
        assert int(root["startTimeUnixNano"]) <= int(call["startTimeUnixNano"]) <= int(call["endTimeUnixNano"])
        assert int(call["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
        assert attributes(call)["recovery_bench.request"].startswith(attributes(root)["recovery_bench.trial"])
    read = sum(int(attributes(call)["recovery_bench.tokens_in"]) for call in calls)
    assert read == recorded.calls["tokens_in"].sum()
    assert {attributes(root)["recovery_bench.simulated"] for root in roots.values()} == {True}


def test_what_was_sent_and_replied_stands_in_the_words_of_the_conventions(spans: list[Span]) -> None:
    for call in map(attributes, chats(spans)):
        sent = json.loads(call["gen_ai.input.messages"])
        assert sent[0]["role"] in ("system", "user") and sent[0]["parts"][0]["type"] == "text"
        assert "error.type" in call or json.loads(call["gen_ai.output.messages"])[0]["finish_reason"] == "stop"


def test_a_fault_is_an_event_of_the_call_that_carried_it_and_a_failed_call_an_error(recorded: Run, spans: list[Span]) -> None:
    faults = [
        (attributes(span).get("recovery_bench.plan"), span["name"].split()[0], attributes(event))
        for span in spans
        for event in span.get("events", ())
        if event["name"] == "recovery_bench.fault"
    ]
    delivered = [where for *where, event in faults if event["recovery_bench.fault.stage"] == "delivered"]
    assert len(delivered) == recorded.faults["delivered"].sum() > 0
    assert {kind for _, kind in delivered} == {"chat"}
    failed = [span for span in chats(spans) if span.get("status", {}).get("code") == 2]
    assert len(failed) == (recorded.calls["failure"] != "").sum() > 0


def test_a_tool_call_names_its_step_its_plan_and_its_request(tmp_path: Path) -> None:
    settings = config(
        {"kind": "simulated", "wrapping": False},
        **{"scenarios": ["trips"], "architectures": ["plan_and_replan"], "plans": ["none"], "repetitions": 1},
    )
    run(settings, tmp_path / "run", [Path(__file__).parents[2] / "support" / "worlds"])
    [path] = export(load_run(tmp_path / "run"), EXPORTS["otel"], tmp_path)
    made = [span for line in path.read_text(encoding="utf-8").splitlines() for span in spans_in(json.loads(line))]
    requests = {attributes(span)["recovery_bench.request"] for span in chats(made)}
    tools = [attributes(span) for span in made if span["name"].startswith("execute_tool ")]
    effects = [tool for tool in tools if tool["recovery_bench.access"] != "read"]
    assert effects and all(tool["recovery_bench.step"] for tool in effects)
    assert {tool["recovery_bench.request"] for tool in effects} <= requests
    assert min(int(tool["recovery_bench.plan_version"]) for tool in tools) == 1


def test_a_trial_that_ended_in_an_error_is_an_error_also_without_a_reason(tmp_path: Path) -> None:
    records = [
        trial(outcome="error", reason=reason, events=[called(1)], repetition=number, id=f"t{number}")
        for number, reason in enumerate(("lost: all", ""), start=1)
    ]
    run = write_with_texts(tmp_path / "run", records, {"d1": "ask", "d2": "answer"})
    [path] = export(run, EXPORTS["otel"], tmp_path / "out")
    roots = [next(spans_in(json.loads(line))) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(root["status"]["code"], attributes(root)["error.type"]) for root in roots] == [(2, "lost"), (2, "error")]
