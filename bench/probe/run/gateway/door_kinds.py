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

    can     what the door can do with a call; only points that need no more are possible there
    opens   returns the door before an HTTP service, an `HttpDoor`, from the service's name, its URL, and the `DoorContext`.
    None for a kind that services do not use: the gateway opens such a door itself
    """

    can: frozenset[DoorAbility] = frozenset()
    opens: Callable[[str, str, Any], Any] | None = None

    def __post_init__(self) -> None:
        self.refuse_unknown("can", self.can, get_args(DoorAbility))


DOOR_KINDS = Registry("kind of door", DoorKind, plural="doors")
