"""An MCP client and server of others speak over Streamable HTTP through the gateway, and faults strike their calls."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import pytest
import uvicorn
from gates import ScriptedGate, exchanged, listening, raw_server
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, TextContent, ToolAnnotations
from pydantic import BaseModel

from bench.probe.points import AnswerAction
from bench.probe.run.gateway.subject import McpServer

MODES = {
    "session": ("legacy", False, False),
    "json": ("legacy", True, False),
    "stateless": ("legacy", False, True),
    "2026": ("2026-07-28", False, False),
}


class Amount(BaseModel):
    amount: int


def ask_amount() -> Elicit[Amount]:
    return Elicit("How much?", Amount)


@asynccontextmanager
async def bank(json_response: bool, stateless: bool) -> AsyncIterator[tuple[str, list[str]]]:
    """Open with the address of an MCP server, and with what its tools did."""
    done, server = list[str](), MCPServer("bank")

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True))
    def balance() -> str:
        return f"balance {len(done)}"

    @server.tool()
    async def pay(to: str, context: Context) -> str:
        await context.report_progress(1, 2)
        done.append(to)
        return f"paid {to}"

    @server.tool()
    def pay_some(amount: Annotated[Amount, Resolve(ask_amount)]) -> str:
        done.append(str(amount.amount))
        return f"paid {amount.amount}"

    app = server.streamable_http_app(json_response=json_response, stateless_http=stateless)
    with socket.create_server(("127.0.0.1", 0)) as listening_at:
        serving = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
        task = asyncio.ensure_future(serving.serve([listening_at]))
        while not serving.started:  # noqa: ASYNC110  uvicorn has no event for it
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening_at.getsockname()[1]}/mcp", done
        finally:
            serving.should_exit = serving.force_exit = True
            await task


async def answer_amount(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    del context, params
    return ElicitResult(action="accept", content={"amount": 7})


async def _called(
    gate: ScriptedGate, mode: str, *calls: tuple[str, dict[str, str]], times: float = 10
) -> tuple[list[str], list[str]]:
    protocol, json_response, stateless = MODES[mode]
    results = list[str]()
    async with bank(json_response, stateless) as (url, done), listening(gate) as listener:
        address = listener.add_mcp(McpServer("bank", url=url))
        client = Client(address, mode=protocol, elicitation_callback=answer_amount, read_timeout_seconds=times)
        try:
            await call_each(client, calls, results)
        except ExceptionGroup:  # some clients end where a connection breaks
            results.append("the client failed")
        return results, done


async def call_each(client: Client, calls: tuple[tuple[str, dict[str, str]], ...], results: list[str]) -> None:
    async with client:
        await client.list_tools()
        for name, arguments in calls:
            try:
                result = await client.call_tool(name, arguments)
            except MCPError as error:
                results.append(f"raised {error.error.code}")
                continue
            [part] = result.content
            assert isinstance(part, TextContent)
            results.append(("error: " if result.is_error else "") + part.text)


def called(gate: ScriptedGate, mode: str, *calls: tuple[str, dict[str, str]], times: float = 10) -> tuple[list[str], list[str]]:
    """Return what the client got, and what the server did."""
    return asyncio.run(asyncio.wait_for(_called(gate, mode, *calls, times=times), 20))


PAY = ("pay", {"to": "ann"})
READ = ("balance", dict[str, str]())
each_mode = pytest.mark.parametrize("mode", MODES)


@each_mode
def test_a_call_goes_through_and_is_journaled(mode: str) -> None:
    gate = ScriptedGate()
    assert called(gate, mode, READ, PAY) == (["balance 0", "paid ann"], ["ann"])
    assert [(call.tool, call.reads, call.arguments, call.failed) for call in gate.calls] == [
        ("balance", True, {}, False),
        ("pay", None, {"to": "ann"}, False),
    ]
    assert gate.course == [(what, call) for call in (1, 2) for what in ("arrived", "answered", "given")]
    assert not gate.notes


@each_mode
def test_an_error_reaches_no_server(mode: str) -> None:
    results, done = called(ScriptedGate(before={1: "error"}), mode, PAY)
    assert results == ["error: The service is not available."] and not done


@each_mode
def test_an_error_can_be_one_of_json_rpc(mode: str) -> None:
    results, done = called(ScriptedGate(before={1: "error"}, form="json_rpc"), mode, PAY)
    assert results == ["raised -32603"] and not done


@each_mode
def test_a_call_delivered_twice_is_done_twice_and_answered_once(mode: str) -> None:
    gate = ScriptedGate(before={1: "twice"})
    assert called(gate, mode, PAY, READ) == (["paid ann", "balance 2"], ["ann", "ann"])
    assert not gate.notes


@each_mode
def test_a_call_in_flight_is_done_after_its_client_has_looked(mode: str) -> None:
    gate = ScriptedGate(before={1: "hold"})
    results, done = called(gate, mode, PAY, READ, times=0.5)
    assert results == ["raised -32001", "balance 0"] and done == ["ann"]
    assert ("delivered", 1) in gate.course and b"paid ann" in gate.answers[1]
    assert (gate.calls[0].failed, "paid ann" in json.dumps(gate.calls[0].answer)) == (False, True)


def test_a_call_in_flight_is_done_and_answered_where_its_client_waits_longer() -> None:
    gate = ScriptedGate(before={1: "hold"}, patience=0.1)
    assert called(gate, "session", PAY, READ) == (["paid ann", "balance 1"], ["ann"])
    assert gate.course[:4] == [("arrived", 1), ("waits_longer", 1), ("passes", 1), ("answered", 1)]


@each_mode
def test_a_call_can_be_delivered_again_later(mode: str) -> None:
    gate = ScriptedGate(before={1: "again"})
    assert called(gate, mode, PAY, READ) == (["paid ann", "balance 1"], ["ann", "ann"])
    assert ("delivered", 1) in gate.course


@each_mode
def test_an_answer_that_is_lost_was_done(mode: str) -> None:
    gate = ScriptedGate(after={1: "break"})
    results, done = called(gate, mode, PAY)
    assert done == ["ann"] and results in (["raised -32000"], ["the client failed"])
    assert gate.course == [("arrived", 1), ("answered", 1)]


@each_mode
def test_silence_lasts_until_the_client_cancels(mode: str) -> None:
    gate = ScriptedGate(after={1: "silence"}, patience=5)
    results, done = called(gate, mode, PAY, READ, times=0.5)
    assert done == ["ann"] and results == ["raised -32001", "balance 1"]
    assert gate.course[2] in (("cancelled", 1), ("disconnected", 1))


@each_mode
@pytest.mark.parametrize(("after", "text"), [("garbled", "bala\ufffd\x1a\ufffd"), ("late", "balance 0")])
def test_an_answer_is_changed_or_comes_late(mode: str, after: AnswerAction, text: str) -> None:
    gate = ScriptedGate(after={1: after}, patience=0.1)
    assert called(gate, mode, READ, READ)[0] == [text, "balance 0"]
    assert (("waits_longer", 1) in gate.course) == (after == "late")


@pytest.mark.parametrize("mode", ["session", "2026"])
def test_input_that_a_server_asks_for_belongs_to_its_call(mode: str) -> None:
    gate = ScriptedGate()
    assert called(gate, mode, ("pay_some", {})) == (["paid 7"], ["7"])
    assert [call.continues for call in gate.calls] == ([None] if mode == "session" else [None, 1])


def post(path: str, body: object, place: str) -> bytes:
    text = json.dumps(body)
    return f"POST {path} HTTP/1.1\r\nHost: {place}\r\nMcp-Session-Id: s\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def call_of(number: int, **arguments: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "pay", "arguments": arguments}}


def answer_to(number: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": f"paid {number}"}]}}


JSON = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}"
EVENTS = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_of_a_batch_one_call_can_fail_and_the_others_go_on() -> None:
    gate = ScriptedGate(before={2: "error"})

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(request.partition(b"\r\n\r\n")[2])
        text = json.dumps([answer_to(call["id"]) for call in asked])
        writer.write(JSON.format(len(text), text).encode())

    async def ask() -> list[dict[str, object]]:
        async with raw_server(answer, b"]") as server, listening(gate) as listener:
            address = listener.add_mcp(McpServer("bank", url=server.url + "/mcp?key=k"))
            assert address == f"{listener.address}/token/bank/mcp?key=k"
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            request = post(path, [call_of(1), call_of(2), call_of(3)], place).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            got = await exchanged(address, request)
            answers: list[dict[str, object]] = json.loads(got.partition(b"\r\n\r\n")[2])
            return answers

    answers = asyncio.run(asyncio.wait_for(ask(), 10))
    assert [answer["id"] for answer in answers] == [1, 3, 2]
    assert answers[2]["result"] == {"content": [{"type": "text", "text": "The service is not available."}], "isError": True}


@pytest.mark.parametrize("after", ["give", "break", "silence", "garbled"])
def test_an_answer_can_come_on_a_stream_that_was_resumed(after: AnswerAction) -> None:
    gate = ScriptedGate(after={} if after == "give" else {1: after}, patience=0.1)

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        if request.startswith(b"POST"):
            writer.write(f"{EVENTS}id: 1\ndata:\n\n".encode())
        else:
            assert b"Last-Event-ID: 1\r\n" in request
            writer.write(f"{EVENTS}id: 2\ndata: {json.dumps(answer_to(1))}\n\n".encode())
        await writer.drain()
        writer.close()

    async def ask() -> str:
        async with raw_server(answer, b"}") as server, listening(gate) as listener:
            address = listener.add_mcp(McpServer("bank", url=server.url))
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            first = post(f"{path}/", call_of(1), place).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
            await exchanged(address, first)
            resumed = (
                f"GET {path}/ HTTP/1.1\r\nHost: {place}\r\nMcp-Session-Id: s\r\nLast-Event-ID: 1\r\nConnection: close\r\n\r\n"
            )
            try:
                return (await exchanged(address, resumed.encode())).decode()
            except ConnectionResetError:
                return "broken"

    got = asyncio.run(asyncio.wait_for(ask(), 10))
    assert gate.course[:2] == [("arrived", 1), ("answered", 1)]
    assert ("paid 1" in got) == (after in ("give", "silence"))
    assert (got == "broken") == (after == "break")
    assert (("given", 1) in gate.course) == (after != "break")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "asks for a key"),
        (
            b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer error=x, "
            b'resource_metadata="https://mcp.example/.well-known/oauth-protected-resource"\r\n\r\n',
            "asks for a login (OAuth) at https://mcp.example/.well-known/oauth-protected-resource: an agent's login for that",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            b"event: endpoint\ndata: /messages?id=1\n\n",
            "speaks HTTP with SSE",
        ),
    ],
)
def test_a_server_that_wants_a_login_or_speaks_the_first_transport_is_named_once(answer: bytes, says: str) -> None:
    gate = ScriptedGate()

    async def once(request: bytes, writer: asyncio.StreamWriter) -> None:
        del request
        writer.write(answer)
        writer.close()

    async def ask() -> None:
        async with raw_server(once) as server, listening(gate) as listener:
            address = listener.add_mcp(McpServer("bank", url=server.url))
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            request = f"GET {path}/ HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n".encode()
            for _ in range(2 if b"401" in answer else 1):
                await exchanged(address, request)

    asyncio.run(asyncio.wait_for(ask(), 10))
    [(door, what)] = gate.notes
    assert door == "bank" and says in what


def test_an_answer_of_http_without_an_answer_of_mcp_is_a_failure() -> None:
    gate, gone = ScriptedGate(), b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"

    async def ask() -> bytes:
        async with raw_server(gone, b"}") as server, listening(gate) as listener:
            address = listener.add_mcp(McpServer("bank", url=server.url))
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            return await exchanged(address, post(f"{path}/", call_of(1), place), len(gone))

    assert asyncio.run(asyncio.wait_for(ask(), 10)) == gone
    assert gate.calls[0].failed and gate.calls[0].answer == {"status": 404, "body": "none"}
