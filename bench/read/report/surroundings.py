"""The interface through which a report gets the view of a trial's environment.

Only the trial's pack can rebuild an environment, so the caller of a report provides the views (`bench.rerun.world_views`).
Without them a page shows only the calls of a trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from bench.read.analysis.frames import Run
from bench.record.record import TrialRecord


class TrialView(Protocol):
    """The view of one trial's environment: `json` for the page, and `lines` for a terminal."""

    @property
    def json(self) -> Mapping[str, Any]:
        """The view for the page."""

    def lines(self) -> Iterable[str]:
        """Return the view's lines for a terminal."""


class TrialViews(Protocol):
    """The views of a run's trials, by kind of environment. A trial without an environment has none."""

    def of(self, record: TrialRecord) -> Mapping[str, TrialView]:
        """Return the views of a trial by kind of environment; empty if it has none."""


class ViewMaker(Protocol):
    """Makes the views of trials in environments."""

    def texts_of(self, run: Run, folders: Iterable[Path]) -> Mapping[str, str]:
        """Return the texts in these folders by digest; empty if no trial of the run was in an environment."""

    def is_shown_otherwise(self, text: str) -> bool:
        """Whether a text is the content of an environment. The page then shows the environment instead of the text."""

    def views(self, run: Run, texts: Mapping[str, str]) -> TrialViews:
        """Return the views of the run's trials."""


class NoViews:
    """A maker of views for reports that show no environment."""

    def texts_of(self, _: Run, __: Iterable[Path]) -> Mapping[str, str]:
        return {}

    def is_shown_otherwise(self, _: str) -> bool:
        return False

    def views(self, _: Run, __: Mapping[str, str]) -> TrialViews:
        return self

    def of(self, _: TrialRecord) -> Mapping[str, TrialView]:
        return {}
