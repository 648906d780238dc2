"""The places where known frameworks execute a tool: one table, with the versions that were tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

Around = Callable[..., Callable[..., Any]]


@dataclass(frozen=True)
class ToolPlace:
    """Where a framework executes a tool.

    module  which is imported when that place is there; `wrap` puts a wrapper around it
    tried   the distribution, and its versions that were tried
    """

    module: str
    wrap: Callable[[ModuleType, Around], None]
    tried: str


PLACES: Sequence[ToolPlace] = ()
