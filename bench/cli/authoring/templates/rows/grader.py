"""The grader: compares an answer with the expected fields of its row. No other code reads the expected fields.

Keep the grader in this file, and let other files import only `grade`. Then you can edit the grader without new runs: stored
answers are graded again.
"""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Answer, Grade, Json

from .rows import same


def grade(answer: Answer, truth: Mapping[str, Json]) -> Grade:
    """Return the grade of an answer: correct if every field is correct. The score is the share of correct fields."""
    parts = {field: float(same(getattr(answer["answer"], field), right)) for field, right in truth.items()}
    wrong = [f"{field} is {truth[field]!r}" for field, part in parts.items() if part < 1]
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, "; ".join(wrong))
