"""A bare client: so many calls in flight, each the same small request, nothing recorded, rendered or checked.

    python tools/reports/reliability/bare.py openai|aiohttp URL IN_FLIGHT CALLS

`openai` is a plain AsyncOpenAI as its documentation shows it, without retries; `aiohttp` is what is below our own client.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import aiohttp
import openai

PROMPT = "word " * 1500
BODY = {"model": "m", "seed": 1, "messages": [{"role": "user", "content": PROMPT}]}


async def by_openai(url: str, in_flight: int, calls: int) -> None:
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=600) as client:

        async def ask() -> None:
            await client.chat.completions.create(model="m", seed=1, messages=[{"role": "user", "content": PROMPT}])

        await _together(ask, in_flight, calls)


async def by_aiohttp(url: str, in_flight: int, calls: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> None:
            async with session.post(f"{url}/chat/completions", json=BODY) as answer:
                await answer.read()

        await _together(ask, in_flight, calls)


async def _together(ask: Callable[[], Awaitable[None]], in_flight: int, calls: int) -> None:
    left = iter(range(calls))

    async def work() -> None:
        for _ in left:
            await ask()

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work())


CLIENTS = {"openai": by_openai, "aiohttp": by_aiohttp}

if __name__ == "__main__":
    asyncio.run(CLIENTS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
