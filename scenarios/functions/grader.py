"""Run the hidden tests on the code. Only this code reads them."""

from __future__ import annotations

from collections.abc import Mapping

from bench.run.sandbox.cases import Case, run_cases
from bench.scenario import Answer, Grade, Json

STAGES = {
    "syntax": "parses",
    "no function": "defines",
    "time limit": "ends",
    "exception": "returns",
    "wrong value": "passes",
}
"""What can come of a test, the worst first -> the stage that the code then does not reach. It has all stages before."""


def grade(answer: Answer, truth: Mapping[str, Json]) -> Grade:
    """Grade the code: correct if every hidden test passes. The score is the share of passed tests."""
    cases = [Case(tuple(arguments), expected) for arguments, expected in truth["tests"]]
    outcomes = run_cases(answer["code"].code, truth["function"], cases)
    failed = [one for one in outcomes if one.kind != "right"]
    kinds, stages = list(STAGES), list(STAGES.values())
    worst = min(failed, key=lambda one: kinds.index(one.kind), default=None)
    reached = kinds.index(worst.kind) if worst else len(stages)
    parts = {stage: float(number < reached) for number, stage in enumerate(stages)}
    note = f"{worst.kind}: {worst.words} ({len(failed)} of {len(cases)} tests fail)" if worst else ""
    return Grade(not failed, (len(cases) - len(failed)) / len(cases), parts, note)
