"""The grader: compares an answer with the truth. No other code reads the truth.

Keep the grader in this file, and let other files import only `grade`. Then you can edit the grader without new runs: stored
answers are graded again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.scenario import Answer, Grade


def grade(answer: Answer, truth: Path) -> Grade:
    """Return the grade of an answer.

    Args:
        answer: The output of each subtask, or of the subtasks that `answer=` names in scenario.py.
        truth: The folder reference/truth.
    """
    right: Mapping[str, Any] = json.loads((truth / "truth.json").read_text(encoding="utf-8"))
    decision = answer["decide"]
    parts = {"volume": float(decision.volume == right["volume"]), "days_left": float(decision.days_left == right["days_left"])}
    correct = all(parts.values())
    note = "" if correct else f"not {right['volume']} in {right['days_left']}"
    return Grade(correct, sum(parts.values()) / len(parts), parts, note)
