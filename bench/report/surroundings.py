"""What is shown of what a trial's task stood in: each kind of environment brings its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from bench.analysis.frames import Run
from bench.experiment.record import TrialRecord
from bench.packs.environments import ENVIRONMENTS
from bench.paths import PACKS
from bench.registry import attribute_at


class Shown(Protocol):
    """What is shown of one trial: `json` for the page, and `lines` for a terminal."""

    @property
    def json(self) -> Mapping[str, Any]: ...

    def lines(self) -> Iterable[str]: ...


class Showing(Protocol):
    """A module that a kind of environment registers (`EnvironmentPart.shown`)."""

    def texts_of(self, run: Run, folders: Iterable[Path]) -> dict[str, str]:
        """Return the texts of these folders by digest, where a trial of the run stood in such an environment."""

    def is_shown_otherwise(self, text: str) -> bool:
        """Return whether a text is the environment itself, which the page does not show as a text."""

    def shows(self, run: Run, texts: Mapping[str, str], packs: Sequence[Path]) -> Any:
        """Return what has `of(record)`: what is shown of a trial, or None where it did not stand in such an environment."""


class SurroundingViews:
    """What stands around a run's trials. `texts` are the run's by digest, and `packs` the folders in which packs lie."""

    def __init__(self, run: Run, texts: Mapping[str, str], packs: Sequence[Path] = PACKS):
        self._shows = [(part.name, showing(part.shown).shows(run, texts, packs)) for part in ENVIRONMENTS]

    def of(self, record: TrialRecord) -> dict[str, Shown]:
        """Return what is shown of a trial's environment, by the environment's kind; nothing where it stood in none."""
        views = {kind: shows.of(record) for kind, shows in self._shows}
        return {kind: shown for kind, shown in views.items() if shown is not None}


def showing(path: str) -> Showing:
    return cast(Showing, attribute_at(path))
