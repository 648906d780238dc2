"""Grades the store. The only code that gets the truth, which is made with the instance and lies in no file."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Answer, Grade


def grade(answer: Answer, truth: Mapping[str, int]) -> Grade:
    parts = {fruit: float(getattr(answer["store"], fruit) == crates) for fruit, crates in truth.items()}
    wrong = [fruit for fruit, right in parts.items() if not right]
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, f"wrong: {', '.join(wrong)}" if wrong else "")
