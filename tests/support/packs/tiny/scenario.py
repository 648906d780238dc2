"""How many apples came in? The smallest pack that has all that a pack can have, for the tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bench.run.packs import PackFolder
from bench.scenario import Answer, Context, Finding, Grade, Json, Output, Scenario, Subtask

SURE = 0.6


class Delivery(Output):
    day: str
    apples: int = Field(ge=1)


class Gathered(Output):
    deliveries: list[Delivery]
    confidence: float = Field(ge=0, le=1)


class Total(Output):
    total: int = Field(ge=0)
    unit: Literal["apples", "crates"]


class Review(Output):
    approved: bool
    problems: list[str]


def days_are_in_the_notes(output: Gathered, context: Context) -> str | None:
    unknown = next((one.day for one in output.deliveries if one.day not in context.documents["notes.txt"]), None)
    return f"the notes know no day '{unknown}'" if unknown else None


def total_covers_each_delivery(output: Total, context: Context) -> str | None:
    gathered: Gathered = context.outputs["gather"]
    most = max((one.apples for one in gathered.deliveries), default=0)
    return f"the total {output.total} is less than one delivery alone" if output.total < most else None


def sure(output: Gathered) -> str | None:
    return None if output.confidence >= SURE else f"confidence {output.confidence} is below {SURE}"


def nothing_came(outputs: Mapping[str, Any]) -> Total | None:
    return None if outputs["gather"].deliveries else Total(total=0, unit="apples")


def total_found_wrong(output: Review) -> Finding | None:
    return None if output.approved else Finding("total", "; ".join(output.problems) or "not approved")


def grade(answer: Answer, truth: Path) -> Grade:
    right = answer["total"].total == int((truth / "total.txt").read_text(encoding="utf-8"))
    return Grade(right, float(right), {"total": float(right)}, "as counted" if right else "miscounted")


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    return {
        "gather": {"deliveries": [{"day": "Monday", "apples": 12}], "confidence": 1.0},
        "total": {"total": 12, "unit": "apples"},
        "review": {"approved": True, "problems": []},
    }


def scenario(folder: PackFolder) -> Scenario:
    subtasks = (
        Subtask(
            "gather",
            folder.prompt("gather"),
            reads=("notes.txt",),
            output=Gathered,
            checks=(days_are_in_the_notes,),
            sufficient=sure,
            checkpoint=True,
        ),
        Subtask(
            "total",
            folder.prompt("total"),
            reads=("gather",),
            output=Total,
            checks=(total_covers_each_delivery,),
            skip=nothing_came,
        ),
        Subtask(
            "review",
            folder.prompt("review"),
            reads=("gather", "total", "notes.txt"),
            output=Review,
            finds=total_found_wrong,
        ),
    )
    return folder.scenario(subtasks, grade=grade, baseline=baseline, secrets=("forty-two",))
