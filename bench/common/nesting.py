"""How deep a JSON value may be nested. Deeper values are refused, because Python's own bound depends on the caller's depth."""

from __future__ import annotations

from typing import Any

MOST_LEVELS = 64
"""The most objects and lists inside each other."""


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested deeper than `MOST_LEVELS`, in time linear in its size."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for node in level
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
