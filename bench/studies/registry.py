"""The studies: a question beyond the paper is one file here, a row of STUDIES, and a config that says `study = "NAME"`.

A study's module has `tables(run)` and `pictures(run)`. Both raise ResultsError, in one line, where the run lacks what the study
needs. Where the run's manifest must hold something of it from the beginning, the module has `prepare(matrix)` as well. The
names of all tables and pictures begin with `study`, which is their section of the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from bench.errors import ConfigError, ResultsError, nearest

if TYPE_CHECKING:
    from bench.analysis.frames import Run
    from bench.experiment.matrix import Matrix
    from bench.render.drawing import Picture
    from bench.render.table import Table

STUDIES = {
    "break_even": "bench.studies.break_even",
    "detectability": "bench.studies.detectability",
    "validators": "bench.studies.validators",
    "policy": "bench.studies.policy",
    "depth": "bench.studies.depth",
    "context": "bench.studies.context",
    "repair": "bench.studies.repair",
    "exactly_once": "bench.studies.exactly_once",
    "judgment_bank": "bench.studies.judgment_bank",
    "answer_format": "bench.studies.answer_format",
    "humaneval": "bench.studies.humaneval",
    "reliability_surface": "bench.studies.reliability_surface",
}
"""Name -> module, imported where it is asked for: a study imports pandas and matplotlib, for which no run should wait."""


class Study(Protocol):
    """What every study's module has."""

    def tables(self, run: Run) -> Iterable[Table]: ...

    def pictures(self, run: Run) -> Iterable[Picture]: ...


def require_known(name: str | None) -> None:
    """Raises ConfigError where a config names a study that does not exist."""
    if name is not None and name not in STUDIES:
        raise ConfigError(f"unknown study '{name}'; {nearest(name, STUDIES)}")


def prepared(matrix: Matrix) -> dict[str, Any]:
    """What the manifest of this matrix's run must hold for its study. Raises ConfigError where there is no such study."""
    name = matrix.config.study
    require_known(name)
    prepare = getattr(_study(name), "prepare", None) if name else None
    return dict(prepare(matrix)) if prepare else {}


def study_tables(run: Run) -> list[Table]:
    """The tables of the run's study; where they cannot be made, one that says why."""
    from bench.render.table import Table  # noqa: PLC0415  see STUDIES

    name = _name(run)
    if name is None:
        return []
    try:
        return list(_study(name).tables(run))
    except ResultsError as lacking:
        return [Table("study", f"Study {name}: not shown", ("Why",), ((f"study '{name}': {lacking}",),))]


def study_pictures(run: Run) -> list[Picture]:
    """The figures of the run's study; none where they cannot be made, which its table says."""
    name = _name(run)
    try:
        return list(_study(name).pictures(run)) if name else []
    except ResultsError:
        return []


def _name(run: Run) -> str | None:
    name: str | None = run.manifest.get("config", {}).get("study")
    return name


def _study(name: str) -> Study:
    if name not in STUDIES:
        raise ResultsError(f"is unknown; {nearest(name, STUDIES)}")
    return cast(Study, import_module(STUDIES[name]))
