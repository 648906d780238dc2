"""Run coroutines at the same time. If one fails, or the process dies, all of them end before anything else continues."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all coroutines. Raises ExceptionGroup, or BaseExceptionGroup if a process died."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work)
