"""Run the problem's hidden tests on the final code. `hidden.py` says how, and why an answer cannot forge a result."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Answer, Grade

from .hidden import failure_of
from .problems import Problem

STAGES = {
    "syntax": "parses",
    "no function": "defines",
    "time limit": "ends",
    "exception": "returns",
    "wrong value": "passes",
}
"""Category of a failure -> the first stage that such an answer does not reach. The stages stand in their order."""


def grade(answer: Answer, truth: Mapping[str, str]) -> Grade:
    """Grade the answer: correct if the final code passes. The score is the benchmark's: 1 or 0."""
    [output] = answer.values()
    failed = failure_of(output.code, Problem(**truth))
    stages = list(STAGES.values())
    reached = stages.index(STAGES[failed.failure]) if failed else len(stages)
    parts = {stage: float(number < reached) for number, stage in enumerate(stages)}
    return Grade(not failed, float(not failed), parts, f"{failed.failure}: {failed.detail}" if failed else "")
