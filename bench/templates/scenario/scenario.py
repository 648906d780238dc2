"""Which volume fills up first? A small pack to begin from: two subtasks, one check of each kind, a grader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from bench.packs import PackFolder
from bench.scenario import Answer, Context, Grade, Json, Output, Scenario, Subtask

VARIANTS = ("paper",)
CONFIDENCE = 0.6


class Reading(Output):
    volume: str
    free_gb: float = Field(ge=0)
    growth_gb_per_day: float = Field(ge=0)


class Readings(Output):
    readings: list[Reading]


class Decision(Output):
    volume: str = Field(description="the volume that is full first")
    days_left: int = Field(ge=0, description="whole days until it is full")
    confidence: float = Field(ge=0, le=1)


def each_volume_exists(output: Readings, context: Context) -> str | None:
    """Verifiers are code: they see all documents and never the truth."""
    unknown = [one.volume for one in output.readings if one.volume not in context.documents["volumes.txt"]]
    return f"volumes.txt has no volume '{unknown[0]}'" if unknown else None


def volume_was_read(output: Decision, context: Context) -> str | None:
    known = [one.volume for one in context.outputs["measure"].readings]
    return None if output.volume in known else f"'{output.volume}' is not among the readings: {', '.join(known)}"


def unsure(output: Decision) -> str | None:
    """Runtime-structured architectures ask again for what is too weak."""
    return f"confidence is below {CONFIDENCE}" if output.confidence < CONFIDENCE else None


def grade(answer: Answer, truth: Path) -> Grade:
    """The only code that reads the truth."""
    right: Mapping[str, Any] = json.loads((truth / "truth.json").read_text(encoding="utf-8"))
    decision = answer["decide"]
    parts = {"volume": float(decision.volume == right["volume"]), "days_left": float(decision.days_left == right["days_left"])}
    correct = all(parts.values())
    return Grade(
        correct, sum(parts.values()) / len(parts), parts, "" if correct else f"not {right['volume']} in {right['days_left']}"
    )


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """What keyword rules make of it: the volume with the least space. It must not be right."""
    rows = [line.split() for line in documents["volumes.txt"].splitlines()[1:]]
    readings = [{"volume": row[0], "free_gb": float(row[1]) - float(row[2]), "growth_gb_per_day": 0.0} for row in rows]
    least = min(rows, key=lambda row: float(row[1]) - float(row[2]))
    return {"measure": {"readings": readings}, "decide": {"volume": least[0], "days_left": 1, "confidence": 1.0}}


def scenario(folder: PackFolder) -> Scenario:
    subtasks = (
        Subtask("measure", folder.prompt("measure"), ("volumes.txt",), Readings, checks=(each_volume_exists,)),
        Subtask("decide", folder.prompt("decide"), ("measure",), Decision, checks=(volume_was_read,), sufficient=unsure),
    )
    return folder.scenario(subtasks, grade=grade, baseline=baseline, secrets=("archive is full",))
