"""A gateway before a real server over stdio, and an agent's end of that server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gates import ScriptedGate

from bench.probe.run.gateway.agent_config import read_config
from bench.probe.run.gateway.gateway import Gateway
from bench.probe.run.gateway.subject import ProbedAgent, Subject

STDIO_SERVER = Path(__file__).with_name("stdio_server.py")


class Client:
    """An agent's end of one server: the process that its config starts."""

    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process
        assert process.stdin and process.stdout and process.stderr
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    async def send(self, body: Any) -> None:
        await self.write(json.dumps(body).encode() + b"\n")

    async def write(self, content: bytes) -> None:
        self.stdin.write(content)
        await self.stdin.drain()

    async def call(self, identifier: Any, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments}
        await self.send({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params})

    async def line(self, seconds: float = 10.0) -> bytes:
        return await asyncio.wait_for(self.stdout.readline(), seconds)

    async def message(self, seconds: float = 10.0) -> Any:
        return json.loads(await self.line(seconds))

    async def hears_nothing(self, seconds: float = 0.15) -> bool:
        try:
            await self.line(seconds)
        except TimeoutError:
            return True
        return False


def subject_of(config: Path, server: Mapping[str, Any], name: str = "shop") -> Subject:
    config.write_text(json.dumps({"mcpServers": {name: dict(server)}}), encoding="utf-8")
    agent = ProbedAgent(("agent", str(config)), ("agent", str(config)), config.parent)
    return Subject("test", agent, (read_config(config),))


@asynccontextmanager
async def gateway_of(
    folder: Path, gate: ScriptedGate, mode: str = "", replaces: Mapping[str, str] | None = None
) -> AsyncIterator[Gateway]:
    """A gateway before the stdio server of `stdio_server.py`, which logs into the folder."""
    server = {"command": sys.executable, "args": [str(STDIO_SERVER), str(folder), mode], "env": {"SECRET": "canary-7"}}
    async with gateway_before(folder, gate, server, replaces) as gateway:
        yield gateway


@asynccontextmanager
async def gateway_before(
    folder: Path, gate: ScriptedGate, server: Mapping[str, Any], replaces: Mapping[str, str] | None = None
) -> AsyncIterator[Gateway]:
    """A gateway before this stdio server."""
    gateway = Gateway(subject_of(folder / "mcp.json", server), replaces or {}, folder / "private")
    gateway.gate = gate
    async with gateway:
        yield gateway


@asynccontextmanager
async def client_of(gateway: Gateway, name: str = "shop") -> AsyncIterator[Client]:
    """The process that the rewritten config starts, as an agent starts it."""
    environment, entry = launched(gateway, name)
    process = await asyncio.create_subprocess_exec(
        entry["command"],
        *entry["args"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, **entry.get("env", {})},
        limit=2**26,
    )
    client = Client(process)
    try:
        yield client
    finally:
        process._transport.close()  # type: ignore[attr-defined]  # it kills the process, also where its output was not read
        await process.wait()


def launched(gateway: Gateway, name: str) -> tuple[dict[str, str], Any]:
    """Return the variables of the agent, and the entry of a server in the config that it finds."""
    [config] = gateway._subject.configs
    words, environment = gateway.launch(("agent", str(config.path)), {"PATH": "/usr/bin:/bin"})
    return dict(environment), json.loads(Path(words[1]).read_text(encoding="utf-8"))["mcpServers"][name]
