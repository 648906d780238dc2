"""Figures that were published, as far as tables and figures of ours set theirs beside them. The wing of studies has them."""

from __future__ import annotations

from typing import Protocol


class PublishedMean(Protocol):
    """`sd` is None where none was published."""

    @property
    def mean(self) -> float: ...

    @property
    def sd(self) -> float | None: ...


class PublishedCount(Protocol):
    """How many of so many executions failed, and where that stands."""

    @property
    def failures(self) -> int: ...

    @property
    def executions(self) -> int: ...

    @property
    def place(self) -> str: ...

    @property
    def note(self) -> str: ...


class PublishedSource(Protocol):
    """`source` names it, and `asked` says which model was asked, and how."""

    @property
    def source(self) -> str: ...

    @property
    def asked(self) -> str: ...

    @property
    def runs(self) -> int | None: ...


class PublishedFigures(Protocol):
    @property
    def paper(self) -> PublishedSource: ...

    def cell(self, scenario: str, row: str, architecture: str) -> PublishedMean:
        """Return what a table says, whatever fault plan it is compared with. Raises KeyError where none says anything."""

    def value(self, scenario: str, plan: str, measure: str, architecture: str) -> PublishedMean | None:
        """Return what a table says of a column of a run's trials under a fault plan; None where none says anything."""

    def natural(self, scenario: str) -> PublishedCount | None:
        """Return how many executions failed without a fault; None where that was not published."""
