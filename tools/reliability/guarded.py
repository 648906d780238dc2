"""What the sandbox holds with each guard taken away, where the module that tries it (`reliability.guards`) is there."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from reliability.kept import Guarded


def all_guarded() -> list[Guarded]:
    """One for each class of attacks and each removal; none without the module."""
    if importlib.util.find_spec("reliability.guards") is None:
        return []
    guards: Any = importlib.import_module("reliability.guards")
    return [Guarded(one.user, one.removed, one.attacks, one.tried, one.held, "; ".join(one.through)) for one in guards.rows()]
