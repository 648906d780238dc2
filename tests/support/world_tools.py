"""A world's tools for an agent in a test: as a chat completion offers them, and carried out straight on the world."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.worlds.run.environment import Arrival, World

ANY: Mapping[str, Any] = {"type": "object"}


def tools(world: World) -> list[dict[str, Any]]:
    tools = {tool.name: tool.arguments.model_json_schema() for tool in world.environment.tools}
    common = dict.fromkeys(("wait", "next_event", "ask_person"), ANY)
    return [
        {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in {**tools, **common}.items()
    ]


def carried_out(world: World, name: str, arguments: Mapping[str, Any]) -> str:
    """What the agent is told, as a world's door says it."""
    if name in world.environment.by_name:
        acted = world.call(name, arguments)
        world.acknowledge(acted.entry)
        if not acted.ok:
            return json.dumps({"error": {"code": acted.code, "message": acted.reason}})
        return json.dumps({"result": acted.result.model_dump(mode="json"), "versions": dict(acted.versions or {})})
    return json.dumps({"result": _common(world, name, arguments), "versions": {}})


def _common(world: World, name: str, given: Mapping[str, Any]) -> Any:
    limit = world.now.after(given.get("days", 0), given.get("minutes", 0))
    if name == "wait":
        came = world.wait_until(limit)
        return {"day": world.now.day, "minute": world.now.minute, "events": [_shown(arrival) for arrival in came]}
    if name == "next_event":
        arrival = world.next_event(given.get("after", 0), limit if "days" in given else None)
        return _shown(arrival) if arrival else None
    ticket, last, until = world.ask(given["kind"], given["about"], given["question"]), 0, world.now.after(3)
    while arrival := world.next_event(last, until):
        last = arrival.number
        if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
            answer = "approved" if arrival.payload["approved"] else "denied"
            return {"answer": answer, "ticket": ticket, "event": _shown(arrival)}
    return {"answer": "late", "ticket": ticket, "event": None}


def _shown(arrival: Arrival) -> dict[str, Any]:
    when = {"number": arrival.number, "day": arrival.at.day, "minute": arrival.at.minute}
    return {**when, "kind": arrival.kind, "name": arrival.name, "payload": dict(arrival.payload)}
