"""Grades an answer against the truth. The only code that reads it.

Keep it here, and import nothing but `grade` from this file: an edit then costs no run, for stored answers are graded again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.scenario import Answer, Grade


def grade(answer: Answer, truth: Path) -> Grade:
    """`answer` holds an output for each subtask, or for those that `answer=` names; `truth` is the folder reference/truth."""
    right: Mapping[str, Any] = json.loads((truth / "truth.json").read_text(encoding="utf-8"))
    decision = answer["decide"]
    parts = {"volume": float(decision.volume == right["volume"]), "days_left": float(decision.days_left == right["days_left"])}
    correct = all(parts.values())
    note = "" if correct else f"not {right['volume']} in {right['days_left']}"
    return Grade(correct, sum(parts.values()) / len(parts), parts, note)
