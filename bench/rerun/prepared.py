"""The values that a study needs in its run's manifest from the beginning. The function `prepare(matrix)` in the study's
`prepare.py` returns them, if there is one."""

from __future__ import annotations

from typing import Any

from bench.read.report.studies import STUDIES, module_of_study, require_known
from bench.run.experiment.matrix import Matrix


def study_values(matrix: Matrix) -> dict[str, Any]:
    """Return the values that the study of a run needs in the run's manifest.

    Args:
        matrix: The experiment.

    Returns:
        JSON by name; empty if the study needs nothing.

    Raises:
        ConfigError: There is no such study.
        ResultsError: Its `prepare.py` does not load.
    """
    name = matrix.config.study
    require_known(name)
    part = STUDIES[name] if name else None
    if part is None or (part.folder and not (part.folder / "prepare.py").is_file()):
        return {}
    prepare = getattr(module_of_study(part, "prepare"), "prepare", None)
    return dict(prepare(matrix)) if prepare else {}
