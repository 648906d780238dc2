"""The kinds of doors, at which an agent's calls pass. A kind is one entry: ours stand beside their classes, and another package
declares its own in the group `recovery_bench.doors` of its entry points:

    [[service]]
    door = "graphql"       # the kind's name
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from bench.common.registry import Part, Registry
from bench.probe.points import DoorAbility


@dataclass(frozen=True)
class DoorKind(Part):
    """A kind of door. Its name stands with each call in the record.

    can     what it can do with a call; a point that needs it strikes here
    opens   makes the door before an HTTP service of the owner's, an `HttpDoor`, from the service's name, its URL, and the
            `Desk` that all doors share. None for a kind that no service has: the gateway opens it in its own way
    """

    can: frozenset[DoorAbility] = frozenset()
    opens: Callable[[str, str, Any], Any] | None = None

    def __post_init__(self) -> None:
        self.refuse_unknown("can", self.can, get_args(DoorAbility))


DOOR_KINDS = Registry("kind of door", DoorKind, plural="doors")
