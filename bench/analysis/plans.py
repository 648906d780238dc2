"""What a run's config says about a fault plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.analysis.frames import Run

FaultTable = Mapping[str, Any]
"""A fault as the config has it: point, effect, subtask, attempts, probability."""


def faults_of(run: Run, plan: str) -> list[FaultTable]:
    found: list[FaultTable] = run.manifest["config"].get("plan", {}).get(plan, {}).get("faults", [])
    return found
