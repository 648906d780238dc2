"""What a run's manifest must hold for its study from the beginning: a study's module can have `prepare(matrix)`."""

from __future__ import annotations

from typing import Any

from bench.read.report.studies import require_known, study_named
from bench.run.experiment.matrix import Matrix


def prepared(matrix: Matrix) -> dict[str, Any]:
    """Return what the manifest of a run must hold for its study.

    Args:
        matrix: The experiment.

    Returns:
        JSON by name; empty if the study needs nothing.

    Raises:
        ConfigError: There is no such study.
    """
    name = matrix.config.study
    require_known(name)
    prepare = getattr(study_named(name), "prepare", None) if name else None
    return dict(prepare(matrix)) if prepare else {}
