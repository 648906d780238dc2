"""The baseline: an answer by keyword rules without a model. If it is right, the pack is too easy to distinguish models."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """Return an output for each subtask. It names the volume with the least free space."""
    rows = [line.split() for line in documents["volumes.txt"].splitlines()[1:]]
    readings = [{"volume": row[0], "free_gb": float(row[1]) - float(row[2]), "growth_gb_per_day": 0.0} for row in rows]
    fullest = min(rows, key=lambda row: float(row[1]) - float(row[2]))
    return {"measure": {"readings": readings}, "decide": {"volume": fullest[0], "days_left": 1, "confidence": 1.0}}
