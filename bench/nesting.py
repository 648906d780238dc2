"""How deep a JSON value may be nested. What is deeper is refused: where Python's own bound lies depends on who asks."""

from __future__ import annotations

from typing import Any

MOST_LEVELS = 64
"""Of objects and lists within each other."""


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested deeper than `MOST_LEVELS`, in time that grows as the value does."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for node in level
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
