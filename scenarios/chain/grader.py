"""Grade the closing stock. Only this code reads the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bench.scenario import Answer, Grade

from .sheets import ITEMS, LAST


def grade(answer: Answer, truth: Path) -> Grade:
    """Grade the answer: correct if the closing stock is. An error in an earlier subtask shows in it."""
    right: Mapping[str, int] = json.loads((truth / "stock.json").read_text(encoding="utf-8"))
    parts = {item: float(getattr(answer[LAST], item) == right[item]) for item in ITEMS}
    wrong = [item for item in ITEMS if not parts[item]]
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, f"wrong: {', '.join(wrong)}" if wrong else "")
