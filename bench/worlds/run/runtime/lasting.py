"""What outlives a process of the agent and ends with its trial: its session, its endpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

Kept = TypeVar("Kept")


class Lasting(AsyncExitStack):
    """Holds what spans all lives of one trial's agent."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Any] = {}

    async def get(self, name: str, make: Callable[[], AbstractAsyncContextManager[Kept]]) -> Kept:
        """Return what is kept under this name. The first life that asks opens it, later lives share it, and the trial's end
        closes it."""
        if name not in self._kept:
            self._kept[name] = await self.enter_async_context(make())
        kept: Kept = self._kept[name]
        return kept
