"""What outlives a process of the agent, and ends with its trial: its place, its doors, its session at the endpoint."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

Kept = TypeVar("Kept")


class Lasting(AsyncExitStack):
    """Around all lives of one trial's agent."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Any] = {}

    async def get(self, name: str, make: Callable[[], AbstractAsyncContextManager[Kept]]) -> Kept:
        """What is kept under this name: opened by the first life that asks for it, the same in each later one, and closed at
        the trial's end."""
        if name not in self._kept:
            self._kept[name] = await self.enter_async_context(make())
        kept: Kept = self._kept[name]
        return kept
