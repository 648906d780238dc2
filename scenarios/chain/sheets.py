"""The names that the pack's code and its generator share."""

from __future__ import annotations

ITEMS = ("bolts", "nuts", "washers")
OPENING, LAST = "opening.json", "closing"


def subtask_names(length: int) -> list[str]:
    """Return the names of the subtasks. The first and the last have the same names in every variant, so that one fault plan can
    strike them in all."""
    return [*(f"step_{number}" for number in range(1, length)), LAST]


def sheet_name(number: int) -> str:
    return f"sheet_{number:02}.txt"
