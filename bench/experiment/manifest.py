"""What a run keeps about itself, written once when it begins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bench.experiment.matrix import Matrix
from bench.experiment.provenance import code_version, machine, package_versions
from bench.experiment.store import FORMAT
from bench.tokens import RULER


def manifest_of(matrix: Matrix, name: str) -> dict[str, Any]:
    """The manifest of a run that begins now. It holds no key, no path and no host name of this machine."""
    return {
        "format": FORMAT,
        "name": name,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": matrix.config.model_dump(mode="json", exclude={"model"}),
        "models": {name: model.parameters for name, model in matrix.models.items()},
        "scenarios": {
            scenario.name: {
                "size": scenario.size,
                "digest": scenario.digest,
                "subtasks": [one.name for one in scenario.task.subtasks],
            }
            for scenario in matrix.scenarios.values()
        },
        "ruler": RULER,
        "code": code_version(),
        "packages": package_versions(),
        "machine": machine(),
    }
