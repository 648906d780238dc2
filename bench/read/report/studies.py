"""The kind of part that answers a question beyond the paper. A config says `study = "NAME"`.

A study's module has `tables(run)` and `pictures(run)`. Both raise ResultsError, in one line, if the run lacks what the study
needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from bench.common.errors import ConfigError, ResultsError, nearest
from bench.common.raised import words_of
from bench.common.registry import Part, Registry, attribute_at

if TYPE_CHECKING:
    from bench.read.analysis.frames import Run
    from bench.read.render.drawing import Picture
    from bench.read.render.table import Table


@dataclass(frozen=True)
class StudyPart(Part):
    """A question beyond the paper.

    path     its module, imported when needed: it imports pandas and matplotlib, and no run should wait for them
    former   its name in earlier versions: old runs keep that name, and a config with that name is told the new one
    """

    path: str = ""
    former: str = ""


STUDIES = Registry("study", StudyPart, plural="studies")


class Study(Protocol):
    """What every study's module provides."""

    def tables(self, run: Run) -> Iterable[Table]:
        """Yield the study's tables.

        Args:
            run: The run, as `bench.load_run` reads it.

        Returns:
            The tables, in the order of the report.

        Raises:
            ResultsError: The run lacks what the study needs.
        """

    def pictures(self, run: Run) -> Iterable[Picture]:
        """Yield the study's figures.

        Args:
            run: The run, as `bench.load_run` reads it.

        Returns:
            The figures, in the order of the report.

        Raises:
            ResultsError: The run lacks what the study needs.
        """


def require_known(name: str | None) -> None:
    """Refuse a study that does not exist.

    Args:
        name: The study's name in a config; None for no study.

    Raises:
        ConfigError: There is no such study, or it has another name now.
    """
    if name is not None:
        if name not in STUDIES and (part := _formerly(name)):
            raise ConfigError(f"the study '{name}' is called '{part.name}' now: say study = \"{part.name}\"")
        STUDIES.named(name)


def study_tables(run: Run) -> list[Table]:
    """Return the tables of a run's study. If they cannot be made, return one table that says why.

    Args:
        run: The run, as `bench.load_run` reads it.

    Returns:
        The tables; none if the config names no study.
    """
    from bench.read.render.table import Table  # noqa: PLC0415  see StudyPart

    name = run.config.study
    if name is None:
        return []
    try:
        return list(study_named(name).tables(run))
    except Exception as error:
        return [Table("study", f"Study {name}: not shown", ("Why",), ((f"study '{name}': {_why(error, name)}",),))]


def study_pictures(run: Run) -> list[Picture]:
    """Return the figures of a run's study. If they cannot be made there are none, and the study's table says why.

    Args:
        run: The run, as `bench.load_run` reads it.

    Returns:
        The figures.
    """
    name = run.config.study
    try:
        return list(study_named(name).pictures(run)) if name else []
    except Exception as error:
        _why(error, name or "")
        return []


def _why(error: Exception, name: str) -> str:
    """Return why a study is not shown. Raise the error if it is a bug of ours."""
    if isinstance(error, ResultsError):
        return str(error)
    if name in STUDIES and STUDIES[name].package:
        return f"{STUDIES[name].package}: {words_of(error)}"
    raise error


def study_named(name: str) -> Study:
    """Return the module of a study.

    Args:
        name: Its name, present or former.

    Returns:
        The module.

    Raises:
        ResultsError: No study has this name.
    """
    part = STUDIES[name] if name in STUDIES else _formerly(name)
    if part is None:
        raise ResultsError(f"is unknown; {nearest(name, STUDIES.names)}")
    return cast(Study, attribute_at(part.path))


def _formerly(name: str) -> StudyPart | None:
    """Return the study that had this name in an earlier version."""
    return next((part for part in STUDIES if part.former == name), None)
