"""A run as OpenTelemetry's spans: each call once, with its tokens and faults, in a file and at an endpoint."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from commands import free_port
from experiment_runs import config, run
from records import called, trial, write_with_texts

from bench.common.errors import ConfigError, ResultsError
from bench.read.analysis.frames import Run, load_run
from bench.read.report.export_part import EXPORTS, export, send

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
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


class Collector(BaseHTTPRequestHandler):
    """Takes traces as a collector does."""

    taken: list[bytes]
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
        self.taken.append(body)
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def collector(answers: int = 200) -> Iterator[tuple[str, list[bytes]]]:
    taken: list[bytes] = []
    handler = type("Own", (Collector,), {"taken": taken, "status": answers})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()


def test_an_endpoint_is_sent_the_same_spans(recorded: Run, spans: list[Span]) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415

    with collector() as (url, taken):
        assert send(recorded, EXPORTS["otel"], url) == len(spans)
    requests = map(ExportTraceServiceRequest.FromString, taken)
    ids = [
        span.span_id.hex()
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert sorted(ids) == sorted(span["spanId"] for span in spans)


def test_an_endpoint_that_takes_nothing_is_one_line(recorded: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1")
    with collector(answers=400) as (url, _), pytest.raises(ResultsError, match=r"accepted 0 spans and refused the next"):
        send(recorded, EXPORTS["otel"], url)
    with pytest.raises(
        ResultsError, match=r"accepted 0 spans and refused the next: no answer \(ConnectionError\); is a collector there\?$"
    ):
        send(recorded, EXPORTS["otel"], f"http://127.0.0.1:{free_port()}")
    with pytest.raises(ResultsError, match=r"^--endpoint localhost:4318: is not an HTTP address"):
        send(recorded, EXPORTS["otel"], "localhost:4318")
    with pytest.raises(ConfigError, match=r"^--endpoint: the form 'csv' is files alone; leave it out, or give --form otel$"):
        send(recorded, EXPORTS["csv"], "http://127.0.0.1:9")


def test_a_trial_that_ended_in_an_error_is_an_error_also_without_a_reason(tmp_path: Path) -> None:
    records = [
        trial(outcome="error", reason=reason, events=[called(1)], repetition=number, id=f"t{number}")
        for number, reason in enumerate(("lost: all", ""), start=1)
    ]
    run = write_with_texts(tmp_path / "run", records, {"d1": "ask", "d2": "answer"})
    [path] = export(run, EXPORTS["otel"], tmp_path / "out")
    roots = [next(spans_in(json.loads(line))) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(root["status"]["code"], attributes(root)["error.type"]) for root in roots] == [(2, "lost"), (2, "error")]


def answered(content: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    """What a server does with a connection: it sends these bytes, with a pause after each."""

    def send_to(connection: socket.socket) -> None:
        for part in [content] if not pause else [bytes([byte]) for byte in content]:
            connection.sendall(part)
            time.sleep(pause)

    return send_to


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3221225472\r\n\r\n")
    while True:
        connection.sendall(b"x" * 2**20)


@contextmanager
def server(act: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads each request whole, and then acts."""

    class Acting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with suppress(OSError):
                act(self.connection)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Acting) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://somebody:secret@127.0.0.1:{running.server_port}/?key=secret"
        running.shutdown()


def partly(count: int, content_type: str) -> bytes:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse  # noqa: PLC0415

    message = ExportTraceServiceResponse()
    message.partial_success.rejected_spans, message.partial_success.error_message = count, "too old"
    body: bytes = message.SerializeToString()
    if "json" in content_type:
        body = json.dumps({"partialSuccess": {"rejectedSpans": str(count), "errorMessage": "too old"}, "more": 1}).encode()
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


SLOW = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + b"a" * 99
LOGIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: https://example.org/login\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (answered(MOVED), r"refused the next: it answered 302 Found, and no redirect is followed; is a collector there\?"),
        (answered(LOGIN), "refused the next: it answered 200 OK, and what no collector answers"),
        (endless, "refused the next: it answered 200 OK, and what no collector answers"),
        (answered(b"HTTP/1.1 200 OK\r\n" + b"a" * 100, 0.1), r"refused the next: no answer \(Timeout\)"),
        (answered(SLOW, 0.1), r"refused the next: no answer \(Timeout\)"),
        (answered(b"no HTTP\r\n\r\n"), r"refused the next: no answer \(ConnectionError\)"),
        (answered(b""), r"refused the next: no answer \(ConnectionError\)"),
        (answered(partly(3, "application/x-protobuf")), "accepted [0-9]+ spans and rejected 3: too old$"),
        (answered(partly(3, "application/json")), "accepted [0-9]+ spans and rejected 3: too old$"),
    ],
)  # fmt: skip
def test_what_an_endpoint_does_not_take_is_told_in_time_and_without_a_secret(
    recorded: Run, monkeypatch: pytest.MonkeyPatch, act: Callable[[socket.socket], None], problem: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1" if "Timeout" in problem else "60")
    began = time.monotonic()
    with server(act) as url, pytest.raises(ResultsError, match=problem) as error:
        send(recorded, EXPORTS["otel"], url)
    assert time.monotonic() - began < 50
    assert "secret" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://u:secret@[::1", "http://u:secret@host:port", "u:secret@host", "http://", "http://u:secret@", "ftp://u:secret@a"],
)  # fmt: skip
def test_what_is_no_address_is_one_line_without_the_password(recorded: Run, url: str) -> None:
    with pytest.raises(ResultsError, match="is not an HTTP address") as error:
        send(recorded, EXPORTS["otel"], url)
    assert "secret" not in str(error.value)
