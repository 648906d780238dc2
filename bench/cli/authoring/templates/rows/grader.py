"""Grades an answer against what the row expects. The only code that reads it.

Keep it here, and import nothing but `grade` from this file: an edit then costs no run, for stored answers are graded again.
"""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Answer, Grade, Json

from .rows import same


def grade(answer: Answer, truth: Mapping[str, Json]) -> Grade:
    """Correct where every field is; the score is the share of fields that are."""
    parts = {field: float(same(getattr(answer["answer"], field), right)) for field, right in truth.items()}
    wrong = [f"{field} is {truth[field]!r}" for field, part in parts.items() if part < 1]
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, "; ".join(wrong))
