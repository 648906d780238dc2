"""Calls tools by the MCP SDK's client, over the way that its argument names: http, or stdio. What it is told it prints."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from typing import Any

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PAID = {"order": 1, "amount": 40}


async def work(reading: Any, writing: Any) -> None:
    async with ClientSession(reading, writing) as session:
        await session.initialize()
        answers: list[Any] = [[tool.name for tool in (await session.list_tools()).tools]]
        for name, arguments, meta in (
            ("refund", PAID, {"idempotencyKey": "one"}),
            ("refund", PAID, {"idempotencyKey": "one"}),
            ("refund", {"order": 2, "amount": 1}, {"idempotencyKey": "one"}),
            ("refund", PAID, {"ifMatch": {"order 1": 1}}),
            ("refund", {"order": 10**30, "amount": 1}, {}),
            ("refnd", PAID, {}),
            ("next_event", {}, {}),
        ):
            answer = await session.call_tool(name, arguments, meta=meta)  # type: ignore[call-overload]
            answers.append(answer.structured_content.get("error", {}).get("code") or answer.structured_content["result"])
        print(json.dumps(answers))


async def main(way: str) -> None:
    if way == "http":
        headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as client,
            streamable_http_client(os.environ["MCP_URL"], http_client=client) as streams,
        ):
            await work(streams[0], streams[1])
    else:
        program, *words = shlex.split(os.environ["MCP_COMMAND"])
        async with stdio_client(StdioServerParameters(command=program, args=words)) as (reading, writing):
            await work(reading, writing)


asyncio.run(main(sys.argv[1]))
