"""The kinds of doors: proxies through which an agent's calls pass. Each kind is one `DoorKind`, next to its class. Another
package declares more in the entry-point group `recovery_bench.doors`:

    [[service]]
    door = "graphql"       # the name of the kind
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from bench.common.registry import Part, Registry
from bench.probe.points import DoorAbility


@dataclass(frozen=True)
class DoorKind(Part):
    """A kind of door. The record names it with each call.

    can     what the door can do with a call. A point that needs another ability is not possible at such a door
    opens   (name of an HTTP service, its URL, `DoorContext`) -> the `HttpDoor` before the service; None for a kind that
            services do not use, whose doors the gateway itself opens
    """

    can: frozenset[DoorAbility] = frozenset()
    opens: Callable[[str, str, Any], Any] | None = None

    def __post_init__(self) -> None:
        self.refuse_unknown("can", self.can, get_args(DoorAbility))


DOOR_KINDS = Registry("kind of door", DoorKind, plural="doors")
