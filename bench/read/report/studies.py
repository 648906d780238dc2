"""The registry of studies, and the tables and figures that a study adds to a report.

A study answers a question beyond the paper. A config names its study by `study = "NAME"`.

    studies/NAME/
      study.py      tables(run) and pictures(run); both raise ResultsError, in one line, if the run lacks what the study needs
      prepare.py    prepare(matrix), where a run's manifest must hold something for the study from the beginning
      config.toml   the study's experiment

They may import their siblings (`from .mutants import Mutants`) and what several studies share (`from ..rises import rises`). A
package can bring a study as well: see StudyPart.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from bench.common.digests import digest_of
from bench.common.errors import ConfigError, ResultsError, nearest
from bench.common.paths import CHECKOUT_STUDIES, STUDIES_FOLDER
from bench.common.raised import place_of, type_and_message
from bench.common.registry import Part, Registry, attribute_at

if TYPE_CHECKING:
    from bench.read.analysis.frames import Run
    from bench.read.render.drawing import Picture
    from bench.read.render.table import Table


@dataclass(frozen=True)
class StudyPart(Part):
    """A study, which answers a question beyond the paper.

    path     the module of a package's study. It is imported only for a report: it imports pandas and matplotlib, which a run
             need not wait for
    folder   the folder of a study under `studies/`; None for a package's study
    """

    path: str = ""
    folder: Path | None = None


def find_studies() -> Iterator[StudyPart]:
    """Yield the studies in `studies/` of the working folder, or of the checkout if the working folder has no `studies/`.

    Yields:
        The studies, by name.
    """
    for path in sorted(_studies_folder().glob("*/study.py")):
        name = path.parent.name
        yield StudyPart(name, folder=path.parent)


def _studies_folder() -> Path:
    """Return `studies/` of the working folder, or of the checkout."""
    return (STUDIES_FOLDER if STUDIES_FOLDER.is_dir() else CHECKOUT_STUDIES).resolve()


STUDIES = Registry("study", StudyPart, plural="studies", in_folders=find_studies)


class Study(Protocol):
    """The functions that every module of a study provides."""

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
    """Raise an error for a study that does not exist.

    Args:
        name: The study's name in a config; None for no study.

    Raises:
        ConfigError: There is no such study.
    """
    if name is not None and name not in STUDIES:
        raise ConfigError(f"{STUDIES.unknown(name)}; studies are looked for in {_studies_folder()}")


def study_tables(run: Run) -> list[Table]:
    """Return the tables of a run's study. If they cannot be made, return one table with the reason.

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
    """Return the figures of a run's study. If they cannot be made, return none: the table of the study gives the reason.

    Args:
        run: The run, as `bench.load_run` reads it.

    Returns:
        The figures.
    """
    name = run.config.study
    try:
        return list(study_named(name).pictures(run)) if name else []
    except Exception:
        return []


def _why(error: Exception, name: str) -> str:
    """Return in words why a study is not shown."""
    if isinstance(error, ResultsError):
        return str(error)
    part = _study_part(name)
    return f"{_place_text(error, part.folder) if part.folder else part.package}: {type_and_message(error)}"


def study_named(name: str) -> Study:
    """Return the module of a study.

    Args:
        name: The study's name in a config.

    Returns:
        The module, which provides the functions of `Study`.

    Raises:
        ResultsError: No study has this name.
    """
    return cast(Study, module_of_study(_study_part(name), "study"))


def module_of_study(part: StudyPart, module: str) -> Any:
    """Return a module of a study.

    Args:
        part: The study's entry.
        module: The module's name in the study's folder. A package's study has one module, whatever is asked for.

    Returns:
        The module.

    Raises:
        ResultsError: It does not load.
    """
    if part.folder is None:
        return attribute_at(part.path)
    # All studies of one folder are one package, named by the folder's path, so that two checkouts never share a module.
    root = part.folder.parent
    package = f"bench_studies_{digest_of(str(root))[:12]}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(root)]
    try:
        return importlib.import_module(f"{package}.{part.name}.{module}")
    except (Exception, SystemExit) as error:
        raise ResultsError(f"{_place_text(error, part.folder)}: does not load: {type_and_message(error)}") from error


def _place_text(error: BaseException, folder: Path) -> str:
    """Return the file and line of a study's folder in which an error arose, as text."""
    return f"{STUDIES_FOLDER}/{folder.name}/{place_of(error, folder) or 'study.py'}"


def _study_part(name: str) -> StudyPart:
    """Return the entry of the study of this name. Raises ResultsError if there is none."""
    if name not in STUDIES:
        raise ResultsError(f"is unknown; {nearest(name, STUDIES.names)}")
    return STUDIES[name]
