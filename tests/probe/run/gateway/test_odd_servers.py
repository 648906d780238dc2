"""MCP servers over stdio that break the protocol, as public trackers describe them: the agent gets the same bytes with and
without the gateway, and the gate sees what an agent can see."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from gates import ScriptedGate
from stdio_agents import client_of, gateway_before

ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pay", "arguments": {"amount": 5}}}
DONE = {"content": [{"type": "text", "text": "paid"}]}


def answer(body: object) -> str:
    return json.dumps(body) + "\n"


ODD = {
    "an id that became a text (modelcontextprotocol/python-sdk#1720)": (
        answer({"jsonrpc": "2.0", "id": "1", "result": DONE}),
        DONE,
    ),
    "an id that became a fraction": (answer({"jsonrpc": "2.0", "id": 1.0, "result": DONE}), DONE),
    "always the id 0 (radareorg/radare2-mcp#68)": (answer({"jsonrpc": "2.0", "id": 0, "result": DONE}), None),
    "an error without an id (helidon-io/helidon-mcp#65)": (
        answer({"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "no"}}),
        None,
    ),
    "a bare result (samihalawa/mcp-server-smtp#8)": (
        answer({"jsonrpc": "2.0", "id": 1, "result": {"success": True}}),
        {"success": True},
    ),
    "a result that is a list": (answer({"jsonrpc": "2.0", "id": 1, "result": [1]}), [1]),
    "structured content that is a list (NovasPlace/CSM#28)": (
        answer({"jsonrpc": "2.0", "id": 1, "result": {**DONE, "structuredContent": [1]}}),
        {**DONE, "structuredContent": [1]},
    ),
    "content inside toolResult (cloudflare/mcp-server-cloudflare#12)": (
        answer({"jsonrpc": "2.0", "id": 1, "result": {"toolResult": DONE}}),
        {"toolResult": DONE},
    ),
    "a log line before the answer (Pimzino/spec-workflow-mcp#72)": (
        "INFO paying\n\n" + answer({"jsonrpc": "2.0", "id": 1, "result": DONE}),
        DONE,
    ),
    "an answer over several lines": (json.dumps({"jsonrpc": "2.0", "id": 1, "result": DONE}, indent=1) + "\n", None),
}


def through_the_gateway(folder: Path, gate: ScriptedGate, wire: str) -> bytes:
    """Return what an agent gets that asks a server once, which answers with these bytes."""
    program = f"import sys\nsys.stdin.readline()\nsys.stdout.write({wire!r}); sys.stdout.flush()\nsys.stdin.readline()\n"
    server = {"command": sys.executable, "args": ["-c", program]}

    async def work() -> bytes:
        async with gateway_before(folder, gate, server) as gateway, client_of(gateway) as client:
            await client.send(ASK)
            got = b""
            while not got.endswith(wire.encode()[-20:]):
                got += await client.stdout.read(1000)
            return got

    return asyncio.run(asyncio.wait_for(work(), 20))


@pytest.mark.parametrize("oddity", ODD)
def test_an_odd_server_is_passed_on_byte_for_byte_and_its_answer_is_known_where_a_client_can_know_it(
    tmp_path: Path, oddity: str
) -> None:
    (wire, expected), gate = ODD[oddity], ScriptedGate()
    assert through_the_gateway(tmp_path, gate, wire) == wire.encode()
    (call,) = gate.calls
    assert call.answer == expected and (("given", 1) in gate.course) == (expected is not None)


def test_the_frames_of_language_servers_are_named(tmp_path: Path) -> None:
    gate = ScriptedGate()  # tmattio/ocaml-mcp#3
    through_the_gateway(tmp_path, gate, f"Content-Length: 77\r\n\r\n{answer({'jsonrpc': '2.0', 'id': 1, 'result': DONE})}")
    assert any("the frame of a language server" in what for _, what in gate.notes)
