"""What a report is made from: a run, values computed once from it, and the sources of published claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

from bench.common.registry import attribute_at
from bench.read.analysis.arms import Arms, arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.published import PublishedFigures
from bench.read.compare.models import ModelPair, model_pairs
from bench.read.report.claims_part import CLAIMS, ClaimsPart
from bench.read.report.summary import SummaryFinding

Made = TypeVar("Made")


class Claims(Protocol):
    """What the module of a source of claims provides."""

    def figures(self, of: Results, /) -> PublishedFigures:
        """Return the published figures."""

    def findings(self, of: Results, /) -> Iterable[SummaryFinding]:
        """Return sentences for the summary of a report."""

    def standing(self, of: Results, /) -> str:
        """Return a sentence that says whether the claims hold, with the title of the source; "" if none was judged."""

    def lines(self, of: Results, /) -> Iterable[str]:
        """Return each verdict for a terminal."""

    def in_short(self, run: Run, arms: Arms, /) -> str:
        """Return the verdicts on directions and ratios in a sentence; "" if there are none."""

    def names(self) -> Collection[str]:
        """Return the ids of the claims."""

    def trace(self, run: Run, claim: str, /) -> Iterable[str]:
        """Return the values that judge a claim, with their trials and calls, for a terminal."""


def claims_of(part: ClaimsPart) -> Claims:
    return cast(Claims, attribute_at(part.path))


class Results:
    """A run, and the values that its report's parts need, each computed once."""

    def __init__(self, run: Run):
        self.run = run
        self._made: dict[Callable[[Results], Any], Any] = {}

    @cached_property
    def arms(self) -> Arms:
        return arms_of(self.run)

    @cached_property
    def models(self) -> tuple[ModelPair, ...]:
        """Each further model of the run, judged beside the first."""
        return model_pairs(self.run)

    @cached_property
    def published(self) -> PublishedFigures:
        """The published figures that are compared with the run's, from the first source of claims."""
        figures: PublishedFigures = self.once(next(map(claims_of, CLAIMS)).figures)
        return figures

    def once(self, make: Callable[[Results], Made]) -> Made:
        """Return what `make` returns for these results. `make` is called only once."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made
