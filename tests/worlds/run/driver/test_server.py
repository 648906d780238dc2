"""A world's door, under real clients: what it says of its tools is what it does, over HTTP and as an MCP server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driven import driven, printed
from little_worlds import ENVIRONMENT, harm

from bench.worlds.run.driver.openapi import openapi
from bench.worlds.run.driver.tool_answers import answer_of
from bench.worlds.run.driver.tools import Offer
from bench.worlds.run.environment import Acted
from bench.worlds.run.environment.calling import RefusalCode

OFFERS = [Offer(tool.name, tool.description, tool.arguments, tool.result) for tool in ENVIRONMENT.tools]
COMMON = ["wait", "next_event", "list_events", "ask_person"]


@pytest.mark.parametrize("way", [pytest.param("http", marks=pytest.mark.endurance), "stdio"])
def test_an_mcp_client_finds_the_same_tools_keys_and_versions(way: str) -> None:
    result = driven(["python", "mcp_client.py", way])
    tools, *answers, event = json.loads(printed(result))
    assert tools == [*(tool.name for tool in ENVIRONMENT.tools), *COMMON]
    assert answers == [{"number": 1}, {"number": 1}, "key", "stale", "json", "unknown_tool"]
    assert (event["number"], event["payload"]) == (1, {"orders": [1, 2, 3]})
    assert "doubled" not in harm(result)


def test_a_lost_answer_is_lost_over_mcp_too_and_what_is_no_mcp_is_refused() -> None:
    fault = {"point": "tool", "effect": "lost_ack", "tool": "refund", "attempts": [1]}
    result = driven(["python", "mcp_struck.py"], [fault])
    lost, listed, lied, unknown = printed(result).split("\n")[:4]
    assert (lost, listed) == ("RemoteDisconnected", "200 result")
    assert lied.startswith("400 ")
    assert unknown.endswith(" -32601")
    assert harm(result) == {"lost": 3, "orphaned": 1}


def test_a_crash_strikes_over_mcp_as_over_http() -> None:
    for point, damage in (("before", {}), ("unacknowledged", {"doubled": 1, "orphaned": 1}), ("recorded", {"doubled": 1})):
        fault = {"point": "process", "effect": point, "tool": "refund", "attempts": [1]}
        result = driven(["python", "mcp_struck.py"], [fault])
        assert {kind: count for kind, count in harm(result).items() if kind != "lost"} == damage, point


@pytest.mark.parametrize(
    ("code", "status"), [("declined", 403), ("forbidden", 403), ("quota", 403), ("throttled", 429), ("hung", 503)]
)
def test_what_no_repetition_mends_is_no_fault_of_the_tool(code: RefusalCode, status: int) -> None:
    """An agent that follows HTTP tries a 503 again, and a 429 later."""
    answer = answer_of(Acted("refund", "order 1", "refused", reason="why", code=code))
    assert (answer.status, answer.body["error"]) == (status, {"code": code, "message": "why"})


def test_each_operation_has_its_schemas_and_each_reference_leads_somewhere() -> None:
    document = openapi(OFFERS, "http://127.0.0.1")
    assert [path.rpartition("/")[2] for path in document["paths"]] == [tool.name for tool in ENVIRONMENT.tools]
    for reference in references(document):
        result: Any = document
        for step in reference.removeprefix("#/").split("/"):
            result = result[step]
    assert document["components"]["schemas"]["refund.arguments"]["required"] == ["order", "amount"]


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [result for each in value for result in references(each)]
    if not isinstance(value, dict):
        return []
    refs = [value["$ref"]] if "$ref" in value else []
    return [*refs, *(result for each in value.values() for result in references(each))]
