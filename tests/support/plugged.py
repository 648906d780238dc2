"""Packages with parts, as if they were installed: a folder that Python imports from, and what pip leaves there."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cli.command_part import COMMANDS
from bench.common import registry
from bench.common.packs import PACKAGED
from bench.elsewhere.formats.part import FORMATS
from bench.probe.points import POINTS
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.witness.kinds import STORE_KINDS
from bench.read.analysis.metrics import METRICS
from bench.read.analysis.rows import FRAMES
from bench.read.report.export_part import EXPORTS
from bench.read.report.figures import FIGURES
from bench.read.report.studies import STUDIES
from bench.read.report.tables import TABLES
from bench.record.events import EVENTS
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.endpoint.dialect import DIALECTS
from bench.run.experiment.model_entries import MODELS
from bench.run.packs.environments import ENVIRONMENTS
from bench.run.trial.effects import EFFECTS

KINDS = (ARCHITECTURES, EFFECTS, MODELS, METRICS, TABLES, FIGURES, STUDIES, EXPORTS)
EVERY_KIND = (
    *KINDS,
    COMMANDS,
    DIALECTS,
    DOOR_KINDS,
    ENVIRONMENTS,
    EVENTS,
    FRAMES,
    PACKAGED,
    STORE_KINDS,
    POINTS,
    FORMATS,
)
PARROT = Path(__file__).parents[1] / "plugin_package"


def forget() -> None:
    """Make each kind read its parts anew at the next use, because packages were added or removed."""
    registry._entry_points.cache_clear()
    for kind in EVERY_KIND:
        vars(kind).pop("_parts", None)


def install(
    folder: Path,
    name: str,
    points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str] | None = None,
    requires: Sequence[str] = (),
) -> None:
    """Write into a folder what pip does for version 1.0 of a package: its modules, by file, and its entry points, by group."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        "Version: 1.0",
        *(f"Requires-Dist: {requirement}" for requirement in requires),
    ]
    (info / "METADATA").write_text("\n".join((*metadata, "")))
    groups = (
        "\n".join((f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))) for group, entries in points.items()
    )
    (info / "entry_points.txt").write_text("\n".join((*groups, "")))
    for file, text in (modules or {}).items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def install_package(folder: Path, package: Path = PARROT) -> None:
    """The package in `tests/plugin_package`, or in another folder; its modules are found where they lie."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    install(folder, project["name"], project["entry-points"], requires=project["dependencies"])


@dataclass(frozen=True)
class Installed:
    """Installs the packages in these folders in a command's own process, before the command begins."""

    folders: tuple[Path, ...]

    def __call__(self) -> None:
        sys.path[:0] = map(str, self.folders)
        forget()


@contextmanager
def plugged(*folders: Path) -> Iterator[None]:
    """While inside, the packages in these folders are installed."""
    before = set(sys.modules)
    sys.path[:0] = map(str, folders)
    forget()
    try:
        yield
    finally:
        del sys.path[: len(folders)]
        for name in set(sys.modules) - before:
            if any(str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)) for folder in folders):
                del sys.modules[name]
        forget()
