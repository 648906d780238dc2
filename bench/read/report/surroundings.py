"""What a report shows of a trial's environment. Each kind of environment brings its own view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from bench.common.paths import PACKS
from bench.common.registry import attribute_at
from bench.read.analysis.frames import Run
from bench.record.record import TrialRecord
from bench.run.packs.environments import ENVIRONMENTS


class Shown(Protocol):
    """The view of one trial's environment: `json` for the page, and `lines` for a terminal."""

    @property
    def json(self) -> Mapping[str, Any]: ...

    def lines(self) -> Iterable[str]: ...


class Showing(Protocol):
    """The module that a kind of environment registers as `EnvironmentPart.shown`."""

    def texts_of(self, run: Run, folders: Iterable[Path]) -> dict[str, str]:
        """Return these folders' texts by digest if a trial of the run was in an environment of this kind."""

    def is_shown_otherwise(self, text: str) -> bool:
        """Return whether a text is the environment itself. The page does not show it as a text."""

    def shows(self, run: Run, texts: Mapping[str, str], packs: Sequence[Path]) -> Any:
        """Return an object with `of(record)`: the view of a trial, or None if it was in no environment of this kind."""


class SurroundingViews:
    """The environments of a run's trials. `texts` are the run's, by digest; `packs` are the folders that hold packs."""

    def __init__(self, run: Run, texts: Mapping[str, str], packs: Sequence[Path] = PACKS):
        self._shows = [(part.name, showing(part.shown).shows(run, texts, packs)) for part in ENVIRONMENTS]

    def of(self, record: TrialRecord) -> dict[str, Shown]:
        """Return the views of a trial's environment by its kind; empty if the trial was in none."""
        views = {kind: shows.of(record) for kind, shows in self._shows}
        return {kind: shown for kind, shown in views.items() if shown is not None}


def showing(path: str) -> Showing:
    return cast(Showing, attribute_at(path))
