"""Working at the same time. Where one fails, or the process dies, all of them end before anything goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Raises ExceptionGroup, or BaseExceptionGroup where one of them died."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work)
