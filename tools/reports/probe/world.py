"""A pack's world as a stranger would have it: tools that an MCP server serves over stdio, and a model that is served over HTTP.

The tools' state is a SQLite file. After each call the server hands the world to a keeper outside of the agent's box, for the
world's own count of damage.

    python world.py tools PACK INSTANCE STORE PORT
    python world.py model PORT PACK INSTANCE
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from bench.record.damage import Harm
from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.packs.loading import load_pack
from bench.scenario import Scenario
from bench.worlds.run.driver.common_tools import WorldTool, common_tools
from bench.worlds.run.driver.tool_answers import STATUS_BY_CODE, ToolResponse, answer_of, error_response, success_response
from bench.worlds.run.environment import Arrival, Environment, Moment
from bench.worlds.run.environment.calling import parse_as
from bench.worlds.run.environment.damage import harms
from bench.worlds.run.environment.parts import Standing
from bench.worlds.run.environment.world import World
from bench.worlds.run.simulated.proposer import Proposed, next_calls

PACKS = (Path(__file__).resolve().parents[3] / "scenarios",)
KEY = "idempotencyKey"
"""A field of a call's `_meta`."""
UNMADE = "unmade"
"""Stands for the tool of an effect that no kept world shows."""


@dataclass(frozen=True)
class Decision:
    answer: str
    ticket: str
    arrival: Arrival | None = None


class Actions:
    """What the tools of every world ask of `workbench.world`, done by a world without a trial."""

    def __init__(self, world: World):
        self._world = world
        self.arrivals = world.arrivals

    @property
    def now(self) -> Moment:
        return self._world.now

    async def wait(self, days: int = 0, minutes: int = 0) -> tuple[Arrival, ...]:
        return self._world.wait(days, minutes)

    async def next_event(self, after: int = 0, until: Moment | None = None) -> Arrival | None:
        return self._world.next_event(after, until)

    async def ask_person(
        self, kind: str, about: str, question: Mapping[str, Any], key: str | None, *, days: int = 0, minutes: int = 0
    ) -> Decision:
        until, ticket, read = self.now.after(days or (0 if minutes else 3), minutes), "", 0
        ticket = self._world.ask(kind, about, question, key)
        while arrival := self._world.next_event(read, until):
            read = arrival.number
            if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
                return Decision("approved" if arrival.payload["approved"] else "denied", ticket, arrival)
        return Decision("late", ticket)


async def _worked(tool: WorldTool, actions: Any, asked: Any, key: str | None) -> Any:
    return await tool.handler(actions, asked, key)


class ToolServer:
    """An MCP server over a world in a file. A second process goes on where a first was killed. `keep` gets the content of the
    world at the start and after each call, and whether nothing has been done in it yet."""

    def __init__(self, environment: Environment, store: Path, keep: Callable[[bytes, bool], None]):
        self._environment, self._world, self._keep = environment, World(environment, store), keep
        self._actions: Any = Actions(self._world)
        self._common = {tool.name: tool for tool in common_tools(tuple(environment.people))}
        keep(self._world.snapshot().content, not self._world.journal())

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a request."""
        if message["method"] == "initialize":
            info = {"name": "world", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        if message["method"] == "tools/list":
            return {"tools": self._tools()}
        if message["method"] == "tools/call":
            asked = message["params"]
            key = asked.get("_meta", {}).get(KEY)
            response = self._called(asked["name"], asked.get("arguments", {}), key)
            self._keep(self._world.snapshot().content, False)
            content = [{"type": "text", "text": json.dumps(response.body, ensure_ascii=False)}]
            return {"content": content, "isError": not response.ok}
        return {}

    def _called(self, name: str, arguments: Mapping[str, Any], key: str | None) -> ToolResponse:
        common = self._common.get(name)
        if common is None:
            return answer_of(self._world.call(name, arguments, key))
        asked = parse_as(name, common.arguments, arguments)
        if isinstance(asked, str):
            return error_response(STATUS_BY_CODE["arguments"], "arguments", asked)
        return success_response(asyncio.run(_worked(common, self._actions, asked, key)))

    def _tools(self) -> list[dict[str, Any]]:
        tools = [(tool.name, tool.description, tool.arguments, not tool.writes) for tool in self._environment.tools]
        tools += [(tool.name, tool.description, tool.arguments, False) for tool in self._common.values()]
        return [
            {
                "name": name,
                "description": description or name,
                "inputSchema": arguments.model_json_schema(),
                "annotations": {"readOnlyHint": True} if reads else {},
            }
            for name, description, arguments, reads in tools
        ]


def keep_in(environment: Environment, folder: Path, content: bytes, begins: bool) -> None:
    """Keep a world in a folder, in the place of what was kept of it before. Where a world begins and the last one has no entry,
    they are the same."""
    paths = sorted(folder.glob("*.db"))
    if paths and begins:
        with closing(World(environment, content=paths[-1].read_bytes())) as last:
            begins = bool(last.journal())
    path = folder / f"{len(paths) + 1:06}.db" if begins or not paths else paths[-1]
    path.with_suffix(".new").write_bytes(content)
    path.with_suffix(".new").replace(path)


@contextmanager
def keeper(environment: Environment, folder: Path) -> Iterator[int]:
    """Keep in a folder what servers hand over. Yields the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            size = int(self.headers["Content-Length"])
            if len(content := self.rfile.read(size)) < size:
                return  # the server was killed
            keep_in(environment, folder, content, self.path == "/begins")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def hand_over(port: int, content: bytes, begins: bool) -> None:
    """Give a world to the keeper at a port, and wait until it is kept."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("PUT", "/begins" if begins else "/", content)
        connection.getresponse().read()


@dataclass(frozen=True)
class WorldCount:
    """What a kept world counts, as if nothing more were done: kind of damage -> tool -> how often.

    harms   what is lost is what stood in the first world and does not stand here
    owed    what is lost is what is owed in this world, as it became
    """

    harms: Mapping[str, Counter[str]]
    owed: Mapping[str, Counter[str]]


def kept_worlds(environment: Environment, folder: Path) -> Iterator[WorldCount]:
    """Yield the count of each kept world. The first is an undisturbed one, and its effects are those that every other owes."""
    tools, owed = dict[str, str](), list[Standing]()
    for path in sorted(folder.glob("*.db")):
        with closing(World(environment, content=path.read_bytes())) as world:
            world.end()
            entries, standings = world.journal(), list(world.standings())
        tools |= {entry.effect: entry.name for entry in entries if entry.is_effect}
        owed = owed or [replace(each, owed=each.times > 0) for each in standings]
        yield WorldCount(*(_counted(harms(environment, entries, {}, each), tools) for each in (owed, standings)))


def _counted(by_kind: Mapping[str, Sequence[Harm]], tools: Mapping[str, str]) -> Mapping[str, Counter[str]]:
    kinds: dict[str, Counter[str]] = {"doubled": Counter(), "lost": Counter()}
    for kind, counted in kinds.items():
        for harm in by_kind[kind]:
            counted[tools.get(harm.effect, UNMADE)] += harm.times
    return kinds


def serve_tools(environment: Environment, store: Path, port: int) -> None:
    server = ToolServer(environment, store, partial(hand_over, port))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = {"jsonrpc": "2.0", "id": message["id"], "result": server.answer(message)}
            sys.stdout.write(json.dumps(result) + "\n")
            sys.stdout.flush()


def next_proposed(scenario: Scenario, environment: Environment, body: Mapping[str, Any]) -> Proposed:
    """Return the next call of somebody who follows the pack's procedure and knows only the conversation."""
    messages = [
        Message(
            each["role"],
            _text(each.get("content")),
            tuple(
                ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in each.get("tool_calls") or ()
            ),
            each.get("tool_call_id", ""),
        )
        for each in body["messages"]
    ]
    return next_calls(environment, scenario.task, messages, body.get("tools", []), together=False)


def reply_of(next_: Proposed) -> dict[str, Any]:
    """Return a chat completion. The id of its call is drawn, as a real model's is."""
    message: dict[str, Any] = {"role": "assistant", "content": next_.text or None}
    if next_.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{secrets.token_hex(12)}",
                "type": "function",
                "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
            }
            for call in next_.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if next_.calls else "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    named = {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": "chat.completion", "created": int(time.time())}
    return {**named, "model": "procedure", "choices": [choice], "usage": usage}


def _without_ids(message: Mapping[str, Any]) -> Any:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return {**message, "tool_calls": calls, "tool_call_id": ""}


def _text(content: Any) -> str:
    """Return the text of a message. A framework can hand the whole result of a tool to its model."""
    text = "".join(part.get("text", "") for part in content) if isinstance(content, list) else content or ""
    if text.startswith('{"content":'):
        with suppress(ValueError):
            return _text(json.loads(text)["content"])
    return text


def serve_model(scenario: Scenario, environment: Environment, port: int) -> None:
    from aiohttp import web  # noqa: PLC0415  the tools do without

    known = dict[str, Proposed]()

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        shown = json.dumps([_without_ids(each) for each in body["messages"]])
        if shown not in known:
            known[shown] = next_proposed(scenario, environment, body)
        return web.json_response(reply_of(known[shown]))

    app = web.Application(client_max_size=2**24)
    app.add_routes([web.post("/v1/chat/completions", chat)])
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def main() -> None:
    what, *words = sys.argv[1:]
    port = words.pop(0) if what == "model" else ""
    scenario = load_pack(words[0], PACKS, words[1])
    environment = scenario.environment
    assert isinstance(environment, Environment), "these packs have a world"
    if what == "model":
        serve_model(scenario, environment, int(port))
    else:
        serve_tools(environment, Path(words[2]), int(words[3]))


if __name__ == "__main__":
    main()
