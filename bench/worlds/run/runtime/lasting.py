"""Resources that outlive a process of the agent and end with its trial, for example its session and its endpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

Resource = TypeVar("Resource")


class Lasting(AsyncExitStack):
    """A context for resources that all processes of one trial's agent share."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Any] = {}

    async def get(self, name: str, make: Callable[[], AbstractAsyncContextManager[Resource]]) -> Resource:
        """Return the resource with this name. The first process that asks opens it, later processes share it, and the trial's
        end closes it."""
        if name not in self._kept:
            self._kept[name] = await self.enter_async_context(make())
        resource: Resource = self._kept[name]
        return resource
