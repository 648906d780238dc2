"""A server over stdio whose agent lists no tools is asked for them once, in a box."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from till import till, worker_of

from bench.probe.run.agent_run import AgentRun
from bench.probe.run.gateway import tools_list
from bench.probe.run.gateway.gate import CallGate, DoorContext
from bench.probe.run.gateway.mcp import KnownServer
from bench.probe.run.gateway.tools_list import list_tools
from bench.probe.run.volatile import Masks
from bench.wire.agent_process import AgentProcess
from bench.wire.json_rpc import messages_of, text_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
PAGES = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    page = asked.get("params", {}).get("cursor", "look")
    tools = {"tools": [{"name": page, "annotations": {"readOnlyHint": page == "look"}}]}
    result = {} if asked["method"] == "initialize" else tools if page == "pay" else {**tools, "nextCursor": "pay"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True) if "id" in asked else None
"""


async def two_courses(folder: Path, boxed: bool) -> list[AgentRun]:
    subject = till(folder, "looks blind")
    async with worker_of(subject, folder, boxed=boxed)(0) as worker:
        return [await worker.run(Masks()) for _ in range(2)]


@pytest.mark.parametrize(
    ("boxed", "claims"), [(True, {"balance": True, "charge": False}), (False, dict.fromkeys(("balance", "charge")))]
)
def test_what_a_tool_claims_is_known_from_the_first_run_on_in_a_box_alone(
    tmp_path: Path, boxed: bool, claims: dict[str, bool | None]
) -> None:
    for agent_run in asyncio.run(two_courses(tmp_path, boxed)):
        assert agent_run.done and {call.tool: call.reads for call in agent_run.calls if call.tool in claims} == claims


async def learnt(folder: Path, program: str) -> dict[str, bool | None]:
    def start(streams: tuple[int, int, int]) -> AgentProcess:
        return AgentProcess([sys.executable, "-c", program], folder, dict(os.environ), 2**20, streams=streams)

    known = KnownServer("till", "mcp_stdio")
    await list_tools(start, known)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    messages = [messages_of(text_of({**asked, "params": {"name": tool}}))[0] for tool in ("look", "pay")]
    calls = [known.call_of(message, DoorContext(CallGate, lambda: 1, lambda: 1)) for message in messages]
    return {call.tool: call.reads for call in calls if call}


def test_each_page_of_the_tools_is_asked_for(tmp_path: Path) -> None:
    assert asyncio.run(learnt(tmp_path, PAGES)) == {"look": True, "pay": False}


@pytest.mark.parametrize("program", ["raise SystemExit", "import time; time.sleep(60)", "print('no message'); input()"])
def test_from_a_server_that_does_not_answer_nothing_is_learnt(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_list, "LIST_TIMEOUT_S", 0.5)
    assert asyncio.run(learnt(tmp_path, program)) == {"look": None, "pay": None}
