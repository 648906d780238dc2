"""The model's door in each dialect, whole and streamed: what is read of a reply, and how it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

import pytest
from gates import ScriptedGate, exchanged, listening, raw_server

from bench.common.tokens import count_tokens
from bench.probe.points import AnswerAction, CallAction
from bench.probe.run.gateway.replies import api_of, fields_in
from bench.probe.run.gateway.server_sent import events_of
from bench.probe.run.gateway.subject import ModelSource
from bench.record.tool_calls import ToolCall
from bench.run.endpoint.dialect import CHAT
from bench.run.endpoint.entries import DIALECTS as OTHERS
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply, Usage

DIALECTS = {dialect.name: dialect for dialect in (CHAT, *OTHERS)}
WORDS = "one two three four five six seven eight nine ten " * 8
REPLY = Reply(WORDS, usage=Usage(12, 80))
CALL = ToolCall("c1", "pay", '{"to": "ann"}')
CALLING = Reply("", "tool_calls", Usage(12, 9), tool_calls=(CALL,))
KEY = "sk-canary-0123456789"
ASKED = {"chat completions": "messages", "responses": "input", "messages": "messages"}
each_dialect = pytest.mark.parametrize("name", DIALECTS)
whole_and_streamed = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


def answer_in(name: str, reply: Reply, streams: bool) -> bytes:
    """Return an answer as a provider gives it."""
    dialect, asked = DIALECTS[name], Chat((), streams, include_usage=True)
    if not streams:
        body = dialect.body([reply], 1, asked)
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in dialect.stream([reply], 1, asked))
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def asked(gate: ScriptedGate, name: str, answer: bytes, streams: bool, **headers: str) -> tuple[bytes, bytes]:
    """Return what the provider got, and what the agent got until the connection was closed or broken."""
    body = json.dumps({"model": "m", "stream": streams, ASKED[name]: [{"role": "user", "content": f"Pay ann. {KEY}"}]})

    async def closing(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    async def ask() -> tuple[bytes, bytes]:
        async with raw_server(closing, b"}") as server, listening(gate) as listener:
            address = listener.add_model(ModelSource(url=server.url + "/api/v1"))
            assert address == f"{listener.address}/token/model/v1"
            place = listener.address.removeprefix("http://")
            lines = [f"POST {address.removeprefix(listener.address)}{DIALECTS[name].path} HTTP/1.1", f"Host: {place}"]
            lines += [
                *(f"{name}: {value}" for name, value in headers.items()),
                f"Content-Length: {len(body)}",
                "Connection: close",
            ]
            try:
                got = await exchanged(address, "\r\n".join([*lines, "", body]).encode())
            except ConnectionResetError:
                got = b"reset"
            return b"".join(server.got), got

    return asyncio.run(asyncio.wait_for(ask(), 10))


def data_in(got: bytes) -> bytes:
    """Return what an answer carries, without its head and its chunks."""
    head, _, body = got.partition(b"\r\n\r\n")
    return body if b"chunked" not in head else b"".join(_chunks(body))


def _chunks(body: bytes) -> Iterable[bytes]:
    while body:
        size, _, rest = body.partition(b"\r\n")
        yield rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]


def reply_in(name: str, got: bytes, streams: bool) -> dict[str, object]:
    api = api_of(DIALECTS[name].path)
    assert api
    whole = api.join(fields_in(events_of(data_in(got)))) if streams else json.loads(data_in(got))
    value = api.read(whole).value
    assert isinstance(value, dict)
    return dict(value)


@each_dialect
@whole_and_streamed
@pytest.mark.parametrize("reply", [REPLY, CALLING], ids=["text", "call"])
def test_a_reply_passes_as_it_came_and_is_read(name: str, streams: bool, reply: Reply) -> None:
    gate, answer = ScriptedGate(), answer_in(name, reply, streams)
    got, given = asked(gate, name, answer, streams, Authorization=f"Bearer {KEY}")
    assert given == answer
    assert got.startswith(f"POST /api/v1{DIALECTS[name].path} HTTP/1.1\r\n".encode()) and f"Bearer {KEY}\r\n".encode() in got
    [call] = gate.calls
    assert isinstance(call.answer, dict)
    calls = [{"name": "pay", "arguments": {"to": "ann"}}] if reply is CALLING else []
    assert (call.answer["text"], call.answer["calls"]) == (reply.text, calls)
    assert gate.course == [("arrived", 1), ("answered", 1), ("given", 1)]


@each_dialect
@whole_and_streamed
def test_tokens_are_counted_beside_the_providers_count(name: str, streams: bool) -> None:
    gate = ScriptedGate()
    asked(gate, name, answer_in(name, REPLY, streams), streams)
    kept = gate.calls[0].door_state
    assert kept["tokens_in"] == count_tokens(f"Pay ann. {KEY}") and kept["tokens_out"] == count_tokens(WORDS)


@each_dialect
def test_the_key_is_in_nothing_that_is_kept(name: str) -> None:
    gate, refusal = ScriptedGate(), json.dumps({"error": {"message": f"bad key {KEY}"}})
    answer = f"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: {len(refusal)}\r\n\r\n{refusal}"
    _, given = asked(gate, name, answer.encode(), False, **{"x-api-key": KEY})
    assert given == answer.encode()
    [call] = gate.calls
    assert call.failed and KEY not in repr(call) and KEY not in repr(gate.notes)


@pytest.mark.parametrize(
    ("dialect", "variable", "header"),
    [("chat", "OPENAI_API_KEY", "Authorization: Bearer "), ("anthropic", "ANTHROPIC_API_KEY", "X-Api-Key: ")],
)
def test_a_request_without_a_key_gets_the_owners(
    dialect: str, variable: str, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, KEY)
    assert f"{header}{KEY}\r\n".encode() in asyncio.run(got_by(ScriptedGate(), dialect, trusted=True))


async def got_by(gate: ScriptedGate, dialect: str = "chat", *lines: str, trusted: bool) -> bytes:
    """Return what the provider got for a request with these lines in its head."""
    async with raw_server(answer_in("messages", REPLY, False), b"}") as server, listening(gate) as listener:
        source = ModelSource(suffix="", url=server.url, dialect=dialect, trusted=trusted)  # type: ignore[arg-type]
        address = listener.add_model(source)
        path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
        head = "".join(f"{line}\r\n" for line in (f"Host: {place}", "Content-Length: 2", "Connection: close", *lines))
        await asyncio.wait_for(exchanged(address, f"POST {path}/v1/messages HTTP/1.1\r\n{head}\r\n{{}}".encode(), 10), 5)
        return server.got[0]


@pytest.mark.parametrize(
    "sent", ["", f"Authorization: Bearer {KEY}", f"X-Api-Key: {KEY}", f"Api-Key: {KEY}\r\nX-Api-Key: other"]
)
@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_no_key_of_the_owner_goes_to_an_address_that_only_the_file_names(
    dialect: str, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OTHER"):
        monkeypatch.setenv(variable, KEY)
    gate = ScriptedGate()
    assert KEY.encode() not in asyncio.run(got_by(gate, dialect, *filter(None, [sent]), trusted=False))
    [note] = [what for what in map(str, gate.notes) if "no key of your environment goes to http://127.0.0.1" in what]
    assert "_BASE_URL to it in your shell" in note and KEY not in note


def test_a_key_of_the_agents_own_goes_where_it_sends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    gate = ScriptedGate()
    got = asyncio.run(got_by(gate, "chat", "Authorization: Bearer sk-of-the-agent", trusted=False))
    assert b"Authorization: Bearer sk-of-the-agent\r\n" in got and KEY.encode() not in got and not gate.notes


@each_dialect
@pytest.mark.parametrize(("before", "status"), [("error", b"503"), ("rate_limit", b"429"), ("malformed", b"200")])
@whole_and_streamed
def test_a_request_that_fails_reaches_no_provider(name: str, before: CallAction, status: bytes, streams: bool) -> None:
    got, given = asked(ScriptedGate(before={1: before}), name, b"", streams)
    head, _, body = given.partition(b"\r\n\r\n")
    assert not got and head.split()[1] == status
    assert (b"\r\nRetry-After: 1\r\n" in head) == (before == "rate_limit")
    if before == "malformed":
        assert (b"text/event-stream" in head) == streams
        with pytest.raises(ValueError, match="Unterminated"):
            json.loads(body.removeprefix(b"data: ").strip())
    else:
        assert "message" in json.loads(body)["error"]


FINISHES = {"chat completions": "length", "responses": "incomplete", "messages": "max_tokens"}


@each_dialect
@whole_and_streamed
def test_a_reply_can_be_cut_off_at_its_length(name: str, streams: bool) -> None:
    _, given = asked(ScriptedGate(after={1: "cut_off"}), name, answer_in(name, REPLY, streams), streams)
    reply = reply_in(name, given, streams)
    assert reply["finish"] == FINISHES[name] and isinstance(text := reply["text"], str)
    assert WORDS.startswith(text) and abs(len(text) - len(WORDS) / 2) <= 40


@each_dialect
@pytest.mark.parametrize("after", ["break", "half"])
def test_a_stream_breaks_before_its_first_event_or_after_half_of_them(name: str, after: AnswerAction) -> None:
    answer = answer_in(name, REPLY, True)
    _, given = asked(ScriptedGate(after={1: after}), name, answer, True)
    assert given.startswith(b"HTTP/1.1 200 OK\r\n") and not given.endswith(b"0\r\n\r\n")
    events = events_of(data_in(answer))
    assert events_of(data_in(given)) == (events[: len(events) // 2] if after == "half" else [])


@each_dialect
@whole_and_streamed
def test_a_reply_can_be_lost(name: str, streams: bool) -> None:
    gate = ScriptedGate(after={1: "break"}, form="break")
    assert asked(gate, name, answer_in(name, REPLY, streams), streams)[1] == b"reset"
    assert gate.course == [("arrived", 1), ("answered", 1)]


def test_the_list_of_models_is_no_call() -> None:
    gate, answer = ScriptedGate(), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

    async def ask() -> bytes:
        async with raw_server(answer) as server, listening(gate) as listener:
            address = listener.add_model(ModelSource(url=server.url + "/v1"))
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            return await exchanged(address, f"GET {path}/models HTTP/1.1\r\nHost: {place}\r\n\r\n".encode(), len(answer))

    assert asyncio.run(asyncio.wait_for(ask(), 10)) == answer
    assert not gate.calls and not gate.course
